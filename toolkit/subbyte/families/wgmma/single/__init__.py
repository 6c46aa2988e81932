"""The kernel whose blocks make a single tile iteration, with bulk-copied weights."""
