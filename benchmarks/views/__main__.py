"""How quickly the views answer: ``python benchmarks/views --help``."""

import sys
from pathlib import Path

if __name__ == "__main__":
    sys.path[0] = str(Path(__file__).resolve().parents[2])  # the folder itself would hide modules of others
    from benchmarks.views.latency import main

    sys.exit(main(sys.argv[1:]))
