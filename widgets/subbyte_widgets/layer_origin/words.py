"""Where a layer's kernel comes from, in words: a row for each thing known, and a sentence for each row."""

from __future__ import annotations

from dataclasses import dataclass

from subbyte.analysis.origin import Origin, Source

NAMES = {"own": "your own record", "shipped": "record of the package", "predicted": "predicted"}
NOTHING = {
    "own": "none: a search here, or compile(tries=16), makes one",
    "shipped": "none of this layer",
    "predicted": "not asked, as there is a record",
}


@dataclass(frozen=True)
class Search:
    """What a search has found so far: the best time in microseconds (None: no success yet) on a device, after this many
    trials. ``real`` is true for times that were measured now, false for recorded or made-up ones."""

    best: float | None
    device: str
    trials: int
    real: bool


@dataclass(frozen=True)
class Row:
    """A line of the picture: a time with a range, or why there is none; ``say`` is the sentence."""

    kind: str
    name: str
    say: str
    microseconds: float | None = None
    low: float | None = None
    high: float | None = None
    device: str = ""
    nothing: str = ""
    taken: bool = False


def rows(record: Origin, search: Search | None) -> list[Row]:
    """The floor, the three sources, and what a search has found so far."""
    found = [_floor(record), *(_source(record, source) for source in NAMES)]
    return [*found, _search(search, record)] if search is not None else found


def whole(record: Origin) -> str:
    """Which kernel is chosen, why, and what to do next."""
    left = f" Not taken: {'; '.join(record.left)}." if record.left else ""
    advice = f" For a measured choice: {record.advice}." if record.advice else ""
    return f"Taken: {record.taken.config}: {record.reason}.{left}{advice}"


def _floor(record: Origin) -> Row:
    if record.floor is None:
        return Row("floor", "floor", "No floor: peaks of these operands on this GPU were not measured.",
                   nothing="not known for these operands")  # fmt: skip
    say = (
        f"No kernel can be faster than {record.floor:.2f} us on {record.floor_device}: launching, moving, multiplying."
    )
    share = f" It explains {record.share:.0%} of the recorded time." if record.share is not None else ""
    return Row("floor", "floor", say + share, record.floor, device=record.floor_device)


def _source(record: Origin, source: str) -> Row:
    one = record.of(source)
    name = NAMES[source]
    if one is None:
        return Row(source, name, f"{_capital(name)}: {NOTHING[source]}.", nothing=NOTHING[source])
    taken = one is record.taken
    said = f"{_capital(name)}: {one.in_words()}; {one.config} of the {one.family} family"
    when = f", {record.measured} UTC, {record.trials} results" if source == "own" and taken and record.measured else ""
    say = f"{said}{when}. compile takes {'it' if taken else 'another one first'}."
    if one.microseconds is None:
        return Row(
            source, name, say, nothing=f"no time: the {one.family} family only puts kernels in order", taken=taken
        )
    return Row(source, name, say, one.microseconds, one.low, one.high, one.device, taken=taken)


def _search(search: Search, record: Origin) -> Row:
    name = "measured now" if search.real else "search, not measured"
    if search.best is None:
        return Row("search", name, f"No result yet after {_many(search.trials)}.", nothing="no result yet")
    what = "measured now" if search.real else "of recorded or made-up times: nothing is stored"
    beside = _beside(search, record.taken)
    say = f"Best of {_many(search.trials)} so far: {search.best:.2f} us on {search.device}, {what}.{beside}"
    return Row("search", name, say, search.best, device=search.device)


def _beside(search: Search, taken: Source) -> str:
    """How the best compares with what is chosen, if both are from GPUs of the same name."""
    if search.best is None or taken.microseconds is None or taken.device != search.device:
        return ""
    known = "expected" if taken.source == "predicted" else "recorded"
    return f" That is {search.best / taken.microseconds:.2f} times the {known} time."


def _many(trials: int) -> str:
    return f"{trials} trial{'s' * (trials != 1)}"


def _capital(words: str) -> str:
    return words[:1].upper() + words[1:]


def ending(search: Search, record: Origin) -> str:
    """The result of a search that has ended."""
    if search.best is None:
        return f"No kernel of {_many(search.trials)} was right and timed: nothing is remembered."
    if not search.real:
        return f"{_many(search.trials)} of recorded or made-up times: nothing was measured, nothing is stored."
    if record.source == "own":
        return "Remembered: compile, build and conv2d take your own record from now on."
    return f"Measured, but {NAMES[record.source]} is taken first: the row that is marked says why."
