"""The operand types of a workload, and the text that names them after a spec: ``w1a2``.

The letters are those of the literature: ``w`` and the bits of weights, ``a`` and the bits of activations. Unless the
text says otherwise, the bits decide the encoding: one-bit weights are bipolar (-1 and 1), wider ones offset;
activations are bipolar if they and the weights have one bit each, else unsigned.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Any

from subbyte.errors import InvalidInput, did_you_mean, shown
from subbyte.workload.operand import BIPOLAR, OFFSET, UNSIGNED, Operand

ZERO, MINUS, PLUS = "zero", "minus", "plus"
PADDINGS = (ZERO, MINUS, PLUS)
"""The value of a pixel outside the image: 0, or the smallest or largest value of the activations."""
SUMS = "int32"
"""The output of a kernel that does not requantize."""
EXAMPLE = "w1a2, w2a2:signed.unsigned or w1a1:plus"
_LIKE_ACTIVATIONS: Any = None
_BITS = re.compile(r"w([0-9]{1,2})a([0-9]{1,2})(?:o([0-9]{1,2}))?")


@dataclass(frozen=True)
class Precision:
    """Types of the weights, the activations and, if it feeds the next layer, the output; and what padding means.

    ``Precision.of("w1a2")`` parses a text. ``output`` defaults to the (dense) type of the activations. ``padding`` is
    ``zero`` (0, even if the activations have no such value, as with bipolar ones: the zero padding of a float network),
    ``minus`` or ``plus`` (their smallest or largest value: -1 or 1 for one bipolar bit; ``minus`` is 0 for an unsigned
    type). If activations have a zero point z (``w8a8:signed.offset-z37``: a code from 0 to 255 stands for the code
    minus 37), pixels outside the image hold the code z. Padding is part of the type: it takes part in comparisons and
    in the text, and each padding has its own kernels. Raises InvalidInput for types that do not fit together.
    """

    weights: Operand
    activations: Operand
    output: Operand = _LIKE_ACTIVATIONS
    padding: str = ZERO

    def __post_init__(self) -> None:
        given: Any = self.output
        if given is None:
            object.__setattr__(self, "output", getattr(self.activations, "dense", None))
        for name in ("weights", "activations", "output"):
            if not isinstance(getattr(self, name), Operand):
                raise InvalidInput(f"{name}={shown(getattr(self, name))}: expected an Operand, such as Operand(4)")
        for name, one in (("activations", self.activations), ("output", self.output)):
            if one.live_percent is not None:
                raise InvalidInput(f"{name}={one}: blocks of zeros are those of weights, which have filters and taps")
        if self.padding not in PADDINGS:
            raise InvalidInput(f"padding={shown(self.padding)}: {did_you_mean(self.padding, PADDINGS)}")

    @property
    def text(self) -> str:
        """The text after the colon of a spec, such as ``w1a2``; empty for int4 times int4.

        Bits, then the encodings unless they are the default ones, then the padding unless it is zero, separated by
        colons: ``w2a2:signed.unsigned:minus``. An output type of its own adds its bits (``w1a1o2``) and an encoding.
        """
        return "" if self == INT4 else self._written

    @property
    def _written(self) -> str:
        w, a, o = self.weights, self.activations, self.output
        bits = f"w{w.bits}a{a.bits}" + (f"o{o.bits}" if o.bits != a.bits else "")
        parts = [bits]
        usual = (_usual_weights(w.bits), _usual_activations(w.bits, a.bits))
        if o != _usual_output(w.bits, a, o.bits):
            parts.append(f"{w.code}.{a.code}.{o.code}")
        elif (w, a) != usual:
            parts.append(f"{w.code}.{a.code}")
        return ":".join([*parts, *([self.padding] if self.padding != ZERO else [])])

    @property
    def pad_value(self) -> int:
        """The value of a pixel outside the image."""
        return {ZERO: 0, MINUS: self.activations.least, PLUS: self.activations.largest}[self.padding]

    @property
    def outputs(self) -> tuple[str, str]:
        """What a kernel can return: values of the output type, or the raw sums."""
        return self.output.name, SUMS

    @property
    def largest_product(self) -> int:
        """Largest magnitude of a product of a weight and an activation."""
        return self.weights.magnitude * max(self.activations.magnitude, abs(self.pad_value))

    @property
    def label(self) -> str:
        """A short name, as used for the sides of a measurement: ``int4``, ``w1a2``."""
        return self.text or INT4.weights.name

    def __str__(self) -> str:
        """A description: ``int4 x int4``, weights first."""
        said = f"{self.weights} x {self.activations}"
        output = f" to {self.output}" if self.output != self.activations.dense else ""
        return said + output + (f", padded with {self.padding}" if self.padding != ZERO else "")

    @classmethod
    def of(cls, given: str | Precision) -> Precision:
        """The types described by a text (``""``: int4 times int4); a Precision is returned as it is.

        Raises InvalidInput that says what is expected and suggests the closest encodings.
        """
        if isinstance(given, Precision):
            return given
        if not isinstance(given, str):
            raise InvalidInput(f"operand types {shown(given)}: expected text such as {EXAMPLE}, or a Precision")
        text = given.strip().lower()
        if not text:
            return INT4
        first, *more = text.split(":")
        bits = _BITS.fullmatch(first)
        if bits is None:
            raise InvalidInput(f"operand types {shown(given)}: expected the bits of weights and activations, then how "
                               f"they are encoded and padded where that is not usual, such as {EXAMPLE}")  # fmt: skip
        padding = more.pop() if more and more[-1] in PADDINGS else ZERO
        if len(more) > 1 or "" in more:
            raise InvalidInput(f"operand types {shown(given)}: too many parts; expected, for example, {EXAMPLE}")
        codes = more[0].split(".") if more else []
        if len(codes) not in (0, 2, 3):
            known = did_you_mean(more[0], PADDINGS) if len(codes) == 1 else f"not {len(codes)}"
            raise InvalidInput(f"operand types {shown(given)}: expected the encodings of weights, activations (and "
                               f"output) with points between, as signed.unsigned, or a padding; {known}")  # fmt: skip
        w, a = int(bits[1]), int(bits[2])
        o = a if bits[3] is None else int(bits[3])
        weights = Operand.of_code(w, codes[0]) if codes else _usual_weights(w)
        activations = Operand.of_code(a, codes[1]) if codes else _usual_activations(w, a)
        output = Operand.of_code(o, codes[2]) if len(codes) > 2 else _usual_output(w, activations, o)
        return cls(weights, activations, output, padding)


def _usual_weights(bits: int) -> Operand:
    return Operand(bits, BIPOLAR if bits == 1 else OFFSET)


def _usual_activations(weight_bits: int, bits: int) -> Operand:
    return Operand(bits, BIPOLAR if bits == weight_bits == 1 else UNSIGNED)


def _usual_output(weight_bits: int, activations: Operand, bits: int) -> Operand:
    """The type that the next layer reads by default, with this many bits."""
    return activations.dense if bits == activations.bits else _usual_activations(weight_bits, bits)


INT4 = Precision(Operand(4), Operand(4))
"""Int4 times int4, requantized to int4: the default of every workload."""
