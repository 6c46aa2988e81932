"""What the words of a window are in each step, and which values of K that makes."""

from __future__ import annotations

from dataclasses import dataclass

from subbyte.errors import InvalidInput
from subbyte.families.stem.plan import STEP_BYTES, StemPlan
from subbyte.families.stem.rules import why_not
from subbyte.families.stem.strings import WORD_BYTES
from subbyte.info_record import InfoRecord, Table, columns_text
from subbyte.numerics.pixel_strips import WORD_VALUES
from subbyte.workload.conv import ConvWorkload

STEP_WORDS = STEP_BYTES // WORD_BYTES


@dataclass(frozen=True)
class StringWord:
    """A word of a step, and of a string of the window: its four bytes are (kernel row, kernel column, channel), or None
    where the window has none and the weight is 0. ``constant``: its bytes are constants, whose weights give what sums
    begin with."""

    step: int
    word: int
    string: int
    bytes: tuple[tuple[int, int, int] | None, ...]
    constant: bool

    @property
    def text(self) -> str:
        """``0.0.0 0.0.2 -``: row, column and channel of each byte."""
        if self.constant:
            return "constants"
        return " ".join("-" if one is None else ".".join(map(str, one)) for one in self.bytes)


@dataclass(frozen=True)
class SharedK(InfoRecord):
    """The window of an output pixel of phase ``phase``, of ``phases`` there are.

    ``channels`` is what a pixel is stored as. Word ``i`` of a step is bytes ``4 i`` to ``4 i + 3`` of K. ``padded_steps``
    is what kernels need that pad channels to 32 for each tap."""

    workload: ConvWorkload
    config: str
    phase: int
    phases: int
    channels: int
    steps: int
    padded_steps: int
    words: tuple[StringWord, ...]

    @property
    def used(self) -> int:
        """Values of K that count."""
        return sum(value is not None for word in self.words for value in word.bytes)

    def title(self) -> str:
        """One line that names what the record shows."""
        return (
            f"K of {self.workload.label} in {self.steps} instructions in place of {self.padded_steps}: "
            f"{self.used} of {self.steps * STEP_BYTES} values count"
        )

    def table(self) -> Table:
        """One row for each word."""
        rows = ((one.step, one.word, one.string, one.text) for one in self.words)
        return Table(("step", "word", "string of the window", "row.column.channel of its 4 bytes"), tuple(rows))

    def text(self) -> str:
        """The table, and how pixels are stored."""
        stored = f"pixels are stored as {self.channels} values; phase {self.phase} of {self.phases}"
        return "\n".join([self.title(), "", columns_text(self.table()), "", stored])


def shared_k(plan: StemPlan, phase: int = 0) -> SharedK:
    """What shares K in a kernel. Raises InvalidInput for a plan that is refused and a phase that there is not."""
    w = plan.workload
    if reason := why_not(plan):
        raise InvalidInput(f"{w.label} with {plan.config.key} on {plan.arch.name} is refused: {reason}")
    lay = plan.strings
    if not 0 <= phase < lay.phases:
        raise InvalidInput(f"phase {phase}: windows of this layer have phases 0 to {lay.phases - 1}")

    def tap(string: int, row: int, value: int) -> tuple[int, int, int] | None:
        s, c = divmod(string * WORD_VALUES + value - lay.phase_values(phase), lay.channels)
        return (row, s, c) if 0 <= s < w.s and c < w.c else None

    words = []
    for string in range(lay.row_words):
        for place, part in enumerate(lay.parts):
            step, word = divmod(string * len(lay.parts) + place, STEP_WORDS)
            taps = tuple(tap(string, row, value) for row, value in part.values)
            words.append(StringWord(step, word, string, taps, not part.rows))
    return SharedK(
        w, plan.config.key, phase, lay.phases, lay.channels, lay.steps, w.r * w.s * w.channel_blocks, tuple(words)
    )
