"""The CUDA text of the windows family."""
