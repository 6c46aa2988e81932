"""Exercises on search: the odds of random search, the acceptance rule of annealing, keeping half of the mutants."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from math import ceil, exp, log, prod
from typing import Any

from subbyte.arguments import checked
from subbyte.errors import InvalidInput
from subbyte.exercises.answers import recognise, same, unanswered
from subbyte.exercises.feedback import Feedback, call, mistake

MOVES = (
    (0.2, 0.5, 1.0, 0.999), (0.2, 0.5, 0.0, 0.5), (0.5, 0.5, 0.3, 0.99), (0.5, 0.2, 1.0, 0.7), (0.5, 0.2, 1.0, 0.8),
    (0.5, 0.2, 0.1, 0.04), (0.5, 0.2, 0.1, 0.3), (0.9, -0.6, 1.0, 0.2), (0.9, -0.6, 1.0, 0.3), (0.5, 0.2, 0.01, 0.001),
    (0.5, 0.2, 0.1, 0.9), (0.6, 0.4, 0.05, 0.5),
)  # fmt: skip
"""Old score, new score, temperature, draw from [0, 1)."""

MUTANTS = (
    ((0, 0), (0, 0), (0, 1), (1, 2), (1, 1), (0, 0)),
    ((2, 0, 1), (2, 0, 1), (2, 1, 1), (2, 0, 0), (0, 0, 1), (1, 2, 0), (2, 2, 1), (2, 0, 2)),
    ((0, 0, 0), (0, 0, 1), (0, 1, 0), (0, 1, 1), (1, 0, 0), (1, 0, 1), (1, 1, 0), (1, 1, 1)),
    ((3, 1), (3, 1), (3, 0), (3, 2), (3, 3), (0, 1), (1, 1), (3, 1), (2, 1), (3, 2)),
)
"""Lists of mutants; each mutant is the positions of its knob values."""


def random_chance(trials: int, good: int, total: int) -> float:
    """Chance that ``trials`` different random configurations out of ``total`` include at least one of ``good`` ones.

    Raises InvalidInput unless 0 < good <= total.
    """
    if not 0 < good <= total:
        raise InvalidInput(f"good={good}, total={total}: need 0 < good <= total")
    missed = prod((total - good - k) / (total - k) for k in range(trials)) if trials <= total - good else 0.0
    return 1.0 - missed


@checked
def check_random_trials(answer: Any, good: int, total: int, chance: float = 0.95) -> Feedback:
    """Check the minimum number of random trials to find one of the ``good`` configurations with probability ``chance``.

    No configuration is tried twice.
    """
    if unanswered(answer):
        return Feedback(False, "Write a number of trials.")
    if not (1 <= good <= total <= 10**6 and 0 < chance < 1):
        raise InvalidInput(
            f"good={good}, total={total}, chance={chance}: expected good from 1 to total, chance a share"
        )
    right = next(trials for trials in range(total + 1) if random_chance(trials, good, total) >= chance)
    if same(answer, right):
        return Feedback(True, f"With {right} trials the chance is {random_chance(right, good, total):.1%}.")
    again = ceil(log(1 - chance) / log(1 - good / total)) if good < total else 1
    mean = random_chance(round(total / good), good, total)
    mistakes: list[tuple[Any, str]] = [
        (total, "That is the whole space; you need not try all of it."),
        (
            lambda a: _whole(a) and a in (round(total / good), ceil(total / good), total // good),
            f"That many trials are enough on average; the chance of having met one by then is only {mean:.0%}.",
        ),
        (
            lambda a: _whole(a) and a in (round(chance * total), ceil(chance * total)),
            "That many trials find one particular configuration. Any of the good ones will do.",
        ),
        (
            lambda a: _whole(a) and again != right and a == again,
            "That is with replacement. A tuner tries nothing twice, so each failure leaves fewer bad ones.",
        ),
        (right - 1, f"One too few: the chance is {random_chance(right - 1, good, total):.2%}."),
        (lambda a: _whole(a) and right < a <= total, "That is enough, but not the smallest number that is."),
    ]
    otherwise = "All trials miss with probability bad / all * (bad - 1) / (all - 1) * ..., one factor for each trial."
    return Feedback(False, recognise(answer, mistakes, otherwise))


def _whole(value: Any) -> bool:
    return isinstance(value, int) and not isinstance(value, bool)


def check_accept(accept: Callable[[float, float, float, float], bool]) -> Feedback:
    """Check ``accept(old, new, temperature, draw)``: whether a walker accepts its mutant.

    The probability is ``exp((new - old) / temperature)``, at least 1 for an improvement; the mutant is accepted if
    ``draw``, from [0, 1), is less. The temperature may be 0: then nothing worse is accepted.
    """
    given = []
    for move in MOVES:
        case = "old {}, new {}, temperature {}, draw {}".format(*move)
        answer, problem = call(accept, *move, case=case)
        if problem is not None and move[2] == 0:
            return Feedback(False, f"{problem.message}. Add something small to the temperature, as AutoTVM does: 1e-5.")
        if problem is not None:
            return problem
        if answer is None or answer is ...:
            return Feedback(False, "Return True or False.")
        given.append(bool(answer))
    right = [_accepts(*move) for move in MOVES]
    if given == right:
        return Feedback(
            True, f"All {len(MOVES)} moves agree: a worse mutant is rarely taken, and never at temperature 0."
        )
    known: dict[str, Callable[[], Any]] = {
        "you take improvements only. That is hill climbing: a walker never leaves the hill it is on.": lambda: [
            new > old for old, new, _, _ in MOVES
        ],
        "you refuse everything worse. That is hill climbing: a walker never leaves the hill it is on.": lambda: [
            new >= old for old, new, _, _ in MOVES
        ],
        "you take everything: that is a random walk, which ignores the scores.": lambda: [True] * len(MOVES),
        "old and new are swapped: higher scores are better.": lambda: [
            _accepts(new, old, t, draw) for old, new, t, draw in MOVES
        ],
        "the temperature is missing: as it falls, the same loss must become harder to accept.": lambda: [
            draw < exp(min(new - old, 1.0)) for old, new, _, draw in MOVES
        ],
        "you multiply by the temperature; dividing makes the same loss weigh more when it is cold.": lambda: [
            draw < exp(min((new - old) * t, 1.0)) for old, new, t, draw in MOVES
        ],
        "the comparison is the wrong way round: the mutant is taken when the draw is *less* than the chance.": lambda: [
            not taken for taken in right
        ],
    }
    place = next(k for k, (a, b) in enumerate(zip(given, right, strict=True)) if a != b)
    old, new, temperature, draw = MOVES[place]
    case = f"old {old}, new {new}, temperature {temperature}, draw {draw}: "
    about = mistake(given, known) or f"the mutant is {'taken' if right[place] else 'not taken'}."
    return Feedback(False, case + about)


def _accepts(old: float, new: float, temperature: float, draw: float) -> bool:
    return draw < exp(max(min((new - old) / (temperature + 1e-5), 1.0), -700.0))


def check_keep(keep: Callable[[Sequence[Sequence[int]], int], Sequence[int]]) -> Feedback:
    """Check ``keep(mutants, count)``: the indices of the ``count`` mutants that a greedy rule by rarity picks, in
    order.

    The gain of a mutant is the sum over its knobs of 1 / (1 + the number of picked mutants with the same value of that
    knob). Each round picks the mutant with the largest gain, the first one in a tie, and recomputes the gains.
    """
    for mutants in MUTANTS:
        count = len(mutants) // 2
        given, problem = call(keep, mutants, count, case=f"{len(mutants)} mutants")
        if problem is not None:
            return problem
        try:
            answer = [int(place) for place in given]
        except (TypeError, ValueError):
            return Feedback(False, "Return a list of indices: 0 for the first mutant, 1 for the second, ...")
        right = greedy(mutants, count, lambda times: 1 / (1 + times))
        if answer != right:
            return Feedback(False, _about_kept(answer, right, mutants, count))
    return Feedback(True, f"All {len(MUTANTS)} lists agree.")


def greedy(mutants: Sequence[Sequence[int]], count: int, gain: Callable[[int], float]) -> list[int]:
    """Indices of ``count`` mutants, picked one at a time by the largest sum of ``gain(times)`` over their knobs;
    ``times`` is how many of those picked have the same value."""
    picked: list[int] = []
    while len(picked) < count:
        gains = [
            -1.0 if place in picked else sum(gain(times) for times in _times(mutants, mutant, picked))
            for place, mutant in enumerate(mutants)
        ]
        picked.append(gains.index(max(gains)))
    return picked


def _times(mutants: Sequence[Sequence[int]], mutant: Sequence[int], picked: Sequence[int]) -> list[int]:
    return [sum(mutants[place][knob] == value for place in picked) for knob, value in enumerate(mutant)]


def _about_kept(answer: list[int], right: list[int], mutants: Sequence[Sequence[int]], count: int) -> str:
    if len(answer) != count:
        return f"You keep {len(answer)} of {len(mutants)} mutants; keep {count}."
    if len(set(answer)) < count:
        return "One mutant is picked twice."
    if not all(0 <= place < len(mutants) for place in answer):
        return f"Indices go from 0 to {len(mutants) - 1}."
    known: dict[str, Callable[[], Any]] = {
        "you keep the first ones. Nothing was compared yet.": lambda: list(range(count)),
        "you ask only whether a value is new, yes or no. After a few picks every value is known, all gains are 0 and "
        "the order of the list decides: count how often it was picked.": lambda: greedy(
            mutants, count, lambda times: float(times == 0)
        ),
        "you prefer what was picked often: the gain must fall with the count.": lambda: greedy(mutants, count, float),
        "you count values among all mutants, once. The counts are those among the *picked*, renewed after every "
        "pick.": lambda: _static(mutants, count),
        "these are the right mutants, but not in the order in which they are picked.": lambda: (
            answer if sorted(answer) == sorted(right) else None
        ),
    }
    turn = next(k for k, (a, b) in enumerate(zip(answer, right, strict=True)) if a != b)
    plain = f"pick {turn + 1} is mutant {right[turn]}, {tuple(mutants[right[turn]])}, not {answer[turn]}."
    return mistake(answer, known) or f"Of {len(mutants)} mutants {plain} Which values did the earlier picks have?"


def _static(mutants: Sequence[Sequence[int]], count: int) -> list[int]:
    everyone = range(len(mutants))
    rarity = [-sum(1 / times for times in _times(mutants, mutant, everyone)) for mutant in mutants]
    return sorted(everyone, key=lambda place: rarity[place])[:count]
