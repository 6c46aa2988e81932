"""What its text has of its own: weights that come with their places, and the loop over them."""
