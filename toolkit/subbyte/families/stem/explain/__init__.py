"""What can be shown of a kernel for few input channels: the modules of this folder make the records of its topics."""

from subbyte.families.stem.explain.shared_k import SharedK, shared_k
from subbyte.families.stem.explain.tiling import StemTiling, stem_tiling
from subbyte.families.topic import Option, Topic
from subbyte.info_record import InfoRecord

TOPICS: dict[str, Topic[InfoRecord]] = {
    "tiling": Topic(
        "How a layer is cut into turns of warpgroups, tiles of pixels, and steps of K.",
        "subbyte explain tiling n8h224w224c3k64r7s7p3u2 --family stem",
        StemTiling,
        stem_tiling,
    ),
    "sharedk": Topic(
        "Which taps and channels of a window share an instruction's K dimension, by step and word.",
        "subbyte explain sharedk n8h224w224c3k64r7s7p3u2 --phase 0",
        SharedK,
        shared_k,
        (Option("phase", "phase of the output pixel: where its window starts in a word (default 0)", 0),),
    ),
}
