"""Its products, written in TVM TIRx."""
