"""Try hostile inputs and print what came of them: ``python tools/hostile [AREA ...] [--every N] [--show N]``."""

from __future__ import annotations

import argparse
import sys
import time
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

from hostile import harness


def main() -> int:
    """Print a table; exit 1 when a case ended badly."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("areas", nargs="*", choices=[*harness.AREAS, []], help="areas to try; default all")
    parser.add_argument("--every", type=int, default=1, metavar="N", help="only each N-th case")
    parser.add_argument("--show", type=int, default=5, metavar="N", help="bad cases shown of each area (default 5)")
    parser.add_argument("--seed", type=int, default=0, help="seed of the random cases (default 0)")
    args = parser.parse_args()
    tallies = []
    for area in args.areas or harness.AREAS:
        begun = time.monotonic()
        tally = harness.try_area(area, every=args.every, seed=args.seed)
        tallies.append(tally)
        print(f"{area}: {tally.tried:,} in {time.monotonic() - begun:.0f} s, {len(tally.bad)} bad", file=sys.stderr)
        for text, outcome in tally.bad[: args.show]:
            print(f"  {outcome.kind}: {text:.160}: {outcome.detail}", file=sys.stderr)
    print(harness.table(tallies))
    return 1 if any(tally.bad for tally in tallies) else 0


if __name__ == "__main__":
    sys.exit(main())
