"""The techniques as plain data: tiling, duplicate-aware load, packing in registers, memory access, fragments."""

from subbyte.device.fragments import Fragments, fragments
from subbyte.device.memory import bank_conflicts, sectors
from subbyte.technique.access_map import AccessMap, access_map
from subbyte.technique.accesses import Access, Accesses, accesses
from subbyte.technique.duplicates import Duplicates, duplicates
from subbyte.technique.kernel_reading import KernelReading, kernel_reading
from subbyte.technique.load_steps import LoadStep, LoadSteps, load_steps
from subbyte.technique.mma import check_fragments
from subbyte.technique.packed_stores import PackedStores, packed_stores
from subbyte.technique.packing import PackingProgram, PackingTrace, packing_program
from subbyte.technique.record import InfoRecord
from subbyte.technique.taps import TapAddresses, tap_addresses
from subbyte.technique.tiling import Tiling, WarpgroupTiling, tiling, warpgroup_tiling
from subbyte.technique.topics import explained

__all__ = [
    "Access",
    "AccessMap",
    "Accesses",
    "Duplicates",
    "Fragments",
    "InfoRecord",
    "KernelReading",
    "LoadStep",
    "LoadSteps",
    "PackedStores",
    "PackingProgram",
    "PackingTrace",
    "TapAddresses",
    "Tiling",
    "WarpgroupTiling",
    "access_map",
    "accesses",
    "bank_conflicts",
    "check_fragments",
    "duplicates",
    "explained",
    "fragments",
    "kernel_reading",
    "load_steps",
    "packed_stores",
    "packing_program",
    "sectors",
    "tap_addresses",
    "tiling",
    "warpgroup_tiling",
]
