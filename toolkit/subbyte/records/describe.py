"""Headers of the files that the tuner writes: workload, space and versions. Plain data, and back again."""

from __future__ import annotations

import json
import platform
from collections.abc import Iterable, Mapping
from dataclasses import asdict
from datetime import UTC, datetime
from importlib import metadata
from math import prod
from typing import TYPE_CHECKING, Any, Protocol

from msgspec import UNSET

from subbyte.errors import InvalidInput, did_you_mean, shown
from subbyte.families.registry import family_of_kind, usual
from subbyte.records.checked import whole
from subbyte.records.foreign import FOREIGN, LARGEST, ForeignConfig, foreign_workload
from subbyte.records.shapes import SpaceShape
from subbyte.spaces.configuration import Configuration
from subbyte.workload import ConvWorkload, MatmulWorkload, Precision

if TYPE_CHECKING:
    from collections.abc import Sequence

    from subbyte.device.arch import Arch


class SpaceLike(Protocol):
    """What tuning needs from a space (:class:`subbyte.families.Space` is one)."""

    @property
    def workload(self) -> ConvWorkload:
        """The convolution."""
        ...

    @property
    def arch(self) -> Arch | str:
        """The compilation target."""
        ...

    @property
    def kind(self) -> str:
        """Which value lists it has: ``paper``, ``extended``."""
        ...

    @property
    def knobs(self) -> Mapping[str, Sequence[Any]]:
        """Value lists in order; the first knob varies fastest."""
        ...

    @property
    def fixed(self) -> Mapping[str, Any]:
        """Fields that do not vary: switches and atom."""
        ...

    @property
    def hash(self) -> str:
        """Changes with the knobs, their values, the fixed fields, the workload and the constraints."""
        ...

    @property
    def valid(self) -> Sequence[int]:
        """Indices of the configurations that no constraint rejects, ascending."""
        ...

    def __len__(self) -> int: ...
    def config(self, index: int) -> Configuration:
        """The configuration at ``index`` (the first knob varies fastest)."""
        ...

    def index(self, config: Configuration) -> int:
        """The index of ``config``; raises InvalidInput if it is outside the space."""
        ...

    def check(self, which: int | Configuration, /) -> str | None:
        """Why a constraint rejects it, or None."""
        ...


def arch_name(space: SpaceLike) -> str:
    """The compilation target of a space, such as ``sm_90a``."""
    return space.arch if isinstance(space.arch, str) else space.arch.name


def describe_workload(workload: ConvWorkload) -> dict[str, Any]:
    """Spec, name and all sizes; operand types and kind only if they are not those of an int4
    convolution, so that files from before these were recorded keep their meaning."""
    sizes = {name: list(value) if isinstance(value, tuple) else value for name, value in asdict(workload).items()}
    if "precision" in sizes:  # absent for a foreign kernel
        unusual = {"precision": workload.precision.text, "kind": workload.kind}
        usual = {"precision": "", "kind": ConvWorkload.kind}
        del sizes["precision"]
        sizes |= {name: value for name, value in unusual.items() if value != usual[name]}
    return {"spec": workload.spec, **sizes}


def workload_from_dict(data: Mapping[str, Any]) -> ConvWorkload:
    """The workload that ``describe_workload`` described; a ForeignWorkload if a foreign kernel was tuned.

    Raises InvalidInput.
    """
    if "problem_size" in data:
        foreign: Any = foreign_workload(data)
        taken_for: ConvWorkload = foreign
        return taken_for
    kinds = {one.kind: one for one in (ConvWorkload, MatmulWorkload)}
    kind = data.get("kind", ConvWorkload.kind)
    if not isinstance(kind, str) or kind not in kinds:
        raise InvalidInput(f"workload kind={shown(kind)}: {did_you_mean(kind, kinds)}")
    sizes = {key: value for key, value in data.items() if key not in ("spec", "kind", "precision")}
    try:
        return kinds[kind](**sizes, precision=Precision.of(data.get("precision", "")))
    except TypeError as error:
        raise InvalidInput(f"workload {dict(data)}: {error}") from None


def describe_space(space: SpaceLike) -> dict[str, Any]:
    """Everything needed to rebuild the configuration of any index without the code that made the space."""
    return {
        "kind": space.kind,
        "arch": arch_name(space),
        "hash": space.hash,
        **({"index_hash": space.index_hash} if hasattr(space, "index_hash") else {}),
        "size": len(space),
        "knobs": {name: list(values) for name, values in space.knobs.items()},
        "fixed": dict(space.fixed),
        "base": space.base if hasattr(space, "base") else space.config(0).to_dict(),
    }


