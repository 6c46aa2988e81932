"""Searches that learn: AutoTVM's, its diversity-aware variant, a genetic one, and ``auto``, the default.

They are registered by name in :mod:`subbyte.tune.strategy` and loaded on first use, so that importing the
library stays cheap. Each sees only the space and the results told so far.
"""
