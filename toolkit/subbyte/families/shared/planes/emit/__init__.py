"""The kernels' text, written in TVM TIRx."""
