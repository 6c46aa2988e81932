"""Exercises of the notebook on results: the floors of a layer, fair shares of a gain, the meaning of an interval."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from itertools import permutations
from math import prod
from typing import Any

from subbyte import arguments
from subbyte.arguments import checked
from subbyte.errors import InvalidInput, did_you_mean
from subbyte.exercises.answers import recognise, unanswered
from subbyte.exercises.feedback import Feedback, call, mistake, short
from subbyte.workload import ConvWorkload
from subbyte.workload import workload as parse

PARTS = ("moving", "multiplying")
TIMES = (
    {"": 8.0, "a": 6.0, "b": 7.5, "c": 6.4, "ab": 5.5, "ac": 5.0, "bc": 6.2, "abc": 4.5},
    {"": 9.0, "a": 9.0, "b": 4.5, "c": 9.0, "ab": 3.0, "ac": 4.0, "bc": 4.5, "abc": 2.5},
)
"""Microseconds with each set of techniques on."""
INTERVALS = (
    (0.004, 0.03, 0.01), (-0.03, -0.002, 0.01), (-0.004, 0.006, 0.01), (-0.02, 0.015, 0.01), (-0.002, 0.02, 0.01),
    (0.011, 0.03, 0.01), (-0.011, 0.004, 0.01), (-0.004, 0.006, 0.001), (0.001, 0.004, 0.01),
)  # fmt: skip
"""Low end, high end, margin."""
WORDS = ("better", "worse", "equivalent", "undecided")


@checked
def check_floors(answer: Any, workload: ConvWorkload | str, terabytes_per_second: float, tops: float) -> Feedback:
    """Check the floors in microseconds, by name (``moving``, ``multiplying``), to within 1 %.

    Moving is x, w and y once, at four bits. Raises InvalidInput for another name.
    """
    if not isinstance(answer, Mapping):
        return Feedback(False, f"Give a dict with the microseconds of {' and '.join(PARTS)}, not {short(answer)}.")
    for name in answer:
        if name not in PARTS:
            raise InvalidInput(f"unknown floor {name!r}: {did_you_mean(name, PARTS)}")
    w = parse(workload)
    arguments.number(terabytes_per_second, "terabytes_per_second", positive=True)
    arguments.number(tops, "tops", positive=True)
    right = {"moving": w.bytes_moved / terabytes_per_second / 1e6, "multiplying": w.operations / tops / 1e6}
    given = {name: answer.get(name) for name in PARTS}
    missing = [name for name, value in given.items() if unanswered(value)]
    x, weights, y = w.n * w.pixels_read * w.c, w.k * w.r * w.s * w.c, w.n * w.p * w.q * w.k
    known = {
        "moving": [
            (2.0, "those are bytes of int8 values: an int4 value is half a byte."),
            (8.0, "those are bytes of float32 or int32 values: an int4 value is half a byte."),
            (x / (x + weights + y), "the weights and the output have to move as well."),
            ((x + weights) / (x + weights + y), "the output has to be written, too."),
            ((x + y) / (x + weights + y), "the weights have to be read, too."),
            ((x * w.r * w.s + weights + y) / (x + weights + y),
             "that is the lowered matrix; a floor counts each datum once."),
            ((w.n * w.h * w.w * w.c + weights + y) / (x + weights + y),
             "with a stride, some pixels are read by no output: they need not move."),
        ],
        "multiplying": [
            (0.5, "those are multiply-accumulates; each counts as two operations."),
            (2.0, "a multiply-accumulate is two operations, not four."),
            (1 / w.n, "that is one image; the layer has a batch."),
        ],
    }  # fmt: skip
    wrong = []
    for name, value in given.items():
        if name not in missing and not _near(value, right[name]):
            scaled = [((lambda a, f=factor, r=right[name]: _near(a, f * r)), words) for factor, words in known[name]]
            units = [
                ((lambda a, f=factor, r=right[name]: _near(a, f * r)), "right digits, wrong unit: microseconds.")
                for factor in (1e-6, 1e-3, 1e3, 1e6)
            ]
            hint = "amount over measured peak: tera is 10^12, a microsecond 10^-6 seconds."
            wrong.append(f"{name}: {recognise(value, [*scaled, *units], hint)}")
    if wrong:
        return Feedback(False, " ".join(wrong))
    if missing:
        return Feedback(False, f"Replace the ... of {', '.join(missing)} with microseconds.")
    longer = max(PARTS, key=lambda name: right[name])
    return Feedback(True, f"{right['moving']:.2f} us to move, {right['multiplying']:.2f} us to multiply: a perfect "
                          f"kernel of this layer would be limited by {longer}.")  # fmt: skip


def _near(value: Any, right: float) -> bool:
    try:
        return not isinstance(value, (bool, str)) and abs(float(value) / right - 1) < 0.01
    except (TypeError, ValueError):
        return False


def check_fair_share(shares: Callable[[Mapping[str, float]], Mapping[str, float]]) -> Feedback:
    """Check ``shares(times)``: the fair share (Shapley) of each technique in the whole gain, as a factor.

    ``times`` maps each set of techniques, such as ``"ac"``, to microseconds. A technique's share is the geometric mean,
    over all orders in which the three can be added, of the speed-up when it is added.
    """
    for number, times in enumerate(TIMES, start=1):
        given, problem = call(shares, dict(times), case=f"table {number}")
        if problem is not None:
            return problem
        if not isinstance(given, Mapping) or set(given) != set("abc") or unanswered(given):
            return Feedback(False, "Return a dict with a factor for each of a, b and c.")
        right = _shares(times, list(permutations("abc")))
        if not all(_near(given[name], right[name]) for name in "abc"):
            return Feedback(False, f"Table {number}: " + _about_shares(given, right, times))
    return Feedback(True, "The shares multiply to the whole gain, whatever the order of adding.")


def _gain(times: Mapping[str, float], before: str, name: str) -> float:
    return times["".join(sorted(before))] / times["".join(sorted(before + name))]


def _shares(times: Mapping[str, float], orders: list[tuple[str, ...]]) -> dict[str, float]:
    gains = {name: [_gain(times, "".join(o[: o.index(name)]), name) for o in orders] for name in "abc"}
    return {name: prod(found) ** (1 / len(found)) for name, found in gains.items()}


def _about_shares(given: Mapping[str, Any], right: Mapping[str, float], times: Mapping[str, float]) -> str:
    orders = list(permutations("abc"))
    sums = {n: [_gain(times, "".join(o[: o.index(n)]), n) for o in orders] for n in "abc"}
    sets = {n: ["", *(m for m in "abc" if m != n), "".join(m for m in "abc" if m != n)] for n in "abc"}
    known = [
        (_shares(times, [("a", "b", "c")]), "that is one order of adding; another order divides the gain differently."),
        ({n: _gain(times, "", n) for n in "abc"}, "that is each technique on its own, added to nothing."),
        ({n: _gain(times, "".join(m for m in "abc" if m != n), n) for n in "abc"},
         "that is each technique added last (Figure 16). These do not multiply to the whole gain."),
        ({n: sum(sums[n]) / 6 for n in "abc"},
         "speed-ups are factors: take the geometric mean (the mean of logarithms), not the arithmetic one."),
        ({n: 1 / value for n, value in right.items()}, "upside down: a speed-up is time before over time after."),
        ({n: prod(_gain(times, s, n) for s in sets[n]) ** 0.25 for n in "abc"},
         ("you average over the four sets of others with equal weight; over the orders, the empty set and the set of "
          "both others come twice as often as the others.")),
    ]  # fmt: skip
    for wrong, words in known:
        if all(_near(given[name], wrong[name]) for name in "abc"):
            return words
    whole, product = times[""] / times["abc"], prod(float(given[name]) for name in "abc")
    if abs(product / whole - 1) > 0.01:
        return f"your factors multiply to {product:.2f}, the whole gain is {whole:.2f}."
    return "the product is right, but not how it is divided: go through all six orders."


def check_verdict(verdict: Callable[[float, float, float], str]) -> Feedback:
    """Check ``verdict(low, high, margin)``: what can be concluded from the interval of a difference.

    ``better`` or ``worse`` if it excludes 0, else ``equivalent`` if it lies within the margin on both sides, else
    ``undecided``.
    """
    given = []
    for low, high, margin in INTERVALS:
        case = f"interval {low} to {high}, margin {margin}"
        answer, problem = call(verdict, low, high, margin, case=case)
        if problem is not None:
            return problem
        if answer not in WORDS:
            return Feedback(False, f"For {case}: return one of {', '.join(WORDS)}.")
        given.append(answer)
    right = [_verdict(*interval) for interval in INTERVALS]
    if given == right:
        return Feedback(True, "All intervals agree. Not finding a difference is not finding that there is none.")
    known: dict[str, Callable[[], Any]] = {
        "an interval that contains 0 does not show that there is no difference: it may be too wide to tell.": lambda: [
            word if word in ("better", "worse") else "equivalent" for word in right
        ],
        "you never say equivalent: an interval wholly within the margin shows that any difference is too small to "
        "matter.": lambda: [word if word in ("better", "worse") else "undecided" for word in right],
        "you look at the middle of the interval; its ends decide.": lambda: [
            "better" if low + high > 0 else "worse" for low, high, _ in INTERVALS
        ],
        "the margin is for equivalence; better and worse ask only whether 0 is excluded.": lambda: [
            "better" if low > m else "worse" if high < -m else "equivalent" if -m < low and high < m else "undecided"
            for low, high, m in INTERVALS
        ],
        "better and worse are swapped: the difference is a minus b.": lambda: [
            {"better": "worse", "worse": "better"}.get(word, word) for word in right
        ],
    }
    place = next(k for k, (a, b) in enumerate(zip(given, right, strict=True)) if a != b)
    low, high, margin = INTERVALS[place]
    about = mistake(given, known) or f"it is {right[place]}, not {given[place]}."
    return Feedback(False, f"Interval {low} to {high}, margin {margin}: {about}")


def _verdict(low: float, high: float, margin: float) -> str:
    if low > 0:
        return "better"
    if high < 0:
        return "worse"
    return "equivalent" if -margin < low and high < margin else "undecided"
