"""The text of a wgmma kernel, written in TVM TIRx; :mod:`~subbyte.families.wgmma.emit.conv` puts it together."""
