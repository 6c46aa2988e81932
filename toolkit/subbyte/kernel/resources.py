"""The resources that a compiled kernel uses on a multiprocessor, read from the compiler's own report."""

from __future__ import annotations

import re
from dataclasses import asdict, dataclass
from typing import Any

from subbyte.device.arch import Arch
from subbyte.errors import BuildFailed


@dataclass(frozen=True)
class Resources:
    """Per thread: ``registers`` (32-bit), ``stack_bytes`` and spill bytes of local memory. ``shared_bytes`` per block.

    ``blocks_per_sm`` is the number of resident blocks on a multiprocessor, ``occupancy`` the fraction of its threads in
    use.
    """

    registers: int
    stack_bytes: int
    spill_store_bytes: int
    spill_load_bytes: int
    shared_bytes: int
    threads: int
    blocks_per_sm: int
    occupancy: float

    @property
    def local_bytes(self) -> int:
        """Bytes of local memory used; good kernels use none."""
        return self.stack_bytes + self.spill_store_bytes + self.spill_load_bytes

    def to_dict(self) -> dict[str, Any]:
        """Plain data, ready for JSON."""
        return asdict(self)


def read_resources(log: str, arch: Arch, threads: int, shared_bytes: int) -> Resources:
    """Resources from the report of ``ptxas -v``. Raises BuildFailed when the report has an unknown format."""
    used = re.search(r"Used (\d+) registers", log)
    local = re.search(r"(\d+) bytes stack frame, (\d+) bytes spill stores, (\d+) bytes spill loads", log)
    if not used or not local:
        raise BuildFailed(f"the CUDA compiler's report has an unknown form: {log.strip()[:500]!r}")
    registers = int(used.group(1))
    blocks = _blocks_per_sm(arch, registers, threads, shared_bytes)
    stack, stores, loads = (int(group) for group in local.groups())
    return Resources(
        registers, stack, stores, loads, shared_bytes, threads, blocks, blocks * threads / arch.threads_per_sm
    )


def _blocks_per_sm(arch: Arch, registers: int, threads: int, shared_bytes: int) -> int:
    """Resident blocks (CUDA C++ Programming Guide, "Multiprocessor Level"): registers are allocated in units of 256 per
    warp and divided into four equal parts, one per warp scheduler; on sm_80 and later the system reserves 1 KiB of
    shared memory per block."""
    per_warp = -(-registers * 32 // 256) * 256
    by_registers = arch.registers_per_sm // 4 // per_warp * 4 // (threads // 32)
    reserved = 1024 if arch.async_copy else 0
    by_shared = arch.shared_per_sm // max(shared_bytes + reserved, 1)
    return max(min(by_registers, by_shared, arch.threads_per_sm // threads, arch.blocks_per_sm), 0)
