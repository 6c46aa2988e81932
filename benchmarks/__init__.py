"""What is measured side by side: a folder, and a command, for each purpose; raw results in ``results/``."""
