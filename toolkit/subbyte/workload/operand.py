"""Operand types: which integers the codes of a few bits stand for, and how many of them may be nonzero.

Names and ranges only, no arrays: :mod:`subbyte.numerics` converts values to codes and packs codes into words.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable
from dataclasses import dataclass, replace
from functools import cache, cached_property
from typing import Any

from subbyte.errors import InvalidInput, did_you_mean, shown

MOST_BITS = 8
"""The most bits an operand can have."""
WORD_BITS = 32
BLOCK_BITS = 128
"""Bits of one image in a block of neighbouring channels: four 32-bit words, 16 bytes."""
DENSE = "dense"
"""The sparsity of an operand in which any value may be nonzero."""
LARGEST_GROUP = 32
"""The longest group M of an N:M pattern."""
BLOCKS = "blocks"
"""Prefix of the sparsity of weights in which whole blocks are 0."""
BLOCK_FILTERS, BLOCK_CHANNELS = 64, 32
"""Size of such a block, within one tap."""


@dataclass(frozen=True)
class Encoding:
    """How the codes 0 to 2^bits - 1 of an operand are read: ``value(code, bits)`` is an integer.

    ``prefix`` precedes the bits in the name of a type (``int4``); ``zero_points`` says whether a zero point may be
    subtracted. If several codes have the same value, the smallest is stored.
    """

    name: str
    value: Callable[[int, int], int]
    prefix: str
    meaning: str
    zero_points: bool = False
    least_bits: int = 1


def _twos_complement(code: int, bits: int) -> int:
    return code - (code >> (bits - 1) << bits)


def _plain(code: int, bits: int) -> int:
    return code


def _bipolar(code: int, bits: int) -> int:
    return 2 * code - ((1 << bits) - 1)


SIGNED, UNSIGNED, OFFSET, BIPOLAR = "signed", "unsigned", "offset", "bipolar"
_ENCODINGS: dict[str, Encoding] = {
    one.name: one
    for one in (
        Encoding(SIGNED, _twos_complement, "int", "two's complement", zero_points=True),
        Encoding(UNSIGNED, _plain, "uint", "the code itself"),
        Encoding(OFFSET, _plain, "offset", "the code less a zero point, by default half the codes", zero_points=True),
        Encoding(BIPOLAR, _bipolar, "bipolar", "twice the code less 2^bits - 1: odd numbers, -1 and 1 for one bit"),
    )
}

_OWN = frozenset(_ENCODINGS)


@dataclass(frozen=True)
class _Listed:
    """The values of an encoding for each number of bits, in the order of the codes: a callable that can be pickled
    without the module that defined the encoding."""

    tables: tuple[tuple[int, tuple[int, ...]], ...]

    def __call__(self, code: int, bits: int) -> int:
        return dict(self.tables)[bits][code]


def _listed(encoding: Encoding) -> Encoding:
    """The same encoding as data, so that even one defined in a notebook or by a lambda can be sent to another
    process."""
    tables = ((bits, _table(encoding, bits, 0)) for bits in range(encoding.least_bits, MOST_BITS + 1))
    return replace(encoding, value=_Listed(tuple(tables)))


def registered_encodings() -> tuple[Encoding, ...]:
    """The encodings registered by code outside the library, as data to send to worker processes."""
    return tuple(_listed(one) for name, one in _ENCODINGS.items() if name not in _OWN)


def register_encodings(encodings: Iterable[Encoding]) -> None:
    """Register several encodings. Raises InvalidInput for one whose name or prefix is already taken by another."""
    for one in encodings:
        register_encoding(one)


def register_encoding(encoding: Encoding) -> None:
    """Register an encoding: specs, packing, layouts and the reference then accept operands of it.

    Raises InvalidInput for a name or prefix that is not a word of lower-case letters or is already taken.
    """
    for word in (encoding.name, encoding.prefix):
        if not re.fullmatch("[a-z]+", word):
            raise InvalidInput(f"encoding {shown(word)}: expected a word of small letters, without digits")
    for one in _ENCODINGS.values():
        alike = one.name == encoding.name or one.prefix == encoding.prefix
        if alike and one != encoding and _listed(one) != _listed(encoding):
            raise InvalidInput(f"encoding {encoding.name!r} ({encoding.prefix}) exists; choose another name and prefix")
    _ENCODINGS[encoding.name] = encoding


def unregister_encoding(name: str) -> None:
    """Remove an encoding; for tests."""
    _ENCODINGS.pop(name, None)


def encodings() -> dict[str, Encoding]:
    """All encodings by name."""
    return dict(_ENCODINGS)


def encoding_named(name: Any) -> Encoding:
    """The encoding with this name. Raises InvalidInput that suggests the closest names."""
    found = _ENCODINGS.get(name) if isinstance(name, str) else None
    if found is None:
        raise InvalidInput(f"encoding {shown(name)}: {did_you_mean(name, _ENCODINGS)}")
    return found


@cache
def _table(encoding: Encoding, bits: int, zero_point: int) -> tuple[int, ...]:
    return tuple(encoding.value(code, bits) - zero_point for code in range(1 << bits))


@dataclass(frozen=True)
class Operand:
    """An operand type: 1 to 8 ``bits`` in an ``encoding``, minus a zero point, dense or with a pattern of zeros.

    ``Operand(4)`` is int4, -8 to 7. Encodings: ``signed`` (two's complement, may have a zero point), ``unsigned``,
    ``offset`` (the code minus a zero point, by default 2^(bits-1)), ``bipolar`` (2 code - (2^bits - 1)), and those
    added by :func:`register_encoding`. An unsigned type with a zero point becomes an offset type, and an offset type
    with zero point 0 becomes unsigned. ``sparsity`` N:M, such as ``2:4``: at most N of M neighbouring channels are
    nonzero. ``blocks:0.25`` (weights only): at most that fraction of the blocks of 64 filters x 32 channels of one tap
    have nonzero values; the fraction is a multiple of 0.01. Raises InvalidInput for a type that does not exist.
    """

    bits: int
    encoding: str = SIGNED
    zero_point: int | None = None
    sparsity: str = DENSE

    def __post_init__(self) -> None:
        how = encoding_named(self.encoding)
        if type(self.bits) is not int or not how.least_bits <= self.bits <= MOST_BITS:
            raise InvalidInput(
                f"operand bits={shown(self.bits)}: {how.name} operands have {how.least_bits} to {MOST_BITS} bits"
            )
        usual = 1 << (self.bits - 1) if how.name == OFFSET else 0
        zero = usual if self.zero_point is None else self.zero_point
        if how.name in (UNSIGNED, OFFSET):  # one type has one name
            how = encoding_named(OFFSET if zero else UNSIGNED)
        codes = _table(how, self.bits, 0)
        if type(zero) is not int or (zero and not how.zero_points) or (zero and not min(codes) <= zero <= max(codes)):
            allowed = f"an integer from {min(codes)} to {max(codes)}" if how.zero_points else "none, so 0"
            raise InvalidInput(f"zero point {shown(zero)}: {how.name} operands of {self.bits} bits have {allowed}")
        object.__setattr__(self, "encoding", how.name)
        object.__setattr__(self, "zero_point", zero)
        percent = _percent(self.sparsity)
        if percent is not None:  # one type has one name
            object.__setattr__(self, "sparsity", f"{BLOCKS}:{percent / 100:g}")
        if (percent is not None or _pattern(self.sparsity) is not None) and zero not in codes:
            raise InvalidInput(f"sparsity {self.sparsity}: {how.name} values are never 0; expected {DENSE!r}")

    @cached_property
    def values(self) -> tuple[int, ...]:
        """The value of each code: 2^bits integers."""
        return _table(encoding_named(self.encoding), self.bits, self.zero_point or 0)

    @cached_property
    def least(self) -> int:
        """The smallest value."""
        return min(self.values)

    @cached_property
    def largest(self) -> int:
        """The largest value."""
        return max(self.values)

    @cached_property
    def magnitude(self) -> int:
        """The largest absolute value."""
        return max(-self.least, self.largest)

    @cached_property
    def contiguous(self) -> bool:
        """Whether the values are consecutive integers."""
        return len(set(self.values)) == self.largest - self.least + 1

    @cached_property
    def dtype(self) -> str:
        """The numpy dtype of arrays of its values: the first of int8, uint8, int16 and int32 that can hold them."""
        fits = (name for name, low, high in _DTYPES if low <= self.least and self.largest <= high)
        return next(fits, "int64")

    @property
    def group(self) -> tuple[int, int] | None:
        """(N, M) of an N:M sparse operand, None for any other."""
        return None if self.sparsity.startswith(BLOCKS) else _pattern(self.sparsity)

    @property
    def live_percent(self) -> int | None:
        """For block-sparse weights, the most blocks of 100 that may be nonzero; else None."""
        return _percent(self.sparsity)

    @property
    def share(self) -> float:
        """The largest fraction of values that may be nonzero: 1 for a dense operand."""
        if self.group is not None:
            return self.group[0] / self.group[1]
        return 1.0 if self.live_percent is None else self.live_percent / 100

    @property
    def dense(self) -> Operand:
        """The same type without its sparsity."""
        return self if self.sparsity == DENSE else replace(self, sparsity=DENSE)

    @property
    def packed(self) -> bool:
        """Whether a 32-bit word holds a whole number of elements; otherwise (3, 5, 6 and 7 bits) they are stored as bit
        planes."""
        return WORD_BITS % self.bits == 0

    @property
    def block(self) -> int:
        """Channels in one block of 128 bits: 32 for int4. With bit planes, each plane has 128 bits of its own."""
        return BLOCK_BITS // self.bits if self.packed else BLOCK_BITS

    @property
    def block_words(self) -> int:
        """32-bit words of one image in one block of channels: 4, or 4 for each bit with bit planes."""
        return BLOCK_BITS // WORD_BITS * (1 if self.packed else self.bits)

    def stored_bits(self, count: int) -> int:
        """Bits of ``count`` values, each stored once. N:M sparse operands store N of every M values and the positions
        of those N; block-sparse ones store the blocks that may be nonzero."""
        if self.live_percent is not None:
            return -(-count * self.live_percent // 100) * self.bits
        if self.group is None:
            return count * self.bits
        kept, among = self.group
        return -(-count * kept // among) * (self.bits + (among - 1).bit_length())

    @property
    def name(self) -> str:
        """The name as used in messages: ``int4``, ``uint2``, ``bipolar1``, ``offset4-z3``, ``int4-2of4``."""
        return f"{encoding_named(self.encoding).prefix}{self.bits}{self._more}"

    @property
    def code(self) -> str:
        """The name without the bits, as a spec writes it: ``signed``, ``offset-z3``, ``signed-2of4``."""
        return self.encoding + self._more

    @property
    def _more(self) -> str:
        usual = 1 << (self.bits - 1) if self.encoding == OFFSET else 0
        zero = f"-z{self.zero_point}" if self.zero_point != usual else ""
        if self.live_percent is not None:
            return f"{zero}-{BLOCKS}{self.live_percent}"
        return zero + (f"-{self.sparsity.replace(':', 'of')}" if self.sparsity != DENSE else "")

    @classmethod
    def of_code(cls, bits: int, code: str) -> Operand:
        """The type with this many bits that a spec writes as ``code``. Raises InvalidInput that suggests the closest
        encodings."""
        match = _CODE.fullmatch(code)
        if match is None:
            raise InvalidInput(
                f"operand type {shown(code)}: expected an encoding, then -z and a zero point, then -NofM or "
                "-blocks and a percentage, such as signed, offset-z3, signed-2of4 or signed-blocks25; "
                f"{did_you_mean(code, _ENCODINGS)}"
            )
        zero, kept, among, live = match.groups()[1:]
        sparsity = f"{int(kept)}:{int(among)}" if kept else f"{BLOCKS}:{int(live) / 100:g}" if live else DENSE
        return cls(bits, encoding_named(match[1]).name, None if zero is None else int(zero), sparsity)

    @classmethod
    def named(cls, name: Any) -> Operand:
        """The type with this name: ``int4``, ``uint2``, ``bipolar1``, ``int4-2of4``. Raises InvalidInput for an unknown
        one."""
        match = _NAME.fullmatch(name.strip().lower()) if isinstance(name, str) else None
        by_prefix = {one.prefix: one for one in _ENCODINGS.values()}
        if match is None or match[1] not in by_prefix:
            raise InvalidInput(f"operand type {shown(name)}: {did_you_mean(name, [f'{one}4' for one in by_prefix])}")
        return cls.of_code(int(match[2]), by_prefix[match[1]].name + match[3])

    def __str__(self) -> str:
        return self.name


def _pattern(sparsity: Any) -> tuple[int, int] | None:
    """(N, M) of an N:M sparsity, None if dense. Raises InvalidInput for any other text."""
    if sparsity == DENSE:
        return None
    match = re.fullmatch(r"([1-9][0-9]?):([1-9][0-9]?)", sparsity) if isinstance(sparsity, str) else None
    if match is None or not int(match[1]) < int(match[2]) <= LARGEST_GROUP:
        raise InvalidInput(
            f"sparsity {shown(sparsity)}: expected {DENSE!r}, N:M with N < M <= {LARGEST_GROUP}, such as '2:4', or "
            f"'{BLOCKS}:' and the share of live blocks, such as '{BLOCKS}:0.25'"
        )
    return int(match[1]), int(match[2])


def _percent(sparsity: Any) -> int | None:
    """The most nonzero blocks of 100 in a block sparsity; None for any other. Raises InvalidInput for a bad
    fraction."""
    if not isinstance(sparsity, str) or not sparsity.startswith(BLOCKS):
        return None
    match = re.fullmatch(rf"{BLOCKS}:(0|1|0?\.[0-9]{{1,6}}|[01]\.0*)", sparsity)
    percent = float(match[1]) * 100 if match else -1.0
    if not match or abs(percent - round(percent)) > 1e-6:
        raise InvalidInput(
            f"sparsity {shown(sparsity)}: expected '{BLOCKS}:' and the share of live blocks from 0 to 1 in whole "
            f"hundredths, such as '{BLOCKS}:0.25'"
        )
    return round(percent)


_DTYPES = (
    ("int8", -128, 127), ("uint8", 0, 255), ("int16", -(1 << 15), (1 << 15) - 1), ("int32", -(1 << 31), (1 << 31) - 1),
)  # fmt: skip
_MORE = r"(?:-z(-?[0-9]{1,3}))?(?:-(?:([0-9]{1,2})of([0-9]{1,2})|blocks([0-9]{1,3})))?"
_CODE = re.compile(rf"([a-z]+){_MORE}")
_NAME = re.compile(r"([a-z]+)([0-9]{1,2})((?:-.*)?)")
