"""Their text, written in TVM TIRx."""
