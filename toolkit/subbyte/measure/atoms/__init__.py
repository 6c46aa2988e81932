"""The measured peaks of a GPU: each matrix instruction alone, a plain copy, an empty launch.

Every number is measured with a small CUDA text of this package, compiled on the spot, on random data.
"""

from __future__ import annotations

from subbyte.device.atom_cases import Case, cases
from subbyte.measure.atoms.measure import measure_atoms
from subbyte.measure.atoms.program import AtomKernel, atom_kernel
from subbyte.measure.atoms.report import text_of

__all__ = ["AtomKernel", "Case", "atom_kernel", "cases", "measure_atoms", "text_of"]
