"""Its text, written in TVM TIRx."""
