"""One case, what came of it, and the table of all areas."""

from __future__ import annotations

import contextlib
import io
import json
import random
import time
import traceback
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from importlib import import_module
from itertools import islice
from pathlib import Path

AREAS = tuple(sorted(file.stem for file in Path(__file__).with_name("areas").glob("[a-z]*.py")))
"""Names of the areas: the modules of :mod:`hostile.areas`."""

ANSWERED, REFUSED = "answered", "refused"
TRACEBACK, ACCEPTED, WRONG, UNCLEAR, SLOW = "traceback", "accepted", "wrong", "unclear", "slow"
BAD = (TRACEBACK, ACCEPTED, WRONG, UNCLEAR, SLOW)
LONGEST_MESSAGE = 1_000
"""Characters: a refusal names its input and does not repeat all of it."""


@dataclass(frozen=True)
class Case:
    """One input. ``call`` tries it; ``must`` is ``refuse``, ``answer`` or ``either``; ``right`` judges an answer."""

    text: str
    call: Callable[[], object]
    must: str = "either"
    right: Callable[[object], bool] | None = None
    seconds: float = 20.0


@dataclass(frozen=True)
class Outcome:
    """What came of one case: one of the words above, and what to look at when it is bad."""

    kind: str
    detail: str = ""


class Failure(Exception):
    """Raised by a case that drives a program: ``kind`` is the outcome, such as ``traceback``."""

    def __init__(self, kind: str, detail: str) -> None:
        super().__init__(detail)
        self.kind = kind


def attempt(case: Case) -> Outcome:
    """Try one case. Only errors that subbyte raises on purpose count as a refusal."""
    from subbyte.errors import SubbyteError

    begun = time.monotonic()
    try:
        with contextlib.redirect_stderr(io.StringIO()):
            answer = case.call()
    except Failure as failure:
        return Outcome(failure.kind, str(failure))
    except SubbyteError as error:
        message = str(error)
        if case.must == "answer":
            return Outcome(WRONG, f"refused: {message[:300]}")
        if not message.strip() or len(message) > LONGEST_MESSAGE:
            return Outcome(UNCLEAR, f"{len(message)} characters: {message[:200]}")
        outcome = Outcome(REFUSED, message)
    except Exception as error:
        place = traceback.extract_tb(error.__traceback__)[-1]
        return Outcome(
            TRACEBACK, f"{type(error).__name__} at {Path(place.filename).name}:{place.lineno}: {error!s:.200}"
        )
    else:
        if case.must == "refuse":
            return Outcome(ACCEPTED, f"{answer!r:.200}")
        if case.right is not None and not case.right(answer):
            return Outcome(WRONG, f"{answer!r:.200}")
        outcome = Outcome(ANSWERED)
    spent = time.monotonic() - begun
    return outcome if spent <= case.seconds else Outcome(SLOW, f"{spent:.1f} s, at most {case.seconds}")


@dataclass
class Tally:
    """The outcomes of one area."""

    area: str
    counts: Counter[str] = field(default_factory=Counter)
    bad: list[tuple[str, Outcome]] = field(default_factory=list)

    def add(self, case: Case, outcome: Outcome) -> None:
        """Count one outcome and keep it when it is bad."""
        self.counts[outcome.kind] += 1
        if outcome.kind in BAD:
            self.bad.append((case.text, outcome))

    @property
    def tried(self) -> int:
        """Cases tried."""
        return self.counts.total()


def cases(area: str, seed: int = 0) -> Iterator[Case]:
    """The cases of an area, the same for the same seed: ``cases(rng)`` of its module."""
    made: Iterable[Case] = import_module(f"hostile.areas.{area}").cases(random.Random(f"{area} {seed}"))
    return iter(made)


def try_area(area: str, *, every: int = 1, most: int | None = None, seed: int = 0) -> Tally:
    """Try each ``every``-th case of an area, at most ``most``."""
    tally = Tally(area)
    for case in islice(islice(cases(area, seed), 0, None, every), most):
        tally.add(case, attempt(case))
    return tally


def table(tallies: Sequence[Tally]) -> str:
    """The counts of all areas as a Markdown table."""
    lines = ["| area | tried | answered | refused | " + " | ".join(BAD) + " |", "| --- |" + " ---: |" * (3 + len(BAD))]
    for tally in tallies:
        numbers = [tally.tried, *(tally.counts[kind] for kind in (ANSWERED, REFUSED, *BAD))]
        lines.append(f"| {tally.area.replace('_', ' ')} | " + " | ".join(f"{number:,}" for number in numbers) + " |")
    return "\n".join(lines)


def command(*argv: str, json_output: bool | None = None) -> str:
    """Run a command line in this process and return its stdout.

    Raises InvalidInput's like for a clean refusal, :class:`Failure` for a traceback, an exit code that is none of
    ours or a ``--json`` failure that is not one object.
    """
    from subbyte.cli.main import main
    from subbyte.errors import SubbyteError

    out, err = io.StringIO(), io.StringIO()
    with contextlib.redirect_stdout(out), contextlib.redirect_stderr(err):
        code = main(list(argv))
    text, said = out.getvalue(), err.getvalue()
    if "Traceback" in said or code not in (0, 1, 2, 3, 130):
        raise Failure(TRACEBACK, f"exit {code}: {said[-300:]}")
    if "--json" in argv if json_output is None else json_output:
        try:
            json.loads(text)
        except ValueError:
            raise Failure(UNCLEAR, f"stdout is not one object: {text[:200]!r}") from None
    if code:
        raise SubbyteError(said.strip())
    return text
