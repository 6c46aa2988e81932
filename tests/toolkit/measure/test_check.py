import numpy as np
import pytest

from subbyte.errors import InvalidInput, WrongResult
from subbyte.gpu.check import compare


@pytest.fixture
def expected():
    return np.random.default_rng(0).integers(-8, 8, (2, 3, 4, 5), np.int8)


def test_equal_outputs_pass(expected):
    report = compare(expected.copy(), expected)
    assert report.ok
    assert report.elements == 120
    assert "all 120 elements" in str(report)


def test_each_single_wrong_element_is_found(expected):
    for flat in range(expected.size):
        actual = expected.copy()
        actual.flat[flat] ^= 1
        report = compare(actual, expected)
        assert (report.wrong, report.first) == (1, np.unravel_index(flat, expected.shape))
        assert (report.actual, report.expected) == (actual.flat[flat], expected.flat[flat])


def test_first_of_several_and_largest_error(expected):
    actual = expected.copy()
    actual[0, 1, 2, 3], actual[1, 2, 3, 4] = 7, -8
    expected[0, 1, 2, 3], expected[1, 2, 3, 4] = -8, -7
    report = compare(actual, expected)
    assert (report.wrong, report.first, report.actual, report.expected) == (2, (0, 1, 2, 3), 7, -8)
    assert report.largest_error == 15
    with pytest.raises(WrongResult, match=r"stage 2: 2 of 120 .*\(n=0, p=1, q=2, k=3\): 7, expected -8"):
        compare(actual, expected).require("stage 2")
    assert report.to_dict()["first"] == [0, 1, 2, 3]


def test_int32_extremes_do_not_overflow():
    low, high = np.array([[[[-(2**31)]]]], np.int32), np.array([[[[2**31 - 1]]]], np.int32)
    assert compare(low, high).largest_error == 2**32 - 1


@pytest.mark.parametrize(
    "actual",
    [
        np.zeros((2, 3, 4, 1), np.int8),  # would broadcast
        np.zeros((2, 3, 4, 5), np.int32),
        np.zeros((2, 3, 4, 5), np.float32),
        np.zeros(120, np.int8),
        [[0]],
        None,
    ],
)
def test_wrong_form_is_refused(actual, expected):
    with pytest.raises(InvalidInput, match="output"):
        compare(actual, expected)


def test_nothing_to_compare_is_refused():
    with pytest.raises(InvalidInput, match="no elements"):
        compare(np.zeros((0, 1, 1, 1), np.int8), np.zeros((0, 1, 1, 1), np.int8))
