"""Measuring: results as values, runners (a GPU, a replayed landscape, a fake), timing, comparison, telemetry."""
