"""Draw the README's picture, docs/images/duplicate_map.svg, from the same record that the notebooks show."""

import sys
from pathlib import Path

import subbyte
from subbyte_widgets.duplicate_map import DuplicateMap

PICTURE = Path(__file__).resolve().parent.parent / "docs/images/duplicate_map.svg"
WORKLOAD, TILE = "resnet50.stage2@8", (2, 3)


def draw() -> str:
    """The SVG text: the duplicates of one small tile of a ResNet50 layer."""
    return DuplicateMap(subbyte.duplicates(subbyte.workload(WORKLOAD), tile=TILE)).to_svg()


def main() -> int:
    """Write the picture; with ``--check`` only say whether it is up to date."""
    text = draw()
    if "--check" in sys.argv[1:]:
        current = PICTURE.exists() and PICTURE.read_text() == text
        print("" if current else f"{PICTURE.name} is out of date: run `make pictures`", file=sys.stderr)
        return 0 if current else 1
    PICTURE.parent.mkdir(parents=True, exist_ok=True)
    PICTURE.write_text(text)
    print(f"wrote {PICTURE}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
