"""Makes generated kernels of tests/toolkit/emulator known to the tests of this folder."""

import sys
from pathlib import Path

sys.path.append(str(Path(__file__).parents[1] / "emulator"))
