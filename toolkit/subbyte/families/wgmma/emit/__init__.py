"""The text of a wgmma kernel, written in TVM TIRx; :mod:`~subbyte.families.wgmma.kernel` assembles it."""
