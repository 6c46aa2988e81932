"""The kernel whose input rows go round in a pipeline."""
