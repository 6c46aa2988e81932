"""Searches that learn: AutoTVM's, its diversity-aware form, a genetic one, and ``auto``, the default.

They are registered by name in :mod:`subbyte.tune.strategy` and loaded when first asked for, so that importing the
library stays light. Every one of them sees the space and the results told so far, and nothing else.
"""
