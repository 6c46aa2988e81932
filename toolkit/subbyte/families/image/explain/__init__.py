"""What can be shown of a kernel for one image: the modules of this folder make the records of its topics."""

from subbyte.families.image.explain.tiling import ImageTiling, image_tiling
from subbyte.families.topic import Topic
from subbyte.info_record import InfoRecord

TOPICS: dict[str, Topic[InfoRecord]] = {
    "tiling": Topic(
        "How a layer is cut into tiles of one image's pixels, output channels, and parts of the input channels.",
        "subbyte explain tiling n1h56w56c64k64r3s3p1 --family image",
        ImageTiling,
        image_tiling,
    ),
}
