"""The speed of light: how fast a convolution could be on a GPU, how fast it was, and what accounts for the difference.

Three floors, each from a measured peak (:mod:`subbyte.device.peaks`): launching a kernel, moving every operand and
result once at four bits, and multiplying at the rate of the kernel family's own matrix instruction.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass, replace
from typing import Any

from subbyte.analysis.ablation import Ablation
from subbyte.analysis.recorded import OURS, landscape_workloads, recorded_ablation, recorded_fastest, side_by_sides
from subbyte.arguments import checked
from subbyte.device import arch as arch_named
from subbyte.device.peaks import DEFAULT_DEVICE, MeasuredPeaks, measured_peaks
from subbyte.errors import InvalidInput, Unsupported
from subbyte.families.registry import config_from_dict, family_names, family_of_fields, newest_first
from subbyte.former import FormerFields
from subbyte.kernel.choose import recorded_best
from subbyte.numerics.bit_products import bit_products
from subbyte.technique.record import InfoRecord, Table, columns_text
from subbyte.workload import INT4, ConvWorkload
from subbyte.workload import workload as parse

TWO_OF_FOUR = (2, 4)
"""Weight types that the instructions of sparse Tensor Cores accept."""
_BITS = {"int4": 4, "int8": 8, "float16": 16, "bfloat16": 16, "fp8": 8, "int32": 32}


@dataclass(frozen=True)
class Floor:
    """The least time that one resource alone needs, in microseconds; ``why`` says what was assumed."""

    name: str
    microseconds: float
    why: str


@dataclass(frozen=True)
class Timed:
    """A measured time of one side. ``config`` is the configuration for ours, "" for others; ``source`` the record."""

    side: str
    microseconds: float
    tops: float
    config: str
    source: str


@dataclass(frozen=True)
class SpeedLimits(FormerFields, InfoRecord, former={"ceiling_tops": "peak_tops"}):
    """One workload on one GPU: floors, measured times, and what each technique contributed.

    ``atom`` is the matrix instruction of the best known configuration's family, ``measured`` that configuration's time
    (None: nothing is recorded), ``others`` the other sides, fastest first. ``ablation`` is None if no ablation of the
    workload is recorded.
    """

    workload: str
    spec: str
    batch: int
    device: str
    operations: int
    bytes_moved: int
    atom: str
    peak_tops: float
    floors: tuple[Floor, ...]
    measured: Timed | None
    others: tuple[Timed, ...]
    ablation: Ablation | None

    def floor_of(self, name: str) -> float:
        """Microseconds of the floor called ``launch``, ``bytes`` or ``arithmetic``."""
        return next(floor.microseconds for floor in self.floors if floor.name == name)

    @property
    def floor(self) -> float:
        """Launch, plus the longer of moving and multiplying, which can overlap: microseconds."""
        return self.floor_of("launch") + max(self.floor_of("bytes"), self.floor_of("arithmetic"))

    @property
    def bound(self) -> str:
        """The highest floor: what would limit a perfect kernel."""
        return max(self.floors, key=lambda floor: floor.microseconds).name

    @property
    def share(self) -> float | None:
        """The part of the measured time that the floor explains; 1 is the speed of light. None without a
        measurement."""
        return self.floor / self.measured.microseconds if self.measured else None

    @property
    def speed_up(self) -> float | None:
        """How many times as fast as the fastest other side; None if either is missing."""
        if self.measured is None or not self.others:
            return None
        return self.others[0].microseconds / self.measured.microseconds

    @property
    def _other(self) -> str:
        return self.others[0].side.removesuffix(", graph API")

    @property
    def finding(self) -> str:
        """The conclusion from the numbers, in one sentence."""
        if self.measured is None:
            return f"{self.workload} cannot be faster than {self.floor:.2f} us on {self.device}; nothing is recorded."
        text = (
            f"{self.workload} takes {self.measured.microseconds:.2f} us, "
            f"{self.measured.microseconds / self.floor:.1f} times its floor of {self.floor:.2f} us"
        )
        if self.speed_up is None:
            return text + "."
        if self.speed_up < 1:
            return text + f"; {self._other} is faster: it takes {self.others[0].microseconds:.2f} us."
        return text + f", and is {self.speed_up:.2f} times as fast as {self._other}."

    def title(self) -> str:
        """Workload and GPU."""
        return f"Speed of light of {self.workload} on {self.device}"

    def table(self) -> Table:
        """One row for each floor and each measured side."""
        rows = [("floor", f.name, f.microseconds, self._tops(f.microseconds), f.why) for f in self.floors]
        rows.append(("floor", "together", self.floor, self._tops(self.floor), "launch, then the longer of the others"))
        sides = ([self.measured] if self.measured else []) + list(self.others)
        rows += [("measured", t.side, t.microseconds, t.tops, t.config or t.source) for t in sides]
        return Table(("kind", "what", "us", "TOPS", "from"), tuple(rows))

    def text(self) -> str:
        """The table, the conclusion, and the techniques."""
        parts = [self.title(), columns_text(self.table()), self.finding]
        if self.ablation is not None:
            parts.append(self.ablation.text())
        return "\n\n".join(parts)

    def _tops(self, microseconds: float) -> float:
        return self.operations / microseconds / 1e6


@dataclass(frozen=True)
class RooflinePoint:
    """One measured side of one workload: operations per byte if x, w and y are moved once, and the rate that was
    reached.

    ``ours`` marks this toolkit's kernels, whose bytes are those of four-bit operands.
    """

    workload: str
    spec: str
    batch: int
    side: str
    ours: bool
    intensity: float
    tops: float
    microseconds: float


@dataclass(frozen=True)
class Roofline(InfoRecord):
    """Everything measured on a GPU, under its roofs. ``roofs`` are 10^12 operations per second by matrix instruction;
    left of ``ridge(roof)`` the copy bandwidth is the roof."""

    device: str
    roofs: dict[str, float]
    copy_terabytes_per_second: float
    points: tuple[RooflinePoint, ...]

    def of_workloads(self, specs: Collection[str]) -> Roofline:
        """The same roofs, with the points of these convolutions only."""
        return replace(self, points=tuple(point for point in self.points if point.spec in specs))

    def ridge(self, atom: str) -> float:
        """Operations per byte at which bandwidth and an instruction's measured peak meet."""
        return self.roofs[atom] / self.copy_terabytes_per_second

    def title(self) -> str:
        """What the roofline shows."""
        layers = len({point.spec for point in self.points})
        return f"Roofline of {self.device}: {layers} workloads, {len(self.points)} measured times"

    def table(self) -> Table:
        """One row for each point."""
        columns = ("workload", "batch", "side", "operations per byte", "TOPS", "us")
        rows = [(p.workload, p.batch, p.side, p.intensity, p.tops, p.microseconds) for p in self.points]
        return Table(columns, tuple(rows))


