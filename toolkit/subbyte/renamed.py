"""Modules and public names of the previous version, kept under their old names for one minor version.

``import subbyte.data`` gives a module whose names resolve to where they are today, with a DeprecationWarning that says
where. A package or module with renamed names calls :func:`former_name` for them. Nothing is loaded unless an old name
is used.
"""

from __future__ import annotations

import sys
from importlib import import_module
from importlib.machinery import ModuleSpec

TYPE_CHECKING = False  # the command line starts with this package: see its __init__
if TYPE_CHECKING:
    from collections.abc import Sequence
    from types import ModuleType
    from typing import Any

MOVED: dict[str, tuple[str, ...]] = {
    "data": ("numerics", "families.mma.weights", "families.wgmma.weights"),
    "data.weights": ("families.mma.weights",),
    "data.warpgroup_weights": ("families.wgmma.weights",),
    **{f"data.{name}": (f"numerics.{name}",) for name in (
        "float_requant", "int4", "layout", "quantize", "reference", "requant")},
    "schedule": ("families.wgmma.aliases", "families", "device.atoms", "device.launch", "families.mma.plan",
                 "families.registry", "families.shared.old_names"),
    "schedule.atoms": ("device.atoms",),
    "schedule.launch": ("device.launch",),
    "schedule.plan": ("families.mma.plan",),
    "schedule.config": ("families.mma.config",),
    "schedule.families": ("families.registry", "families.shared.old_names"),
    "schedule.warpgroup": ("families.wgmma.aliases",),
    "schedule.warpgroup_plan": ("families.wgmma.aliases",),
    "space": ("families.search", "families.mma.config", "families.mma.space", "families.mma.values",
              "families.mma.rules"),
    "space.constraints": ("families.mma.rules",),
    "space.listed": ("spaces.listed",),
    "space.space": ("families.search", "families.mma.space"),
    "space.values": ("families.mma.values",),
    "space.warpgroup": ("families.wgmma.aliases", "families.wgmma.values"),
    "measure.gpu": ("gpu.launched",),
    **{f"measure.{name}": (f"gpu.{name}",) for name in (
        "arrays", "chain", "check", "device", "driver", "lock", "telemetry", "timing")},
    **{f"measure.{name}": (f"records.{name}",) for name in ("measurements", "result")},
    **{f"technique.{name}": (f"device.{name}",) for name in ("fragments", "memory", "shared_operand")},
    **{f"technique.{name}": (f"families.mma.explain.{name}",) for name in ("machine", "packing_schemes", "warp")},
    "device.ceilings": ("device.peaks",),
    "technique.warpgroup_tiling": ("technique.tiling",),
    "measure.atoms.cases": ("device.atom_cases",),
    "measure.atoms.texts": ("device.atom_texts",),
    "tune.finals": ("tune.remeasurement",),
    "tune.recorded": ("records.recorded_space",),
    **{f"tune.{name}": (f"records.{name}",) for name in (
        "checked", "describe", "exchange", "exchange.files", "exchange.kernel_tuner", "exchange.rows", "exchange.t4",
        "exchange.tables", "foreign", "landscape", "landscape_file", "landscape_space", "log", "table")},
}  # fmt: skip
"""Old module -> the modules that have its names today, in the order in which they are searched; below ``subbyte``."""

