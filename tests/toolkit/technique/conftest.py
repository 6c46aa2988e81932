"""Kernels that are run on the CPU emulator alone, for the tests of this folder."""

from __future__ import annotations

from collections.abc import Callable

import pytest

import subbyte
from subbyte.kernel import Kernel
from subbyte.kernel.build import make_plan
from subbyte.spaces.configuration import Configuration
from subbyte.workload import ConvWorkload

Emulated = Callable[..., Kernel]


@pytest.fixture(scope="session")
def emulated() -> Emulated:
    """``emulated(workload or its spec, config, arch)``: the kernel, whose machine code nobody asks for."""

    def made(workload: ConvWorkload | str, config: Configuration, arch: str = "sm_90a") -> Kernel:
        layer = subbyte.workload(workload) if isinstance(workload, str) else workload
        return Kernel(make_plan(layer, config, arch, None, None, "fixed"))

    return made
