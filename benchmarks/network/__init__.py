"""Tuning and chaining the layers of whole networks."""
