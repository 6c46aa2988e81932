"""The parts of its text that the pipeline lacks: weights with their places, and the loop over them."""
