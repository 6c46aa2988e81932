"""Write toolkit/subbyte/technique/listings.json: CUDA lines of the kernels that pictures show, from their traces."""

from __future__ import annotations

import json

from subbyte.technique.listings import EXAMPLES, FILE, fresh_listing


def main() -> None:
    """Generate and run each kernel on the CPU, and write what its lines do."""
    made = {name: fresh_listing(name).to_dict() for name in EXAMPLES}
    FILE.write_text(json.dumps(made, separators=(",", ":")) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