@checked
def speed_of_light(
    workload: ConvWorkload | str, device: str = DEFAULT_DEVICE, microseconds: float | None = None
) -> SpeedLimits:
    """The floors of a workload on a GPU, with the best recorded time and those of other libraries, in microseconds.

    ``microseconds`` replaces the recorded time, for example with one measured just now. Types other than int4 may be
    multiplied bit by bit, at the peak of the one-bit instructions; 2:4 weights use the peak of the sparse instructions;
    weights with blocks of zeros count only their live blocks. The other libraries' times are for the dense int4 layer.
    Raises InvalidInput for an unknown workload, a GPU whose peaks were not measured, or a time that is not positive,
    Unsupported for types whose values are not sums of bits.
    """
    w, limits = parse(workload), measured_peaks(device)
    if w.precision != INT4 and not limits.binary_tops:
        raise Unsupported(f"speed of {w.label}: no peaks of one-bit instructions were measured on {device}")
    if w.precision != INT4:
        bit_products(w.precision)
    if microseconds is not None and not microseconds > 0:
        raise InvalidInput(f"microseconds={microseconds}: a measured time is greater than 0")
    best, atom, family = _best(w, device, limits)
    if microseconds is not None:
        best = Timed(f"{OURS} {w.precision.label}", microseconds, w.operations / microseconds / 1e6, "", "given")
    others: dict[str, Timed] = {}
    for found in _sides(replace(w, precision=INT4), device):
        if not found.side.startswith(OURS):
            others[found.side] = found  # records are sorted by date: the latest one counts
    return SpeedLimits(
        w.label, w.spec, w.n, device, w.operations, w.bytes_moved, atom, limits.peak(atom),
        _floors(w, limits, atom), best, tuple(sorted(others.values(), key=lambda side: side.microseconds)),
        recorded_ablation(w.spec, device, family),
    )  # fmt: skip


