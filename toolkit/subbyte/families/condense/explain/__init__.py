"""What can be shown of a kernel that finds zeros: the modules of this folder make the records of its topics."""

from subbyte.families.condense.explain.kept import KeptProducts, kept_products
from subbyte.families.condense.explain.tiling import CondenseTiling, condense_tiling
from subbyte.families.topic import Option, Topic
from subbyte.info_record import InfoRecord

TOPICS: dict[str, Topic[InfoRecord]] = {
    "tiling": Topic(
        "How a product is cut into blocks, warps and tiles, and the steps of a tile in which nothing is zero.",
        "subbyte explain tiling gemm4096 --family condense",
        CondenseTiling,
        condense_tiling,
    ),
    "condense": Topic(
        "How much of a product remains in each tile if zeros are anywhere: predicted, and counted on random operands.",
        "subbyte explain condense gemm4096 --density 0.05",
        KeptProducts,
        kept_products,
        (
            Option("density", "share of nonzero values in both operands, or in rows and columns: 0.05,0.2 "
                   "(default 0.05)", "0.05", "text", "D"),
            Option("seed", "seed of the random operands (default 0)", 0, "seed"),
        ),
    ),
}  # fmt: skip
