"""What can be shown of kernels on fragments of bit planes: the modules of this folder make the records of their
topics."""

from subbyte.families.shared.bit_tiling import BitTiling
from subbyte.families.shared.planes.explain.composition import FragmentComposition, fragment_composition
from subbyte.families.shared.planes.explain.tiling import plane_tiling
from subbyte.families.topic import Option, Topic
from subbyte.info_record import InfoRecord


def topics_of(family: str) -> dict[str, Topic[InfoRecord]]:
    """The topics of such a family."""
    layer = f"resnet50.stage2@8:w1a2 --family {family}"
    return {
        "tiling": Topic(
            "How pixels and output channels are divided among blocks, stages, warps and products of fragments.",
            f"subbyte explain tiling {layer}",
            BitTiling,
            plane_tiling,
        ),
        "composition": Topic(
            "Which lane and registers count the pairs of planes of an output, and how they make up its sum.",
            f"subbyte explain composition {layer} --pixel 3",
            FragmentComposition,
            fragment_composition,
            (
                Option("image", "image of the first group, 0 (default) to 7", 0),
                Option("pixel", "pixel of the first block's tile (default 0)", 0),
                Option("seed", "seed of the random operands (default 0)", 0, "seed"),
            ),
        ),
    }
