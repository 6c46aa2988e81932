"""What must stay the same while the library is taken apart: digests of kernels and spaces, and the planted faults.

``python tools/golden check`` compares the checkout with ``tests/golden``; ``tests/test_golden.py`` compares a small
part in every test run, and holds the comparison itself to cases that it must report.
"""

from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
FOLDER = ROOT / "tests" / "golden"
