"""Functions from earlier versions that nothing here uses any more; :mod:`subbyte.renamed` provides them."""

from __future__ import annotations

from typing import TypeVar

from subbyte.families.registry import families, not_here, usual

Given = TypeVar("Given")


def warp_family_only(config: Given) -> Given:
    """``config`` if it is None, not a configuration, or of the default family. Raises Unsupported for one of
    another."""
    if any(family.owns(config) for family in families().values()) and not usual().owns(config):
        raise not_here(config, [usual()])
    return config
