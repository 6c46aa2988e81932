"""How a warp of the wgmma family turns sums into packed words of the next layer's input.

A byte holds two neighbouring output channels of one pixel and image. This record follows each byte of a pair of pixels
through five places: the sums that ``wgmma`` leaves in a lane's registers, the lane's packed register, shared memory
after ``stmatrix.trans``, the two words of the lane that loads them, and the 128 bytes of a pixel in NHWCnc. Rows g and
g + 8 of the instruction are neighbouring channels, because the prepared weights are in that order.

Source: Choi et al. 2022, section 3.2 (register-level packing); PTX ISA, "wgmma: Register Fragments" and "stmatrix".
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from subbyte.device.fragments import Fragments, fragments
from subbyte.errors import InvalidInput, Unsupported
from subbyte.families.wgmma.plan import WgmmaPlan
from subbyte.info_record import InfoRecord, Table

PIXELS, IMAGES, PAIRS = 2, 8, 8
"""Contents of an 8 x 8 matrix of 16-bit elements: two pixels of 8 images and 8 pairs of channels."""
WARP_CHANNELS = 2 * PAIRS
IMAGE_BYTES = 16
"""Bytes of one image's pixel in NHWCnc: 32 channels."""
ELSEWHERE = (
    "This kernel packs in another way; this one is the wgmma family's, with register_packing on and image_groups 1."
)
BYTES_OUT = (
    "Packing is drawn for outputs of 4 bits; of 8 bits a register holds two neighbouring channels of one pixel and two "
    "images, and a lane stores what it reads behind stmatrix.trans, 16 bytes of 16 channels, as it is."
)
INSTRUCTION = "wgmma.m64n8k32.s8"


@dataclass(frozen=True)
class PackedByte:
    """Channels ``channel`` and ``channel + 1`` (of the warp's 16) of one pixel (0 or 1) and image, place by place.

    ``lane`` holds both sums, in registers ``sums`` of the pixel's four accumulators, and then the byte
    ``register_byte`` of its packed register. ``shared_byte`` counts from the start of the matrix (128 bytes).
    ``reader`` loads 16 bytes; the byte becomes byte ``word_byte`` of its word ``word`` for this pixel, and byte
    ``output_byte`` of its 128.
    """

    pixel: int
    image: int
    channel: int
    lane: int
    sums: tuple[int, int]
    register_byte: int
    shared_byte: int
    reader: int
    word: int
    word_byte: int
    output_byte: int


@dataclass(frozen=True)
class PackedStores(InfoRecord):
    """Every byte of two pixels of one warp's 16 channels, in the order of image, pixel and channel."""

    warp: int
    bytes: tuple[PackedByte, ...]

    def title(self) -> str:
        """One line that names what the record shows."""
        first = WARP_CHANNELS * self.warp
        return f"Packed stores of warp {self.warp}: channels {first} to {first + WARP_CHANNELS - 1} of two pixels"

    def table(self) -> Table:
        """One row per byte."""
        names = ("pixel", "image", "channels", "lane", "sums", "register byte", "shared byte", "loaded by lane", "word",
                 "byte", "output byte")  # fmt: skip
        rows = [
            (b.pixel, b.image, f"{b.channel}, {b.channel + 1}", b.lane, b.sums, b.register_byte, b.shared_byte,
             b.reader, b.word, b.word_byte, b.output_byte)
            for b in self.bytes
        ]  # fmt: skip
        return Table(names, tuple(rows))

    def words(self, values: NDArray[np.integer]) -> NDArray[np.uint32]:
        """The words that the lanes store, uint32 [2 pixels, 8 images, 2], for int4 ``values`` [2 pixels, 8 images, 16].

        Each byte is moved from place to place as the record says. Raises InvalidInput for another shape.
        """
        given = np.asarray(values)
        if given.shape != (PIXELS, IMAGES, WARP_CHANNELS):
            raise InvalidInput(f"values are {list(given.shape)}: expected [2 pixels, 8 images, 16 channels]")
        registers, shared = np.zeros((32, 4), np.uint8), np.zeros(128, np.uint8)
        for byte in self.bytes:
            low, high = (int(given[byte.pixel, byte.image, byte.channel + i]) & 15 for i in range(2))
            registers[byte.lane, byte.register_byte] = low | high << 4
        for byte in self.bytes:
            shared[byte.shared_byte] = registers[byte.lane, byte.register_byte]
        words = np.zeros((PIXELS, IMAGES, 2, 4), np.uint8)
        for byte in self.bytes:
            words[byte.pixel, byte.reader, byte.word, byte.word_byte] = shared[byte.shared_byte]
        return words.reshape(PIXELS, IMAGES, 8).view(np.uint32)


def packed_stores(plan: WgmmaPlan | None = None, warp: int = 0) -> PackedStores:
    """The packed stores of one of the four warps of a warpgroup, the same in every kernel that packs this way.

    Raises InvalidInput for another warp, Unsupported for a plan that packs differently.
    """
    if plan is not None and not (plan.knobs.register_packing and plan.knobs.image_groups == 1):
        raise Unsupported(ELSEWHERE)
    if plan is not None and plan.bytes_out:
        raise Unsupported(BYTES_OUT)
    if warp not in range(4):
        raise InvalidInput(f"warp {warp!r}: a warpgroup has warps 0 to 3")
    places = [(image, pixel, pair) for image in range(IMAGES) for pixel in range(PIXELS) for pair in range(PAIRS)]
    pattern = fragments(INSTRUCTION)
    return PackedStores(warp, tuple(_byte(pattern, warp, *place) for place in places))


def _byte(pattern: Fragments, warp: int, image: int, pixel: int, pair: int) -> PackedByte:
    held = [pattern.owner("c", 16 * warp + row, image)[:2] for row in (pair, pair + PAIRS)]
    (lane, low), (other, high) = held
    assert lane == other, "both channels of a byte are a lane's own"
    return PackedByte(
        pixel=pixel, image=image, channel=2 * pair, lane=lane % 32, sums=(low, high),
        register_byte=2 * (image % 2) + pixel,
        shared_byte=IMAGE_BYTES * image + 2 * pair + pixel,
        reader=image, word=pair // 4, word_byte=pair % 4,
        output_byte=IMAGE_BYTES * image + PAIRS * (warp % 2) + pair,
    )  # fmt: skip
