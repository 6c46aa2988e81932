"""Reading files that others may have written: one entry point for every file, and the types of their contents."""
