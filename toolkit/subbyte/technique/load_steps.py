"""The duplicate-aware load step by step, as one warp of a generated kernel performs it (Algorithm 1, Choi et al.
2022)."""

from __future__ import annotations

from subbyte.arguments import checked
from subbyte.errors import InvalidInput
from subbyte.families.mma.explain.load_steps import Level, LoadStep, LoadSteps
from subbyte.kernel.kernel import Kernel
from subbyte.spaces.configuration import Configuration
from subbyte.technique.topics import explained, shown_of_kernel
from subbyte.workload import ConvWorkload

__all__ = ["Level", "LoadStep", "LoadSteps", "load_steps"]


@checked
def load_steps(
    source: Kernel | ConvWorkload | str,
    config: Configuration | None = None,
    *,
    arch: str = "sm_80",
    block: int | None = None,
    warp: int = 0,
) -> LoadSteps:
    """Run one block of a kernel on the CPU and return the loads and multiplications of its first stage, step by step.

    ``source``: a kernel, or a workload to generate one for with ``config`` and ``arch``. ``block`` counts blocks along
    the pixels; by default it is the first of the second row of tiles, with padding on its left. Raises InvalidInput for
    a block or warp that does not exist, a configuration that is rejected or too many steps; Unsupported if copies are
    not asynchronous or an instruction takes two blocks of channels; MissingDependency without a C++ compiler.
    """
    if not isinstance(source, Kernel):
        return explained(LoadSteps, source, config, arch, block=block, warp=warp)
    if config is not None:
        raise InvalidInput("config was given together with a kernel, which has its own")
    return shown_of_kernel(LoadSteps, source, block=block, warp=warp)