@checked
def studied_workloads(device: str = DEFAULT_DEVICE) -> tuple[ConvWorkload, ...]:
    """The workloads on a GPU that have a recorded landscape, or an ablation of some family."""
    found = {one.spec for one in landscape_workloads(device)}
    return tuple(
        w for w in recorded_workloads(device)
        if w.spec in found or any(recorded_ablation(w.spec, device, family) for family in family_names())
    )  # fmt: skip


@checked
def recorded_workloads(device: str = DEFAULT_DEVICE) -> tuple[ConvWorkload, ...]:
    """Every int4 workload with a recorded time on a GPU: sorted by batch size, then by name.

    The measured peaks are those of int4 kernels.
    """
    found = {one.spec: one for one in landscape_workloads(device) if one.precision == INT4}
    for record in side_by_sides():
        if record.device == device:
            found |= {row.spec: parse(row.workload) for row in record.rows if row.spec not in found}
    return tuple(sorted(found.values(), key=lambda w: (w.n, w.label)))


@checked
def roofline(device: str = DEFAULT_DEVICE) -> Roofline:
    """Everything recorded on a GPU under its roofs: our best times and every other side. Raises InvalidInput."""
    limits = measured_peaks(device)
    points: list[RooflinePoint] = []
    roofs: dict[str, float] = {}
    for w in recorded_workloads(device):
        one = speed_of_light(w, device)
        roofs[one.atom] = one.peak_tops
        sides = ([one.measured] if one.measured else []) + list(one.others)
        points += [
            RooflinePoint(w.label, w.spec, w.n, side.side, side is one.measured, w.operations / _bytes(w, side.side),
                          side.tops, side.microseconds)
            for side in sides
        ]  # fmt: skip
    fastest = max(limits.tops, key=lambda atom: limits.tops[atom])
    return Roofline(device, {**roofs, fastest: limits.tops[fastest]}, limits.copy_terabytes_per_second, tuple(points))


def _floors(w: ConvWorkload, limits: MeasuredPeaks, atom: str) -> tuple[Floor, ...]:
    copy, peak = limits.copy_terabytes_per_second, limits.peak(atom)
    pairs, times, share = _pairs(w, atom), "", w.precision.weights.live_percent
    if pairs > 1:
        times = f" in {pairs} pairs of planes"
    if share is not None:
        times += f", {share} % of it in live blocks,"
    done = w.operations * pairs * (1 if share is None else share / 100)
    return (
        Floor("launch", limits.launch_microseconds, "an empty kernel in a CUDA graph"),
        Floor("bytes", w.bytes_moved / copy / 1e6,
              f"what is read of x, w and y once, {w.bytes_moved:,} bytes at {copy:g} TB/s"),
        Floor("arithmetic", done / peak / 1e6,
              f"{w.operations / 1e9:.2f} GOP{times} at {peak:,.0f} TOPS of {atom}"),
    )  # fmt: skip


