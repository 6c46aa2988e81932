"""Ensembles: members with parameters of their own, votes as the library counts them, wrong logits noticed."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from benchmarks.bits.ensembles import differing, expected, members_of, predictions, slowest_share, votes
from benchmarks.bits.networks import packed
from subbyte.networks import network
from subbyte.networks.ensemble import Ensemble
from subbyte.networks.layer import pixel_values


class Emulated:
    """What a chain on a GPU wrote, from the kernels' runs on the CPU."""

    def __init__(self, last: Any) -> None:
        self.last = last

    def output(self, layer: int) -> Any:
        return self.last


@pytest.mark.deep
def test_votes_are_those_of_the_reference(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("benchmarks.bits.ensembles.EPOCHS", 1)
    members, images, labels = members_of(packed(network("digits.w1a1@8")), 3)
    assert labels is not None and len(labels) == len(images) == 8  # noqa: PT018
    wanted = Ensemble(members[0].network, tuple(one.parameters for one in members)).reference(images)
    right = [expected(one, images, np) for one in members]
    found = np.stack([predictions(one, sums) for one, sums in zip(members, right, strict=True)])
    np.testing.assert_array_equal(found, wanted.members)
    np.testing.assert_array_equal(votes(found), wanted.predictions)
    last = members[1].chain().outputs(pixel_values(images))[-1]["Out"]
    assert differing(members[1], Emulated(last), right[1]) == 0  # type: ignore[arg-type]
    last[0] += 1
    assert differing(members[1], Emulated(last), right[1]) == 1  # type: ignore[arg-type]


def test_a_simulated_gpu_has_every_so_manieth_member() -> None:
    assert slowest_share([1.0, 2.0, 3.0, 4.0, 5.0], 4) == 6.0
    assert slowest_share([1.0, 2.0, 3.0], 8) == 3.0
