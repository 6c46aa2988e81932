"""Reading what others may have written: one door for every file, and the shapes of what passes it."""
