"""Memory accesses of one warp as data: every lane's address, the sectors, lines and banks it touches.

The addresses come from the same :class:`subbyte.families.mma.plan.Plan` as the generated kernel.
Source of the comparison: Choi et al. 2022 (arXiv 2202.06819), section 3.3: 32 int4 channels are 16 bytes, half of a
32-byte sector, and the eight images of one operand tile are far apart in NHWC; in NHWCnc they are 128 contiguous bytes.
"""

from __future__ import annotations

from dataclasses import dataclass

from subbyte.device.memory import LINE, SECTOR, BankUse, SectorUse
from subbyte.families.mma.config import MmaConfig
from subbyte.info_record import InfoRecord, Table, columns_text
from subbyte.workload import ConvWorkload

_TEXT_LINES = 16


@dataclass(frozen=True)
class Access(InfoRecord):
    """One load or store instruction of one warp.

    ``addresses`` are bytes from the start of the tensor (global) or of the block's dynamic shared memory; a lane's is
    None if it is inactive (outside the tensor, padding, or nothing left to copy). ``places`` describes in terms of
    ``axes`` what each lane moves.
    """

    kind: str
    """activation load, weight load, output store, activation fragment, weight fragment, sum spill or sum read."""
    instruction: str
    memory: str
    """global or shared."""
    bytes_per_lane: int
    addresses: tuple[int | None, ...]
    axes: tuple[str, ...]
    places: tuple[tuple[int, ...] | None, ...]
    sectors: SectorUse | None
    """For global memory."""
    banks: BankUse | None
    """For shared memory."""

    def title(self) -> str:
        """One line that names the access and what it costs."""
        head = f"{self.kind} ({self.instruction}, {self.bytes_per_lane} bytes a lane)"
        if self.sectors is not None:
            use = self.sectors
            return (
                f"{head}: {len(use.sectors)} sectors in {_lines(use.lines)}, {use.useful_bytes} of {use.moved_bytes} "
                f"bytes useful ({use.efficiency:.0%})"
            )
        assert self.banks is not None
        return f"{head}: {self.banks.wavefronts} wavefronts, {self.banks.ideal} without conflicts"

    def table(self) -> Table:
        """One row per lane."""
        unit = "sector" if self.memory == "global" else "bank"
        rows = []
        for lane, (address, place) in enumerate(zip(self.addresses, self.places, strict=True)):
            where = None if address is None else address // SECTOR if unit == "sector" else address // 4 % 32
            rows.append((lane, *(place or (None,) * len(self.axes)), address, where))
        return Table(("lane", *self.axes, "byte address", unit), tuple(rows))

    def text(self) -> str:
        """The title, and for global memory each line with the bytes used in its four sectors."""
        if self.sectors is None:
            return self.title() + "\n" + columns_text(self.table(), "  ")
        return self.title() + "\n" + self.sector_map()

    def sector_map(self) -> str:
        """Each 128-byte line touched, with the bytes used in its four sectors; a dot is a sector not moved."""
        if self.sectors is None:
            return ""
        used = dict(zip(self.sectors.sectors, self.sectors.used, strict=True))
        lines = sorted({sector * SECTOR // LINE for sector in used})
        rows = []
        for line in lines[:_TEXT_LINES]:
            parts = [used.get(line * 4 + i) for i in range(4)]
            marks = " ".join("[  .  ]" if count is None else f"[{count:>2}/32]" for count in parts)
            rows.append(f"  byte {line * LINE:>9}  {marks}")
        if len(lines) > _TEXT_LINES:
            rows.append(f"  ... and {len(lines) - _TEXT_LINES} more lines")
        return "\n".join(rows)


@dataclass(frozen=True)
class Accesses(InfoRecord):
    """The accesses of one warp of one block: a stage's copies, its first fragment loads, the output stores.

    Not included: the requantization parameters, and the sums exchanged by warps that share the input channels.
    """

    workload: ConvWorkload
    config: MmaConfig
    arch: str
    layout: str
    block: tuple[int, int]
    warp: int
    iteration: int
    tile: Access
    """The 8 images x 32 channels of a single pixel, by 8 lanes: the cost of one operand tile in this layout."""
    accesses: tuple[Access, ...]

    def of(self, kind: str) -> tuple[Access, ...]:
        """The accesses of one kind, in program order."""
        return tuple(access for access in self.accesses if access.kind == kind)

    def title(self) -> str:
        """One line that names workload, layout, block and warp."""
        return (
            f"accesses of {self.workload.label} in {self.layout}: block {self.block[0]},{self.block[1]}, "
            f"warp {self.warp}, iteration {self.iteration}"
        )

    def table(self) -> Table:
        """One row per kind of access, global memory first."""
        rows = []
        for kind in dict.fromkeys(access.kind for access in self.accesses):
            group = self.of(kind)
            lanes = sum(address is not None for access in group for address in access.addresses)
            uses = [access.sectors for access in group if access.sectors is not None]
            banks = [access.banks for access in group if access.banks is not None]
            useful, moved = sum(use.useful_bytes for use in uses), sum(use.moved_bytes for use in uses)
            rows.append(
                (
                    kind, group[0].memory, len(group), lanes,
                    sum(len(use.sectors) for use in uses) if uses else None,
                    sum(use.lines for use in uses) if uses else None,
                    f"{useful / moved:.0%}" if moved else None,
                    sum(bank.wavefronts for bank in banks) if banks else None,
                    sum(bank.ideal for bank in banks) if banks else None,
                )
            )  # fmt: skip
        columns = (
            "kind", "memory", "instructions", "lanes", "sectors", "lines", "useful", "wavefronts", "conflict-free",
        )  # fmt: skip
        return Table(columns, tuple(rows))

    def text(self) -> str:
        """One operand tile, the sums of each kind, and the sector map of the first activation load and store."""
        parts = [self.title(), f"one tile of 8 images x 32 channels, {self.tile.text()}", columns_text(self.table())]
        for kind in ("activation load", "output store"):
            if group := self.of(kind):
                fullest = max(group, key=lambda access: len(access.addresses) - access.addresses.count(None))
                parts.append(f"one {fullest.text()}")
        return "\n\n".join(parts)


def _lines(count: int) -> str:
    return "1 line" if count == 1 else f"{count} lines"