_MMA = "families.mma.config"
_WGMMA = "families.wgmma.aliases"
_SINGLE = "families.wgmma.single.config"
NAMES: dict[str, tuple[tuple[str, ...], str, str]] = {
    "WarpgroupConfig": (("", "families"), f"{_WGMMA}.WarpgroupConfig", "PipelineConfig or SingleTileConfig"),
    "WarpgroupPlan": (("families",), f"{_WGMMA}.WarpgroupPlan", "WgmmaPlan"),
    "WARPGROUP_KNOBS": (("families",), f"{_WGMMA}.WARPGROUP_KNOBS", "PipelineConfig.rows"),
    "WarpgroupSpace": (("families",), f"{_WGMMA}.WarpgroupSpace", "WgmmaSpace"),
    "ConvConfig": (
        ("", "families", _MMA, "schedule", "schedule.config", "space"), f"{_MMA}.MmaConfig", "MmaConfig",
    ),
    "SinglePassConfig": (("", "families", _SINGLE), f"{_SINGLE}.SingleTileConfig", "SingleTileConfig"),
    "Finals": (("tune", "tune.finals"), "tune.remeasurement.Remeasurement", "Remeasurement"),
    "hold_finals": (("tune", "tune.finals"), "tune.remeasurement.remeasure", "remeasure"),
    "default_finalists": (("tune.finals",), "tune.remeasurement.default_top_k", "default_top_k"),
    "FINALISTS": (("tune.finals",), "tune.remeasurement.TOP_K", "TOP_K"),
    "warpgroup_space": (("families",), f"{_WGMMA}.warpgroup_space", "space"),
}  # fmt: skip
"""Old name -> the modules that had it, where it is found today, what to use instead; below ``subbyte``."""


def former_name(module: str, name: str) -> Any:
    """Today's object for a name that ``module`` had in an earlier version, with a DeprecationWarning: for the module's
    ``__getattr__``. Raises AttributeError for any other name."""
    modules, place, today = NAMES.get(name, ((), "", ""))
    if module.partition(".")[2] not in modules:
        raise AttributeError(f"module {module!r} has no attribute {name!r}")
    _warn(f"{module}.{name}", today, 4)
    home, _, attribute = place.rpartition(".")
    return getattr(import_module(f"subbyte.{home}"), attribute)


class _Renamed:
    """Finds modules by their old names, unless a module of that name exists."""

    def find_spec(self, name: str, path: Sequence[str] | None = None, target: ModuleType | None = None) -> Any:
        """The spec of the module under its old name; None for any other name."""
        root, _, old = name.partition(".")
        if root != "subbyte" or old not in MOVED:
            return None
        return ModuleSpec(name, self, is_package=any(other.startswith(f"{old}.") for other in MOVED))  # type: ignore[arg-type]

    def create_module(self, spec: ModuleSpec) -> None:
        """An ordinary module."""

    def exec_module(self, module: ModuleType) -> None:
        """Look up every name where it is now."""
        old = module.__name__.partition(".")[2]
        module.__doc__ = f"{module.__name__} of earlier versions; see {', '.join(_full(old))}."

        def found(name: str) -> Any:
            if old in NAMES.get(name, ((),))[0]:
                return former_name(module.__name__, name)
            for place in _full(old):
                home = import_module(place)
                if not name.startswith("__") and hasattr(home, name):
                    _warn(f"{module.__name__}.{name}", f"{place}.{name}")
                    return getattr(home, name)
            raise AttributeError(f"module {module.__name__!r} has no attribute {name!r}")

        module.__getattr__ = found  # type: ignore[method-assign]
        module.__all__ = _public(old)  # type: ignore[attr-defined]
        package, _, last = module.__name__.rpartition(".")
        parent = sys.modules[package]
        function = getattr(parent, last, None) if package == "subbyte" else vars(parent).get(last)
        if callable(function):  # the import system puts the module in its place, as it always did
            from subbyte.callable_package import make_callable

            make_callable(module.__name__, function)


def _full(old: str) -> list[str]:
    return [f"subbyte.{place}" for place in MOVED[old]]


def _public(old: str) -> list[str]:
    """The names that ``from subbyte.data import *`` imports."""
    names = {name for name, (modules, *_) in NAMES.items() if old in modules}
    for place in _full(old):
        home = import_module(place)
        own = (name for name, value in vars(home).items() if getattr(value, "__module__", None) == place)
        names.update(getattr(home, "__all__", None) or (name for name in own if not name.startswith("_")))
    return sorted(names)


def _warn(old: str, new: str, level: int = 3) -> None:
    import warnings

    said = f"{old} is now {new}; the old name goes in the next minor version"
    warnings.warn(said, DeprecationWarning, stacklevel=level)


def know_old_names() -> None:
    """Make old module names importable."""
    if not any(isinstance(finder, _Renamed) for finder in sys.meta_path):
        sys.meta_path.insert(0, _Renamed())  # a folder that an update left empty would pass for a package
