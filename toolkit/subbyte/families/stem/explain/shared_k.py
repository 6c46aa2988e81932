"""The words of a window in each step, and the values of K they contain."""

from __future__ import annotations

from dataclasses import dataclass

from subbyte.errors import InvalidInput
from subbyte.families.stem.plan import STEP_BYTES, StemPlan
from subbyte.families.stem.rules import why_not
from subbyte.families.stem.strings import WORD_BYTES
from subbyte.info_record import InfoRecord, Table, columns_text
from subbyte.workload.conv import ConvWorkload

STEP_WORDS = STEP_BYTES // WORD_BYTES
CONSTANT = "constant"


@dataclass(frozen=True)
class StringWord:
    """A word of a step, and of a string of the window: its four bytes are (kernel row, kernel column, channel), None
    if unused (the weight is 0), or "constant", whose weights provide the initial sums."""

    step: int
    word: int
    string: int
    bytes: tuple[tuple[int, int, int] | str | None, ...]

    @property
    def text(self) -> str:
        """``0.0.0 0.0.2 - constant``: row, column and channel of each byte."""
        return " ".join(".".join(map(str, one)) if isinstance(one, tuple) else one or "-" for one in self.bytes)


@dataclass(frozen=True)
class SharedK(InfoRecord):
    """The window of an output pixel of phase ``phase``, out of ``phases``.

    ``channels`` is the number of values stored per pixel. Word ``i`` of a step is bytes ``4 i`` to ``4 i + 3`` of K.
    ``padded_steps`` is the number of steps of kernels that pad channels to 32 for each tap."""

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
        """Values of K in use."""
        return sum(isinstance(value, tuple) for word in self.words for value in word.bytes)

    def title(self) -> str:
        """One line that names what the record shows."""
        return (
            f"K of {self.workload.label} in {self.steps} instructions in place of {self.padded_steps}: "
            f"{self.used} of {self.steps * STEP_BYTES} values count"
        )

    def table(self) -> Table:
        """One row per word."""
        rows = ((one.step, one.word, one.string, one.text) for one in self.words)
        return Table(("step", "word", "string of the window", "row.column.channel of its 4 bytes"), tuple(rows))

    def text(self) -> str:
        """The table, and how pixels are stored."""
        stored = f"pixels are stored as {self.channels} values; phase {self.phase} of {self.phases}"
        return "\n".join([self.title(), "", columns_text(self.table()), "", stored])


def shared_k(plan: StemPlan, phase: int = 0) -> SharedK:
    """How K is shared in a kernel. Raises InvalidInput for a plan that is rejected and for a phase that does not
    exist."""
    w = plan.workload
    if reason := why_not(plan):
        raise InvalidInput(f"{w.label} with {plan.config.key} on {plan.arch.name} cannot be built: {reason}")
    lay = plan.strings
    if not 0 <= phase < lay.phases:
        raise InvalidInput(f"phase {phase}: windows of this layer have phases 0 to {lay.phases - 1}")

    taps, words = lay.taps(phase), []
    for place, part in enumerate(lay.window(phase)):
        step, word = divmod(place, STEP_WORDS)
        bytes_ = tuple(CONSTANT if isinstance(one, int) else taps.get(4 * place + i) for i, one in enumerate(part))
        words.append(StringWord(step, word, place // lay.length, bytes_))
    return SharedK(
        w, plan.config.key, phase, lay.phases, lay.channels, lay.steps, w.r * w.s * w.channel_blocks, tuple(words)
    )
