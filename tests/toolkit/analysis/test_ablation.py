"""Ablation against data with known contributions, and what it refuses."""

import itertools

import numpy as np
import pytest

from subbyte.analysis.ablation import TECHNIQUES, ablation
from subbyte.errors import InvalidInput
from subbyte.families import space
from subbyte.families.mma.config import MmaConfig
from subbyte.records.landscape import Landscape
from subbyte.records.result import Failed, Measured

GAINS = {"duplicate_aware": 1.5, "register_packing": 1.1, "layout": 1.3}
DEVICE = {"runner": "fake", "name": "Test GPU"}
LAYER = "resnet50.stage2@8"


def record(sharing, packing, layout, noise=0.0, indices=range(40), device=DEVICE, layer=LAYER, synergy=1.0):
    here = space(layer, duplicate_aware=sharing, register_packing=packing, layout=layout)
    on = {"duplicate_aware": sharing != "none", "register_packing": packing, "layout": layout == "nhwcnc"}
    gain = np.prod([GAINS[name] for name, active in on.items() if active]) * (synergy if all(on.values()) else 1.0)
    rng = np.random.default_rng([sum(map(ord, sharing + layout)), packing])
    chosen = [here.valid[i] for i in indices]
    base = {i: 5.0 + 0.01 * i for i in chosen}
    times = {i: base[i] / gain * np.exp(noise * rng.normal()) for i in chosen}
    return Landscape.from_results(here, {i: Measured(t, (t,)) for i, t in times.items()}, device)


def of_another_space(one):
    """The same results, as if their indices were of a space with other knobs."""
    here = one.header["space"]
    return Landscape({**one.header, "space": {**here, "knobs": {**here["knobs"], "stages": [2, 3]}}}, one.results)


def with_knob(one, name, values):
    """The same results, described with a knob more."""
    here = one.header["space"]
    return Landscape({**one.header, "space": {**here, "knobs": {**here["knobs"], name: values}}}, one.results)


def records(**options):
    combinations = itertools.product(("none", "full"), (False, True), ("nhwc", "nhwcnc"))
    return [record(*switches, **options) for switches in combinations]


def test_known_contributions_come_out():
    found = ablation(records())
    product = np.prod(list(GAINS.values()))
    for name, gain in GAINS.items():
        assert found.shapley[name].speed_up == pytest.approx(gain)
        assert found.marginal[name].speed_up == pytest.approx(gain)
    assert list(found.accumulated) == list(TECHNIQUES)
    assert [f.speed_up for f in found.accumulated.values()] == pytest.approx([1.5, 1.65, product])
    assert found.combinations["sharing full, packing on, nhwcnc"].speed_up == pytest.approx(product)
    assert found.sharing["full"].speed_up == pytest.approx(1.5)
    assert found.schedules == 40


def test_shapley_shares_what_only_all_three_bring_and_multiplies_to_the_whole():
    found = ablation(records(synergy=2.0))
    for name, gain in GAINS.items():
        assert found.shapley[name].speed_up == pytest.approx(gain * 2 ** (1 / 3))
        assert found.marginal[name].speed_up == pytest.approx(gain * 2)
    whole = found.combinations["sharing full, packing on, nhwcnc"].speed_up
    assert np.prod([f.speed_up for f in found.shapley.values()]) == pytest.approx(whole)


def test_intervals_cover_noise_and_a_missing_effect_is_not_claimed(monkeypatch):
    monkeypatch.setitem(GAINS, "register_packing", 1.0)
    found = ablation(records(noise=0.05))
    nothing, much = found.marginal["register_packing"], found.marginal["duplicate_aware"]
    assert nothing.low < 1.0 < nothing.high
    assert much.low > 1.3
    assert much.low < 1.5 < much.high


def test_only_common_schedules_count():
    some = records()
    failing = record("none", True, "nhwc")
    lost = next(iter(failing.results))
    some[2] = Landscape(failing.header, {**failing.results, lost: Failed("timeout", "too slow")})
    some.append(record("shared", True, "nhwcnc", indices=range(5, 40)))
    found = ablation(some)
    assert found.schedules == 35
    assert found.sharing["shared"].speed_up == pytest.approx(1.5)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (lambda some: some[:-1], "no landscape with sharing full, packing on, nhwcnc"),
        (lambda some: [*some[:-1], record("full", True, "nhwcnc", device={**DEVICE, "name": "Other"})], "devices"),
        (lambda some: [*some[:-1], record("full", True, "nhwcnc", layer="resnet50.stage3@8")], "several workloads"),
        (lambda some: [*some[:-1], record("full", True, "nhwcnc", indices=range(5))], "only 5 schedules"),
        (lambda some: [*some, of_another_space(some[-1])], "nhwcnc of two spaces"),
    ],
)
def test_what_cannot_be_compared_is_refused(change, message):
    with pytest.raises(InvalidInput, match=message):
        ablation(change(records()))


def test_a_second_session_adds_schedules_and_replaces_what_it_measured_again():
    first, second = records(indices=range(20)), records(indices=range(15, 40), noise=0.05)
    for one in second:
        one.header["created"] = "2999-01-01"
    found = ablation([*second, *first])
    assert found.schedules == 40
    assert found.pairs["+ layout"][:15] == pytest.approx([2.145] * 15)
    assert min(abs(value - 2.145) for value in found.pairs["+ layout"][15:20]) > 1e-4


def test_the_order_of_adding_is_a_choice_and_stated():
    found = ablation(records(), order=("layout", "register_packing", "duplicate_aware"))
    assert found.order == ("layout", "register_packing", "duplicate_aware")
    assert list(found.accumulated) == list(found.order)
    assert [f.speed_up for f in found.accumulated.values()] == pytest.approx([1.3, 1.43, 1.5 * 1.43])
    with pytest.raises(InvalidInput, match="once each"):
        ablation(records(), order=("layout", "layout", "duplicate_aware"))


def test_single_schedules_stand_behind_the_means():
    found = ablation(records(noise=0.05))
    assert len(found.indices) == 40
    for kind, sign in (("accumulated", "+"), ("marginal", "-")):
        for technique, factor in getattr(found, kind).items():
            single = np.array(found.pairs[f"{sign} {technique}"])
            assert np.exp(np.log(single).mean()) == pytest.approx(factor.speed_up, rel=1e-4)
    assert "sharing shared" not in found.pairs


def test_text_and_table():
    found = ablation(records())
    assert "speed-ups over 40 schedules" in found.text()
    assert ("Shapley", "layout", "1.30 (1.30 to 1.30)") in found.table().rows
    assert found.to_dict()["fastest"]["sharing none, packing off, nhwc"] == pytest.approx(5.0 + 0.01 * found_first())


def found_first():
    return space(LAYER).valid[0]


def test_a_knob_at_its_usual_value_alone_does_not_make_another_space():
    some = records(indices=range(20))
    later = [with_knob(one, "given_up", [1]) for one in records(indices=range(20, 40))]
    usual = [with_knob(one, "min_blocks", [MmaConfig().min_blocks]) for one in records(indices=range(20, 40))]
    assert ablation([*some, *later]).schedules == ablation([*some, *usual]).schedules == 40
    for values in ([1, 2], [7, 1]):
        with pytest.raises(InvalidInput, match="of two spaces"):
            ablation([*some, with_knob(later[0], "given_up", values)])
    with pytest.raises(InvalidInput, match="of two spaces"):
        ablation([*some, with_knob(usual[0], "min_blocks", [2])])