def _pairs(w: ConvWorkload, atom: str) -> int:
    """Products that the instructions compute per product of values: one for each pair of planes, or one for whole
    values."""
    types = w.precision
    return types.weights.bits * types.activations.bits if atom.startswith("b1.") else 1


def _sides(w: ConvWorkload, device: str) -> list[Timed]:
    """Every recorded row of a workload, the oldest record first."""
    spec = w.spec
    records = sorted((one for one in side_by_sides() if one.device == device), key=lambda one: one.date)
    return [
        Timed(
            row.side.replace("float8_e4m3fn", "fp8"),
            row.microseconds,
            row.tops,
            row.plan if row.config else "",
            record.name,
        )
        for record in records
        for row in record.rows
        if row.spec == spec
    ]


def _best(w: ConvWorkload, device: str, limits: MeasuredPeaks) -> tuple[Timed | None, str, str]:
    """Our fastest recorded time, the measured atom and the family of its configuration; if none is recorded, the
    fastest atom that multiplies its operands and the family of the newest instruction."""
    found: list[tuple[Timed, Mapping[str, Any]]] = []
    spec = w.spec
    for one in recorded_fastest(device, spec):
        tops = w.operations / one.microseconds / 1e6
        timed = Timed(f"{OURS} {w.precision.label}", one.microseconds, tops, one.config.key, one.landscape)
        found.append((timed, one.config.to_dict()))
    for record in side_by_sides():
        for row in record.rows if record.device == device else ():
            if row.spec == spec and row.side.startswith(OURS) and row.config:
                timed = Timed(row.side, row.microseconds, row.tops, row.plan, record.name)
                found.append((timed, row.config))
    kept = recorded_best().get(spec) if w.precision != INT4 else None
    if kept is not None and kept["device"] == device:
        tops = w.operations / kept["microseconds"] / 1e6
        key = config_from_dict(kept["config"]).key
        timed = Timed(f"{OURS} {w.precision.label}", kept["microseconds"], tops, key, kept["source"].rpartition("/")[2])
        found.append((timed, kept["config"]))
    if not found:
        able = [one for one in newest_first() if one.hopeless(w, arch_named(limits.arch)) is None]
        return None, _fastest_atom(w, limits), (able or newest_first())[0].name
    timed, values = min(found, key=lambda pair: pair[0].microseconds)
    family, known = family_of_fields(values)
    config = family.stand_in(known or family.plain)  # a kernel that can no longer be built used the same instruction
    atom = limits.measured(family.plan(w, config, arch_named(limits.arch)).atom.name)
    if w.precision.weights.group == TWO_OF_FOUR and not config.skips_zeros:
        atom = _fastest_atom(w, limits)  # a dense kernel that is still faster does not change the floor
    return timed, atom, family.name


def _fastest_atom(w: ConvWorkload, limits: MeasuredPeaks) -> str:
    """The measured atom that needs the least time for the operands: as bytes, as 2:4 weights, or plane by plane."""
    ways = dict(limits.tops)
    if w.precision.weights.group == TWO_OF_FOUR:
        ways |= limits.sparse_tops
    if w.precision != INT4:
        ways |= limits.binary_tops
    return max(ways, key=lambda atom: ways[atom] / _pairs(w, atom))


def _bytes(w: ConvWorkload, side: str) -> float:
    """Bytes to read x and w and to write y once, in a side's types, which are part of its name: "cuDNN int8 to int32,
    graph API"."""
    x, weights, y = w.n * w.pixels_read * w.c, w.k * w.r * w.s * w.c, w.n * w.p * w.q * w.k
    if side.startswith(OURS):
        types = w.precision
        sizes = (types.activations.stored_bits(x), types.weights.stored_bits(weights), types.output.stored_bits(y))
        return sum(sizes) / 8
    named = [word.strip(",") for word in side.split()]
    bits = [_BITS[word] for word in named if word in _BITS] or [4]
    return ((x + weights) * bits[0] + y * bits[-1]) / 8
