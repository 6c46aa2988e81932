"""What can be shown of a toy kernel: which thread of a block computes what."""

from __future__ import annotations

from dataclasses import dataclass

from subbyte.errors import InvalidInput, Unsupported
from subbyte.families.topic import Option, Topic
from subbyte.info_record import InfoRecord, Table
from toy_family.plan import ToyPlan, why_not
from toy_family.types import PER_WORD


@dataclass(frozen=True)
class ThreadMap(InfoRecord):
    """One block: for each thread with work its image, output pixel and first output channel."""

    workload: str
    config: str
    block: int
    channels: int
    threads: tuple[tuple[int, int, int, int], ...]

    def title(self) -> str:
        """One line that names what the record shows."""
        return f"threads of block {self.block} of {self.workload} ({self.config}): {self.channels} channels each"

    def table(self) -> Table:
        """One row for each thread."""
        rows = tuple((thread, *place) for thread, place in enumerate(self.threads))
        return Table(("thread", "image", "row", "column", "first channel"), rows)


def thread_map(plan: ToyPlan, block: int = 0) -> ThreadMap:
    """The threads of one block. Raises InvalidInput for a block that is not there, Unsupported for a refused plan."""
    if reason := why_not(plan):
        raise Unsupported(f"{plan.workload.label} with {plan.config.key} cannot be built: {reason}")
    if not 0 <= block < plan.launch.grid[0]:
        raise InvalidInput(f"block {block}: this kernel has {plan.launch.grid[0]}")
    w, size = plan.workload, plan.config.threads
    places = []
    for index in range(block * size, min((block + 1) * size, plan.work)):
        pixel, group = divmod(index, plan.groups)
        places.append((pixel // (w.p * w.q), pixel // w.q % w.p, pixel % w.q, group * plan.config.words * PER_WORD))
    return ThreadMap(w.label, plan.config.key, block, plan.columns, tuple(places))


TOPICS: dict[str, Topic[InfoRecord]] = {
    "threads": Topic(
        "Which thread of a block computes which output channels of which pixel.",
        "subbyte explain threads n8h6w6c8k8r3s3p1:w2a2:powers.unsigned --block 1",
        ThreadMap,
        thread_map,
        (Option("block", "block of the launch (default 0)", 0),),
        tab="Threads",
        view="toy_family.view:ThreadView",
    )
}
