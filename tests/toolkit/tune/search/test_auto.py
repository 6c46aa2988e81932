"""``auto``: what it does when it stalls, how many it asks for at a time, and what its parts get."""

from __future__ import annotations

from itertools import combinations

import numpy as np
import pytest

from subbyte.errors import InvalidInput
from subbyte.measure.objective import objective
from subbyte.records.foreign import ForeignSpace, ForeignWorkload
from subbyte.records.result import Measured
from subbyte.tune import Study, make_strategy
from subbyte.tune.search.coverage import Coverage

KNOBS = {
    "block_x": tuple(range(16, 272, 16)), "block_y": (1, 2, 4, 8, 16), "tile_x": (1, 2, 3, 4), "tile_y": (1, 2, 3, 4),
    "shared": (0, 1), "padded": (0, 1), "read_only": (0, 1),
}  # fmt: skip


def two_basins(index):
    """Without shared memory a kernel is slow, but for one value of block_y and tile_y: there are the fastest ones."""
    at = {}
    for name, values in KNOBS.items():
        index, digit = divmod(index, len(values))
        at[name] = values[digit]
    x, y, tile = at["block_x"], at["block_y"], at["tile_y"]
    if at["shared"]:
        time = 1.24 * (1 + 0.12 * abs(np.log2(x * y / 256))) * (1 + 0.1 * abs(tile - 3))
        time *= (1 + 0.1 * (at["tile_x"] - 1)) * (1.0 if at["padded"] else 1.3)
    else:
        time = 1.0 if y == 1 and tile == 4 else 2.6 + 0.3 * np.log2(y) + 0.3 * (4 - tile)
        time *= (1 + 0.03 * abs(np.log2(x / 128))) * (1 + 0.02 * abs(at["tile_x"] - 2)) * (1 + 0.15 * at["padded"])
    return 100 * time * (1.25 if x & (x - 1) else 1.0) * (1 + 0.02 * at["read_only"])


def fraction(text, seed, trials):
    """Of the optimum, 100 us, after so many trials."""
    space = ForeignSpace(ForeignWorkload("kernel", (1,)), "a GPU", KNOBS, range(10240))
    strategy, seen = make_strategy(text, space, seed), []
    while len(seen) < trials:
        asked = strategy.ask(min(8, strategy.next_batch))
        for index in asked:
            strategy.tell(index, Measured(two_basins(index)))
        seen += asked
    return 100 / min(map(two_basins, seen))


@pytest.mark.deep
def test_a_stalled_search_leaves_the_worse_basin():
    """The better one is a combination of three values, one of which is bad in every other combination."""
    assert fraction("auto:wide=0", 1, 75) < 0.83
    assert fraction("auto", 1, 75) > 0.95


def test_unseen_combinations_by_their_part_of_the_space():
    made = Coverage(np.array([2, 3, 1, 4]))
    everything = np.array([[a, b, 0, c] for a in range(2) for b in range(3) for c in range(4)])
    parts = 1 / 6 + 1 / 8 + 1 / 12 + 1 / 24
    assert made.unseen(everything).tolist() == pytest.approx([parts] * 24)
    made.see(everything[:1])
    assert made.unseen(everything[:1]).tolist() == [0.0]
    assert made.unseen(np.array([[0, 0, 0, 1], [1, 1, 0, 1]])) == pytest.approx([parts - 1 / 6, parts])
    before = made.unseen(everything)
    picked = everything[made.pick(everything, 11)]
    assert len({tuple(row) for row in picked.tolist()}) == 11
    assert made.unseen(everything).tolist() == before.tolist()  # picking marks nothing
    every = np.concatenate([everything[:1], picked])[:, [0, 1, 3]]
    for one, other in combinations(range(3), 2):  # twelve cover all pairs, as many as the largest two knobs need
        assert len({tuple(row) for row in every[:, [one, other]].tolist()}) == (6, 8, 12)[one + other - 1]


def test_many_knobs_keep_the_largest_parts():
    made = Coverage(np.array([2] * 20 + [5000]))
    rows = np.zeros((3, 21), dtype=np.int32)
    rows[1:, 20] = 7, 8
    made.see(rows[:1])
    assert made.unseen(rows).tolist() == [0.0, 0.0, 0.0]  # 5,000 values are too many to look at
    assert Coverage(np.array([1, 1])).pick(np.zeros((4, 2), dtype=np.int32), 2) == [0, 1]


def test_a_study_asks_for_few_while_it_knows_little():
    space = ForeignSpace(ForeignWorkload("kernel", (1,)), "a GPU", KNOBS, range(10240))
    with Study(space, "auto:trees=1", seed=1) as study:
        record = study.run(objective(lambda **at: 1.0 + at["block_y"] + abs(at["tile_x"] - 3)), 60)
        asks = {trial.ask for trial in record.trials}
        assert sorted((told, n) for _, n, told in asks if told < 24) == [(0, 8), *((told, 1) for told in range(8, 24))]
        assert {n for _, n, told in asks if 36 <= told < 48} == {3}
        assert len(study.ask(8)) == 8  # whoever has eight workers gets eight
    assert make_strategy("auto:trees=1:start=5", space, 1).next_batch == 5


def test_parts_get_their_shares_in_batches_of_any_size(foreign):
    for batch in (1, 3):
        strategy = make_strategy("auto:smooth=50:model=25", foreign, 1)
        picks = [strategy._due(batch) for _ in range(24 // batch)]
        assert [sum(pick[part] for pick in picks) for part in ("smooth", "model", "neighbour", "wide")] == [12, 6, 6, 0]


def test_without_a_plan_the_prior_changes_nothing(foreign):
    asked = []
    for text in ("auto", "auto:prior=off"):
        strategy = make_strategy(text, foreign, 3)
        for index in (first := strategy.ask(8)):
            strategy.tell(index, foreign.measure(index))
        asked.append([*first, *strategy.ask(8)])
    assert asked[0] == asked[1]


@pytest.mark.parametrize("text", ["auto:wide=101", "auto:smooth=80:model=21"])
def test_too_many_percent(foreign, text):
    with pytest.raises(InvalidInput, match="at most 100"):
        make_strategy(text, foreign, 0)
