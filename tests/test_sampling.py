"""The sample of a test that has many parameters: what stays, and what is refused."""

from __future__ import annotations

import pytest
from sampling import mark_unsampled, one_of_each


class Item:
    """What pytest collects, as far as it is asked."""

    def __init__(self, parameter: str, *kept: object) -> None:
        self.nodeid, self.deep = f"test_some.py::test_one[{parameter}]", False
        self.marker = pytest.mark.sample(*kept).mark

    def get_closest_marker(self, name: str) -> object:
        return self.marker if name == "sample" and self.marker.args else None

    def add_marker(self, marker: pytest.MarkDecorator) -> None:
        assert marker == pytest.mark.deep
        self.deep = True


def left(parameters: list[str], *kept: object) -> list[str]:
    items = [Item(parameter, *kept) for parameter in parameters]
    mark_unsampled(items)  # type: ignore[arg-type]
    return [parameter for parameter, item in zip(parameters, items, strict=True) if not item.deep]


def test_what_stays() -> None:
    names = ["plain", "two rows", "two columns", "a cluster", "stride"]
    assert left(names, "two", "cluster") == names[1:4]
    assert left(names, 3) == ["plain", "two columns", "stride"]
    assert left(names, 1) == ["plain"]
    assert left(names, 9) == left(names) == names
    assert left(["asked for"], "another") == ["asked for"]


def test_of_planted_faults_one_of_each_kind_and_kernel_stays() -> None:
    rows = (("a", "race", "base"), ("b", "race", "split"), ("c", "values", "base"), ("d", "race", "base"))
    faults = [{"name": name, "caught": caught, "kernel": kernel} for name, caught, kernel in rows]
    assert one_of_each(faults, "caught") == ("a", "c")
    assert one_of_each(faults, "caught", "kernel") == ("a", "b", "c")


def test_a_sample_of_nothing_is_refused() -> None:
    with pytest.raises(pytest.UsageError, match="its sample is none of its parameters"):
        left(["plain", "stride"], "strid3")