LARGEST_SPACE = 2**40
"""The most configurations in a space of ours; one whose lists held the values of further configurations had 2**28.3."""
LARGEST_KNOB = 2**16
"""The largest value of one of our knobs in a file; the largest that a kernel accepts is below 256."""


def described(workload: Mapping[str, Any], shape: SpaceShape, space: Mapping[str, Any]) -> ConvWorkload:
    """The workload of a header whose parts have the right types; ``shape`` is its ``space``.

    Raises InvalidInput when the sizes are not a convolution, the space does not fit its knobs or is too large, or its
    knobs do not make a configuration.
    """
    found, foreign = workload_from_dict(workload), shape.kind == FOREIGN
    if not isinstance(workload.get("name"), str) or (not foreign and workload.get("spec") != found.spec):
        raise InvalidInput(f"workload: expected a name, and the spec of its sizes, {found.spec:.80}")
    if isinstance(found, ConvWorkload) == foreign:
        raise InvalidInput(f"space: the kind {FOREIGN!r} is for workloads with a problem_size, and for no other")
    counts = [len(values) for values in shape.knobs.values()]
    if shape.size != prod(counts) or not 0 < shape.size <= (LARGEST if foreign else LARGEST_SPACE):
        raise InvalidInput(f"space: {shape.size} configurations; its knobs' values make {prod(counts)!s:.40}, and "
                           f"{LARGEST if foreign else LARGEST_SPACE} is the most")  # fmt: skip
    for name, values in shape.knobs.items():
        if len(set(values)) < len(values):
            raise InvalidInput(f"knob {name:.80}: a value occurs twice")
        if not foreign and not all(type(v) is int and 0 <= v <= LARGEST_KNOB for v in values):
            raise InvalidInput(f"knob {name:.80}: expected integers from 0 to {LARGEST_KNOB}")
    if not foreign and shape.base is UNSET:
        raise InvalidInput("space: the fields of its configurations (base) are missing")
    config_at(space, 0)  # its fields are known
    if not foreign and not set(shape.knobs) <= set((family_of_kind(shape.kind) or usual()).names):
        raise InvalidInput("space: its knobs are not those of its configurations")
    return found


def config_at(description: Mapping[str, Any], index: int) -> Configuration:
    """The configuration at ``index`` of a described space (mixed radix, the first knob varies fastest)."""
    knobs: Mapping[str, Sequence[Any]] = description["knobs"]
    if whole(index, "configuration index") >= prod(len(values) for values in knobs.values()):
        raise InvalidInput(f"index {index} lies outside the space of {description['size']} configurations")
    foreign = description["kind"] == FOREIGN
    chosen = {} if foreign else dict(description["base"])
    return config_from_dict({**chosen, **knob_values(knobs, index)}, description["kind"])


def knob_values(knobs: Mapping[str, Sequence[Any]], index: int) -> dict[str, Any]:
    """The values of a space's knobs at an index (mixed radix, the first knob varies fastest)."""
    chosen = {}
    for name, values in knobs.items():
        index, digit = divmod(index, len(values))
        chosen[name] = values[digit]
    return chosen


def config_from_dict(data: Mapping[str, Any], kind: str) -> Configuration:
    """The configuration with these fields, of the family to which spaces of this kind belong; a ForeignConfig for a
    foreign space. Raises InvalidInput."""
    if kind == FOREIGN:
        foreign: Any = ForeignConfig.from_dict(data)
        taken_for: Configuration = foreign
        return taken_for
    family = family_of_kind(kind) or usual()
    return family.decode(data) or family.configurations[0].from_dict(data)


def versions(more: Iterable[str] = ()) -> dict[str, str]:
    """Versions of everything that results depend on, and of the packages in ``more``; missing packages are left out."""
    found = {"python": platform.python_version()}
    for name in ("subbyte", "apache-tvm", "cuda-bindings", "cuda-core", *more):
        try:
            found[name] = metadata.version(name)
        except metadata.PackageNotFoundError:
            continue
    if "subbyte" not in found:
        from subbyte import __version__

        found["subbyte"] = __version__
    return found


def now() -> str:
    """The current time, UTC, ISO 8601 with milliseconds."""
    return datetime.now(UTC).isoformat(timespec="milliseconds")


def to_line(data: Mapping[str, Any]) -> str:
    """One compact line of JSON without a line break. Raises ValueError for NaN and infinities."""
    return json.dumps(data, separators=(",", ":"), ensure_ascii=False, allow_nan=False)
