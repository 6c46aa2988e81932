"""What can be shown of a kernel on ``wgmma``: the modules of this folder make the records of its topics."""

from subbyte.families.topic import Option, Topic
from subbyte.families.wgmma.explain.metadata import SparseFragment, sparse_fragment
from subbyte.families.wgmma.explain.stores import PackedStores, packed_stores
from subbyte.families.wgmma.explain.taps import TapAddresses, tap_addresses
from subbyte.families.wgmma.explain.tiling import WarpgroupTiling, warpgroup_tiling
from subbyte.info_record import InfoRecord

TOPICS: dict[str, Topic[InfoRecord]] = {
    "tiling": Topic(
        "How output channels and pixels are divided among blocks, tile iterations, warpgroups and instructions.",
        "subbyte explain tiling resnet50.stage2@8 --family wgmma",
        WarpgroupTiling,
        warpgroup_tiling,
    ),
    "packing": Topic(
        "How a warp of a warpgroup turns sums into packed words of the next layer's input.",
        "subbyte explain packing --family wgmma --warp 1",
        PackedStores,
        packed_stores,
        (Option("warp", "warp of a warpgroup, 0 (default) to 3", 0),),
        of="any",
        tab="Stores",
        view="subbyte_widgets.store_path:StorePath",
    ),
    "taps": Topic(
        "Where each tap starts in shared memory in a wgmma kernel, and its descriptor.",
        "subbyte explain taps resnet50.stage2@8 --row 0",
        TapAddresses,
        tap_addresses,
        (Option("row", "output row of the first block (default 0)", 0),),
        tab="Taps",
        view="subbyte_widgets.tap_windows:TapWindows",
    ),
    "metadata": Topic(
        "What a thread of a 2:4 kernel holds: the kept weights, and the metadata that gives their positions.",
        "subbyte explain metadata --thread 5",
        SparseFragment,
        sparse_fragment,
        (Option("thread", "thread of a warpgroup, 0 (default) to 127", 0),),
        of="any",
    ),
}
