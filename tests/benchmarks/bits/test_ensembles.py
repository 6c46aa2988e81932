"""Ensembles: members with parameters of their own, votes as the library counts them, wrong logits noticed."""

from __future__ import annotations

from typing import Any

import numpy as np

from benchmarks.bits.ensembles import compared, members_of, votes
from benchmarks.bits.networks import packed
from subbyte.networks import network
from subbyte.networks.ensemble import random_ensemble
from subbyte.networks.layer import pixel_values


class Emulated:
    """What a chain on a GPU wrote, from the kernels' runs on the CPU."""

    def __init__(self, last: Any) -> None:
        self.last = last

    def run(self) -> None:
        """Done."""

    def output(self, layer: int) -> Any:
        return self.last


def test_votes_are_those_of_the_reference() -> None:
    found = network("digits.w1a1@8")
    members = members_of(packed(found), 2)
    images = found.random_images(1)
    wanted = random_ensemble(found, 3).reference(images)
    np.testing.assert_array_equal(votes(list(wanted.members)), wanted.predictions)
    member = members[1]
    last = member.chain().outputs(pixel_values(images))[-1]["Out"]
    ours, right, wrong = compared(member, Emulated(last), images, np)  # type: ignore[arg-type]
    np.testing.assert_array_equal(ours, wanted.members[1])
    np.testing.assert_array_equal(right, wanted.members[1])
    assert wrong == 0
    last[0] += 1
    assert compared(member, Emulated(last), images, np)[2] == 1  # type: ignore[arg-type]
