"""Every type of an operand, as hypothesis draws them."""

from hypothesis import strategies as st

from subbyte.workload import Operand, Precision

PATTERNS = ("dense", "1:2", "2:4", "3:8", "1:32")


@st.composite
def operand_types(draw, patterns=PATTERNS, most_bits=8):
    bits = draw(st.integers(1, most_bits))
    encoding = draw(st.sampled_from(("signed", "unsigned", "offset", "bipolar")))
    zero = None
    if encoding == "offset":
        zero = draw(st.none() | st.integers(0, (1 << bits) - 1))
    elif encoding == "signed":
        zero = draw(st.none() | st.integers(-(1 << (bits - 1)), (1 << (bits - 1)) - 1))
    patterns = ("dense",) if encoding == "bipolar" else patterns  # which is never 0
    return Operand(bits, encoding, zero, draw(st.sampled_from(patterns)))


@st.composite
def precisions(draw, most_bits=8):
    kinds = operand_types(most_bits=most_bits)
    given = [draw(kinds), draw(kinds), draw(st.none() | kinds)]
    return Precision(*given, draw(st.sampled_from(("zero", "minus", "plus"))))
