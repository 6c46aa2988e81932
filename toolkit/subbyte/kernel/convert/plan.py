"""The plan of a conversion: values of one type and order, words of one layout, and the launch."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from math import prod

from subbyte.device.arch import arch as known_arch
from subbyte.device.launch import Argument, Launch
from subbyte.errors import InvalidInput, Unsupported
from subbyte.kernel.convert.forms import Shape, StripsForm, WordForm, word_form
from subbyte.workload.conv import ceil_div
from subbyte.workload.operand import SIGNED, UNSIGNED, WORD_BITS, Operand

THREADS = 128
PACK, UNPACK = "pack", "unpack"
BYTES = {"int8": 1, "uint8": 1, "int16": 2, "float16": 2, "bfloat16": 2, "float32": 4, "int32": 4}
"""Bytes of a value, by the dtype of the caller's array."""
REALS = ("float16", "bfloat16", "float32")
PACKED_FROM, UNPACKED_TO = ("int8", *REALS), ("int8", "int32")
_SCALARS = {name: name for name in BYTES} | dict.fromkeys(("int16", "float16", "bfloat16"), "uint16")
"""The type in which the kernel reads one value: 16-bit types are read as raw bits."""
NHWC, NCHW = "nhwc", "nchw"
STEPS = 15
"""Thresholds for 16 values."""
BYTE_STEPS = 255
"""Thresholds for 256 values; two numbers follow them whose product is one over the scale."""
_MOST = (1 << 31) - 1 - THREADS
ENTRY = "convert_kernel"


@dataclass(frozen=True)
class ConversionPlan:
    """``kind`` pack: values [N,H,W,C] of type ``element``, in memory in the order ``axes``, to int4 words of layout
    ``form``; unpack: such words to int8 values, or words of int32 sums to int32, [N,H,W,C]. Real numbers are compared
    with 15 thresholds, argument ``Prm``. With ``bits`` 8, words hold int8 or (if not ``signed``) uint8 values, and a
    real number is compared only with the nearest of 255 thresholds. Values are codes minus ``zero``; with 8 bits they
    are then int16 or, if they fit, int8. Raises InvalidInput, Unsupported."""

    kind: str
    form: str
    shape: Shape
    element: str
    axes: str
    arch: str
    signed: bool = True
    bits: int = 4
    zero: int = 0

    def __post_init__(self) -> None:
        known_arch(self.arch)
        allowed: tuple[str, ...] = PACKED_FROM if self.kind == PACK else UNPACKED_TO
        if self.bits == 8:
            one = self.operand.dtype
            allowed = (one, *REALS) if self.kind == PACK else (one, "int32")
        if self.element not in allowed:
            raise InvalidInput(f"values of {self.element}: allowed to {self.kind}: {', '.join(allowed)}")
        if self.kind == UNPACK and (self.axes != NHWC or isinstance(self.words, StripsForm)):
            raise Unsupported(f"words of {self.form} to {self.axes}: words are unpacked from nhwc and nhwcnc, to nhwc")
        if max(self.values, self.words.words * (self.word_values if self.element == "int32" else 1)) > _MOST:
            raise Unsupported(f"{list(self.shape)}: a conversion has at most {_MOST} values; cut the batch")

    @cached_property
    def operand(self) -> Operand:
        """The type of the values."""
        return Operand(self.bits, SIGNED if self.signed else UNSIGNED, self.zero)

    @property
    def least_code(self) -> int:
        """The smallest number that words can hold."""
        return -(1 << self.bits - 1) if self.signed else 0

    @cached_property
    def words(self) -> WordForm:
        """Index map of the words."""
        return word_form(self.form, self.shape, self.bits)

    @property
    def word_values(self) -> int:
        """Values per word: eight of four bits, four of eight."""
        return WORD_BITS // self.bits

    @property
    def values(self) -> int:
        """Number of values, without padding."""
        return prod(self.shape)

    @property
    def strides(self) -> Shape:
        """Distances, in values, between neighbouring images, rows, columns and channels."""
        _, h, w, c = self.shape
        return Shape(h * w * c, w * c, c, 1) if self.axes == NHWC else Shape(c * h * w, w, 1, h * w)

    @property
    def together(self) -> bool:
        """Whether a word's channels are moved in one access: they are contiguous in every pixel."""
        return self.axes == NHWC and not isinstance(self.words, StripsForm) and self.shape.c % self.word_values == 0

    @property
    def group_bytes(self) -> int:
        """Bytes of a word's values in the caller's array."""
        return self.word_values * BYTES[self.element]

    @property
    def alignment(self) -> int:
        """Required alignment of the values' address in bytes."""
        return min(16, self.group_bytes) if self.together else BYTES[self.element]

    @property
    def work(self) -> int:
        """Number of threads with work: one per word when packing, one per word's channels of a pixel when unpacking."""
        s = self.shape
        return self.words.words if self.kind == PACK else s.n * s.h * s.w * ceil_div(s.c, self.word_values)

    @property
    def value_argument(self) -> tuple[str, int]:
        """Type and number of elements as the kernel reads or writes values: words if eight channels are contiguous."""
        if self.together:
            return "uint32", self.values * BYTES[self.element] // 4
        return _SCALARS[self.element], self.values

    @property
    def parameters(self) -> int:
        """Elements of the argument ``Prm``, used for real numbers."""
        return STEPS + 1 if self.bits == 4 else BYTE_STEPS + 2

    @cached_property
    def launch(self) -> Launch:
        """Grid, block and arguments."""
        dtype, count = self.value_argument
        values = (dtype, (count,)), self.axes
        words = ("int32" if self.element == "int32" else "uint32",
                 (self.words.words * (self.word_values if self.element == "int32" else 1),)), self.form  # fmt: skip
        read, written = (values, words) if self.kind == PACK else (words, values)
        arguments = [Argument("A", *read[0], "in", read[1]), Argument("Out", *written[0], "out", written[1])]
        if self.element in REALS:
            arguments.append(Argument("Prm", "float32", (self.parameters,), "in", "thresholds"))
        return Launch(ENTRY, (ceil_div(self.work, THREADS), 1, 1), (THREADS, 1, 1), 0, tuple(arguments))
