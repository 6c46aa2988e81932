"""What the programs of several purposes use."""
