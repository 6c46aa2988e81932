"""The views that follow a workbench's selection: those for every kernel, and those of each family's topics."""

from __future__ import annotations

from importlib import import_module

from subbyte.families.registry import topics
from subbyte_widgets._selection import Follower
from subbyte_widgets.duplicate_map import DuplicateMap
from subbyte_widgets.fragment_explorer import FragmentExplorer
from subbyte_widgets.kernel_reader import KernelExplorer
from subbyte_widgets.speed_of_light import SpeedOfLight

OF_EVERY_KERNEL: dict[str, type[Follower]] = {
    "Duplicates": DuplicateMap, "Fragments": FragmentExplorer, "Kernel": KernelExplorer, "Speed": SpeedOfLight,
}  # fmt: skip


def following_views() -> dict[str, type[Follower]]:
    """The views by the names of their tabs, in order: those of the families' topics, then those for every kernel."""
    found = {topic.tab: _view(topic.view) for having in topics().values() for topic in having.values() if topic.view}
    return {**found, **OF_EVERY_KERNEL}


def _view(place: str) -> type[Follower]:
    module, _, name = place.partition(":")
    view: type[Follower] = getattr(import_module(module), name)
    return view
