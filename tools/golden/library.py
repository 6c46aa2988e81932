"""All that these tools take from the library's insides. Where those move, this file follows, and nothing else."""

from __future__ import annotations

import sys
from typing import Any

from golden import ROOT

sys.path.append(str(ROOT / "tests" / "gpu"))  # warpgroup_cases.py and build_kernels.py, for the list of kernels


def load() -> None:
    """Load TVM once, before processes are forked."""
    import subbyte.tirx.lower  # noqa: F401


def kernel(spec: str, key: str, arch: str, options: dict[str, Any]) -> Any:
    """The kernel of a configuration's key, planned and not yet built. Raises a SubbyteError where it is refused."""
    from subbyte.families.registry import config_from_key
    from subbyte.kernel.build import make_plan
    from subbyte.kernel.kernel import Kernel
    from subbyte.workload import workload

    clip = tuple(options["clip"]) if "clip" in options else None
    plan = make_plan(
        workload(spec), config_from_key(key), arch, options.get("output"), clip, options.get("requant", "fixed")
    )
    return Kernel(plan)


def text(spec: str, key: str, arch: str, options: dict[str, Any]) -> str:
    """The CUDA text of a kernel; with ``form`` in the options, the form of it that racecheck runs."""
    found = kernel(spec, key, arch, options)
    if options.get("form") == "every lane arrives":
        from warpgroup_cases import text_with_every_lane_arriving

        return text_with_every_lane_arriving(found.plan)
    return found.cuda


def machine_code(text: str, arch: str) -> bytes:
    """The cubin of a text, compiled anew."""
    from subbyte.kernel.nvrtc import compile_cubin

    return compile_cubin(text, arch)[0]


def key_of(values: dict[str, Any]) -> str | None:
    """The key of a recorded configuration, None where it has a knob that was removed."""
    from subbyte.errors import Unsupported
    from subbyte.families.registry import config_from_dict

    try:
        return config_from_dict(values).key
    except Unsupported:
        return None


def space_versions() -> dict[str, int]:
    """The version of each family's spaces."""
    from subbyte.families.registry import families

    return {name: family.space_version for name, family in families().items()}


def candidates(space: Any) -> Any:
    """The estimate's favourites of a space."""
    from subbyte.families.registry import family_of_kind

    family = family_of_kind(space.kind)
    assert family is not None
    return family.candidates(space.workload, space.arch)


def config_at(space: Any, index: int) -> str:
    """The key of a space's configuration."""
    return str(space.config(index).key)


def versions() -> dict[str, str]:
    """Of what makes texts and machine code."""
    from importlib import metadata

    from subbyte.kernel import nvrtc

    return {"tvm": metadata.version("apache-tvm"), "nvrtc": nvrtc.version()}
