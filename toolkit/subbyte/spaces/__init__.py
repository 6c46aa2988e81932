"""What every space of knobs shares: indices, value lists, valid and rejected configurations."""
