"""The techniques as plain data: tiling, duplicate-aware load, register-level packing, memory access, fragments,
bits."""

from subbyte.device.fragments import Fragments, fragments
from subbyte.device.memory import bank_conflicts, sectors
from subbyte.technique.access_map import AccessMap, access_map
from subbyte.technique.accesses import Access, Accesses, accesses
from subbyte.technique.bits import BitSum, Planes, bit_sum, planes
from subbyte.technique.composition import PlaneComposition, plane_composition
from subbyte.technique.duplicates import Duplicates, duplicates
from subbyte.technique.folding import Folding, folding
from subbyte.technique.kernel_reading import KernelReading, kernel_reading
from subbyte.technique.load_steps import LoadStep, LoadSteps, load_steps
from subbyte.technique.mma import check_fragments
from subbyte.technique.packed_stores import PackedStores, packed_stores
from subbyte.technique.packing import PackingProgram, PackingTrace, packing_program
from subbyte.technique.record import InfoRecord
from subbyte.technique.strides import Strides, strides
from subbyte.technique.taps import TapAddresses, tap_addresses
from subbyte.technique.tiling import Tiling, WarpgroupTiling, tiling, warpgroup_tiling
from subbyte.technique.topics import explained

__all__ = [
    "Access",
    "AccessMap",
    "Accesses",
    "BitSum",
    "Duplicates",
    "Folding",
    "Fragments",
    "InfoRecord",
    "KernelReading",
    "LoadStep",
    "LoadSteps",
    "PackedStores",
    "PackingProgram",
    "PackingTrace",
    "PlaneComposition",
    "Planes",
    "Strides",
    "TapAddresses",
    "Tiling",
    "WarpgroupTiling",
    "access_map",
    "accesses",
    "bank_conflicts",
    "bit_sum",
    "check_fragments",
    "duplicates",
    "explained",
    "folding",
    "fragments",
    "kernel_reading",
    "load_steps",
    "packed_stores",
    "packing_program",
    "plane_composition",
    "planes",
    "sectors",
    "strides",
    "tap_addresses",
    "tiling",
    "warpgroup_tiling",
]
