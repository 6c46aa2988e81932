"""Functions of earlier versions that nothing here uses any more; :mod:`subbyte.renamed` hands them out."""

from __future__ import annotations

from typing import TypeVar

from subbyte.families.registry import families, not_here, usual

Given = TypeVar("Given")


def warp_family_only(config: Given) -> Given:
    """``config``, when it is None, no configuration, or of the usual family. Raises Unsupported for one of another."""
    if any(family.owns(config) for family in families().values()) and not usual().owns(config):
        raise not_here(config, [usual()])
    return config
