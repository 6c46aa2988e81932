"""The kernel's text, written in TVM TIRx."""
