"""What each lane of a quad has of a window in each step, and which values of K that makes."""

from __future__ import annotations

from dataclasses import dataclass

from subbyte.errors import InvalidInput
from subbyte.families.stem.plan import StemPlan
from subbyte.families.stem.rules import why_not
from subbyte.families.stem.strips import LANES
from subbyte.info_record import InfoRecord, Table, columns_text
from subbyte.numerics.pixel_strips import WORD_VALUES
from subbyte.workload.conv import ConvWorkload


@dataclass(frozen=True)
class LaneWord:
    """A lane's word of a step: kernel row and word of the window's row, and its 8 values: (kernel column, channel), or
    None where the window has none and the weight is 0."""

    step: int
    lane: int
    row: int
    word: int
    values: tuple[tuple[int, int] | None, ...]

    @property
    def text(self) -> str:
        """``0.0 0.1 0.2 -``: column and channel of each value."""
        return " ".join("-" if one is None else f"{one[0]}.{one[1]}" for one in self.values)


@dataclass(frozen=True)
class SharedK(InfoRecord):
    """The window of an output pixel of phase ``phase``, of ``phases`` there are.

    ``channels`` is what a pixel is stored as. Value ``v`` of lane ``q`` is byte ``4 q + v / 2`` of K, and 16 more where
    v is odd. ``padded_steps`` is what kernels need that pad channels to 32 for each tap."""

    workload: ConvWorkload
    config: str
    phase: int
    phases: int
    channels: int
    steps: int
    padded_steps: int
    words: tuple[LaneWord, ...]

    @property
    def used(self) -> int:
        """Values of K that count."""
        return sum(value is not None for word in self.words for value in word.values)

    def title(self) -> str:
        """One line that names what the record shows."""
        taps = self.steps * LANES * WORD_VALUES
        return (
            f"K of {self.workload.label} in {self.steps} instructions in place of {self.padded_steps}: "
            f"{self.used} of {taps} values count"
        )

    def table(self) -> Table:
        """One row for each word."""
        rows = ((one.step, one.lane, one.row, one.word, one.text) for one in self.words)
        return Table(("step", "lane of a quad", "kernel row", "word", "column.channel of its 8 values"), tuple(rows))

    def text(self) -> str:
        """The table, and how pixels are stored."""
        stored = f"pixels are stored as {self.channels} values; phase {self.phase} of {self.phases}"
        return "\n".join([self.title(), "", columns_text(self.table()), "", stored])


def shared_k(plan: StemPlan, phase: int = 0) -> SharedK:
    """What shares K in a kernel. Raises InvalidInput for a plan that is refused and a phase that there is not."""
    w = plan.workload
    if reason := why_not(plan):
        raise InvalidInput(f"{w.label} with {plan.config.key} on {plan.arch.name} is refused: {reason}")
    lay = plan.strips
    if not 0 <= phase < lay.phases:
        raise InvalidInput(f"phase {phase}: windows of this layer have phases 0 to {lay.phases - 1}")
    words = []
    for step in range(lay.steps):
        for lane in range(LANES):
            row, word = divmod(step * LANES + lane, lay.row_words)
            first = word * WORD_VALUES - lay.phase_values(phase)
            taps = (divmod(first + value, lay.channels) for value in range(WORD_VALUES))
            values = tuple((s, c) if row < w.r and 0 <= s < w.s and c < w.c else None for s, c in taps)
            words.append(LaneWord(step, lane, row, word, values))
    return SharedK(
        w, plan.config.key, phase, lay.phases, lay.channels, lay.steps, w.r * w.s * w.channel_blocks, tuple(words)
    )
