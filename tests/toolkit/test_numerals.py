"""What counts as a whole number in a text."""

import pytest

from subbyte.numerals import natural


@pytest.mark.parametrize(("text", "number"), [("0", 0), ("007", 7), ("9" * 18, 10**18 - 1)])
def test_digits_are_a_number(text, number):
    assert natural(text) == number


@pytest.mark.parametrize("text", ["", "-1", "+1", "²", "½", "٢", "1.0", "1e3", " 1", "1_0", "9" * 19, "9" * 5000])
def test_anything_else_is_none(text):
    assert natural(text) is None
