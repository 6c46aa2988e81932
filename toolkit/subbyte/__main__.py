"""The program ``subbyte``, also ``python -m subbyte``: Ctrl-C, standard streams and the last net around the commands.

What stands here runs before anything large is loaded.
"""

from __future__ import annotations

import os
import sys

DEFECT = 70
"""Exit code when this package is at fault: EX_SOFTWARE of sysexits.h."""
NO_OUTPUT = 3
"""As for everything that the machine lacks."""
TRACEBACK = "SUBBYTE_TRACEBACK"
"""Environment variable that has the traceback of a fault printed."""


def program() -> int:
    """Run the command of ``sys.argv`` and return its exit code."""
    early = False
    while True:
        try:
            from subbyte import interrupts

            interrupts.end_at_once()
            break
        except KeyboardInterrupt:  # in the milliseconds that the import above takes
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
    """What is nobody's intention: a fault of this package, in one sentence."""
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
