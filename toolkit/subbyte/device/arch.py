"""GPU architectures as data: the limits and the matrix instructions of each target.

Sources: CUDA C++ Programming Guide, table "Technical Specifications per Compute Capability" (shared memory,
registers, threads); PTX ISA, section "Warp-level matrix instructions" (which shapes exist from which target).
Whether an instruction is native or emulated was read off its SASS (``IMMA`` or a ``CALL``).
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from subbyte.arguments import checked
from subbyte.errors import InvalidInput, did_you_mean, shown


@dataclass(frozen=True)
class Arch:
    """Limits of one compilation target. Sizes are in bytes; registers are 32-bit."""

    name: str
    gpus: str
    shared_per_block: int
    shared_per_sm: int
    threads_per_sm: int
    async_copy: bool
    """``cp.async`` exists (sm_80 and later)."""
    native_s4: bool
    """int4 matrix instructions run on Tensor Cores; otherwise they are emulated or do not exist."""
    default_atom: str
    registers_per_sm: int = 65536
    registers_per_thread: int = 255
    threads_per_block: int = 1024
    blocks_per_sm: int = 32
    """Most resident blocks per multiprocessor, however small they are."""
    warpgroups: bool = False
    """Four warps issue one matrix instruction together (``wgmma``)."""

    @property
    def int4_instructions(self) -> str:
        """How int4 matrix instructions run, in words."""
        if self.native_s4:
            return "native"
        return "emulated, about 40 times slower than int8: values are unpacked to int8 instead"

    @property
    def instructions(self) -> str:
        """The instructions that multiply matrices on this architecture, in words."""
        return self.default_atom + (", or wgmma of a warpgroup" if self.warpgroups else "")

    def described(self) -> dict[str, Any]:
        """Name and instructions, ready for JSON."""
        return {
            "name": self.name, "gpus": self.gpus, "int4_instructions": self.int4_instructions,
            "default_atom": self.default_atom, "warpgroup": self.warpgroups,
        }  # fmt: skip


ARCHS = {
    arch.name: arch
    for arch in (
        Arch("sm_75", "T4, RTX 20", 65536, 65536, 1024, False, True, "s4.m8n8k32", blocks_per_sm=16),
        Arch("sm_80", "A100, A30", 166912, 167936, 2048, True, True, "s4.m16n8k32"),
        Arch("sm_86", "A10, A40, RTX 30", 101376, 102400, 1536, True, True, "s4.m16n8k32", blocks_per_sm=16),
        Arch("sm_89", "L4, L40, RTX 40", 101376, 102400, 1536, True, True, "s4.m16n8k32", blocks_per_sm=24),
        Arch("sm_90a", "H100, H200", 232448, 233472, 2048, True, False, "s8.m16n8k32", warpgroups=True),
    )
}


@checked
def arch(name: str) -> Arch:
    """The architecture called ``name``. Raises InvalidInput with the closest names."""
    found = ARCHS.get(name.lower())
    if found is None:
        raise InvalidInput(f"unknown architecture {shown(name)}: {did_you_mean(str(name), ARCHS)}")
    return found
