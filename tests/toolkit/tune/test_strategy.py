"""Every strategy proposes each valid configuration once; random does so uniformly and by its seed alone."""

from __future__ import annotations

from collections import Counter

import pytest

from subbyte.errors import InvalidInput
from subbyte.records.result import Measured
from subbyte.tune.strategy import STRATEGIES, describe_strategies, make_strategy, parse_strategy


def toy_for(make_space, name):
    """A part of the space for Optuna, which proposes what it had a hundred times before something new is drawn."""
    return make_space(knobs=3 if name == "optuna" else 6)


CONTRACTS = list(zip(sorted(STRATEGIES) * 2, [1, 500, 7] * len(STRATEGIES), strict=False))
"""Each strategy with two of three sizes of batches, of which the second is deep."""
CONTRACTS[len(STRATEGIES) :] = [pytest.param(*one, marks=pytest.mark.deep) for one in CONTRACTS[len(STRATEGIES) :]]


@pytest.mark.sample("autotvm", "diverse", "exhaustive", "genetic", "optuna", "random")
@pytest.mark.parametrize(("name", "batch"), CONTRACTS)
def test_contract_each_valid_index_once_then_nothing(make_space, name, batch):
    toy = toy_for(make_space, name)
    strategy = make_strategy(name, toy, seed=3)
    seen = []
    while asked := strategy.ask(batch):
        assert len(asked) <= batch
        seen += asked
        for index in asked:
            strategy.tell(index, Measured(1.0 + index))
    assert sorted(seen) == list(toy.valid)
    assert strategy.ask(1) == []


@pytest.mark.parametrize("name", sorted(STRATEGIES))
def test_contract_told_but_never_asked_is_not_proposed(make_space, name):
    toy = toy_for(make_space, name)
    strategy = make_strategy(name, toy, seed=3)
    told = toy.valid[::2]
    for index in told:
        strategy.tell(index, Measured(1.0))
    assert sorted(strategy.ask(1000)) == sorted(set(toy.valid) - set(told))


def test_random_depends_on_the_seed_alone(toy):
    assert make_strategy("random", toy, 1).ask(50) == make_strategy("random", toy, 1).ask(50)
    assert make_strategy("random", toy, 1).ask(50) != make_strategy("random", toy, 2).ask(50)
    one = make_strategy("random", toy, 1)
    assert [one.ask(1)[0] for _ in range(50)] == make_strategy("random", toy, 1).ask(50)


def test_random_is_uniform_over_the_valid_configurations(toy):
    draws = 3000
    counts = Counter(make_strategy("random", toy, seed).ask(1)[0] for seed in range(draws))
    expected = draws / len(toy.valid)
    chi = sum((counts[index] - expected) ** 2 / expected for index in toy.valid)
    freedom = len(toy.valid) - 1
    assert sum(counts.values()) == draws
    assert set(counts) <= set(toy.valid)
    assert abs(chi - freedom) < 5 * (2 * freedom) ** 0.5


def test_exhaustive_orders(toy):
    assert make_strategy("exhaustive", toy, 0).ask(5) == list(toy.valid[:5])
    assert make_strategy("Exhaustive:order=descending", toy, 0).ask(5) == list(toy.valid[::-1][:5])


def test_options_are_parsed_with_their_defaults():
    assert parse_strategy("random") == ("random", {})
    assert parse_strategy("exhaustive") == ("exhaustive", {"order": "ascending"})
    assert parse_strategy("exhaustive:ORDER=Descending") == ("exhaustive", {"order": "descending"})


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("randon", "did you mean random"),
        ("exhaustive:ordr=ascending", "did you mean order"),
        ("exhaustive:order=up", "allowed: ascending, descending"),
        ("exhaustive:descending", "exhaustive:key=value"),
        ("random:seed=3", "random has no options"),
        ("", "unknown strategy ''"),
    ],
)
def test_unknown_names_get_the_closest(text, says):
    with pytest.raises(InvalidInput, match=says):
        parse_strategy(text)


def test_strategies_describe_themselves():
    text = describe_strategies()
    for name in STRATEGIES:
        assert f"{name}: " in text
        for key, option in STRATEGIES[name].OPTIONS.items():
            assert f"  {key}={option.default}: {option.meaning}" in text


@pytest.mark.parametrize("odd", [None, 5, ["random"]])
def test_a_strategy_is_text(odd):
    with pytest.raises(InvalidInput, match="expected text"):
        parse_strategy(odd)
