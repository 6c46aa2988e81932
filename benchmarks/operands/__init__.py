"""What other operands and epilogues cost."""
