"""Old inputs replayed: ``python tools/compatibility check``; ``record`` writes them anew with this version (--help)."""

from __future__ import annotations

import argparse
import os
import sys
import tempfile
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

from compatibility import ROOT, commands, decoding, library, logs, write

PARTS = ("logs", "decoding", "commands")


def main(arguments: list[str] | None = None) -> int:
    """Replay or record; 1 when something is not as it was."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("what", choices=("check", "record"))
    parser.add_argument("parts", nargs="*", choices=[*PARTS, []], help="default all")
    args = parser.parse_args(arguments)
    os.chdir(ROOT)
    parts = args.parts or PARTS
    with tempfile.TemporaryDirectory(prefix="subbyte-compatibility-") as folder:
        scratch = Path(folder)
        if args.what == "record":
            return record(parts, scratch)
        problems = list(found(parts, scratch))
    print("\n".join([*problems, f"{len(problems)} differences"]))
    return int(bool(problems))


def record(parts: list[str] | tuple[str, ...], scratch: Path) -> int:
    """Write the parts, and what they were made with."""
    from golden import listing
    from golden.library import versions

    if "logs" in parts:
        logs.record(scratch)
    if "decoding" in parts:
        decoding.record()
    if "commands" in parts:
        commands.record(scratch)
    from subbyte import __version__

    write("made_with", {"subbyte": __version__, "commit": listing.commit(), **versions()})
    return 0


def found(parts: list[str] | tuple[str, ...], scratch: Path):
    """Everything that is not as it was."""
    library.has_no_gpu()
    if "logs" in parts:
        for name in logs.names():
            yield from logs.problems(name, scratch / name)
    if "decoding" in parts:
        yield from decoding.key_problems()
        yield from decoding.landscape_problems()
        yield from decoding.space_problems()
    if "commands" in parts:
        for one in commands.names():
            yield from commands.problems(one, scratch)


if __name__ == "__main__":
    sys.exit(main())
