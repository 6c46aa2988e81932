"""What can be shown of a kernel on bit planes: the modules of this folder make the records of its topics."""

from subbyte.families.bits.explain.composition import PlaneComposition, plane_composition
from subbyte.families.bits.explain.tiling import bits_tiling
from subbyte.families.shared.bit_tiling import BitTiling
from subbyte.families.topic import Option, Topic
from subbyte.info_record import InfoRecord

TOPICS: dict[str, Topic[InfoRecord]] = {
    "tiling": Topic(
        "How pixels and output channels are cut into blocks, turns of warpgroups and instructions.",
        "subbyte explain tiling resnet50.stage2@8:w1a1",
        BitTiling,
        bits_tiling,
    ),
    "composition": Topic(
        "How planes map to rows, columns and registers of one-bit instructions, and how a thread combines counts.",
        "subbyte explain composition resnet50.stage2@8:w2a2 --pixel 3",
        PlaneComposition,
        plane_composition,
        (
            Option("image", "row group of the instruction's tile, 0 (default) to 7", 0),
            Option("pixel", "pixel of the tile, 0 (default) to 7", 0),
            Option("seed", "seed of the random operands (default 0)", 0, "seed"),
        ),
        tab="Planes",
        view="subbyte_widgets.plane_composition:PlaneComposition",
    ),
}
