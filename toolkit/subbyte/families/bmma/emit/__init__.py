"""The kernel's products, written in TVM TIRx."""
