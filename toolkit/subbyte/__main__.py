"""The program ``subbyte``, also ``python -m subbyte``: Ctrl-C, standard streams and the last-resort error handler.

All of this runs before anything large is loaded.
"""

from __future__ import annotations

import os
import sys

DEFECT = 70
"""Exit code for a bug in this package: EX_SOFTWARE of sysexits.h."""
NO_OUTPUT = 3
"""Exit code when the machine lacks something."""
TRACEBACK = "SUBBYTE_TRACEBACK"
"""Environment variable; if set, the traceback of an internal error is printed."""


def program() -> int:
    """Run the command of ``sys.argv`` and return its exit code."""
    early = False
    while True:
        try:
            from subbyte import interrupts

            interrupts.end_at_once()
            break
        except KeyboardInterrupt:  # during the milliseconds that the import above takes
            early = True
    if early:
        interrupts.end()
    try:
        from subbyte import streams

        if not streams.open_closed():
            streams.say("subbyte: the standard output is closed: give it a file, a pipe or /dev/null")
            return NO_OUTPUT
        from subbyte.cli.main import main

        return main()
    except Exception as error:
        return _defect(error)
    finally:
        interrupts.ignore()


def _defect(error: Exception) -> int:
    """Report an exception that nobody expected, a bug in this package, in one sentence."""
    from subbyte.streams import say

    if os.environ.get(TRACEBACK):
        from traceback import format_exception

        say("".join(format_exception(error)), end="")
    said = f"{type(error).__name__}: {error}".replace("\n", " ")[:300]
    where = "" if os.environ.get(TRACEBACK) else f"; {TRACEBACK}=1 shows where"
    say(f"subbyte: this is a fault of subbyte, please report it ({said}){where}")
    return DEFECT


if __name__ == "__main__":
    sys.exit(program())
