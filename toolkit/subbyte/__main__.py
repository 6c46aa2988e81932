"""``python -m subbyte``: the command line, where the program of that name is not on PATH."""

from __future__ import annotations

import sys

from subbyte.cli.main import main

sys.exit(main())
