"""A product at several densities of both operands: kernels that skip the zeros they find against dense ones,
interleaved (``subbyte bench WORKLOAD --sparsity condense --densities ...``).

All sides get the same operands: each value is nonzero with the density's probability, and then uniform over the nonzero
values of its type. Every element of every output is compared with the exact result before anything is timed.
Finding the zeros is part of the kernel, and so of its time.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from itertools import islice
from statistics import median
from typing import Any

import msgspec
import numpy as np
from numpy.typing import NDArray

from subbyte.device.arch import arch as arch_named
from subbyte.errors import InvalidInput, MissingDependency, SubbyteError, Unsupported, shown
from subbyte.families import family_of
from subbyte.families.registry import finding_zeros
from subbyte.gpu.device import CudaDevice
from subbyte.gpu.launched import GpuKernel
from subbyte.gpu.timing import TimingProtocol, command_line, time_launch
from subbyte.info_record import Table, columns_text
from subbyte.kernel import Kernel
from subbyte.kernel.build import make_plan
from subbyte.kernel.choose import best_known
from subbyte.kernel.operands import activation_words, parameter_words, weight_words
from subbyte.measure.baselines import TorchDevice
from subbyte.measure.break_even import break_even
from subbyte.numerics import Requantization
from subbyte.numerics.reference import reference
from subbyte.records.shapes import Count, Name, Sample, Time, Tree
from subbyte.workload import ConvWorkload
from subbyte.workload.precision import SUMS

SCHEMA = 1
DENSITIES = (1.0, 0.5, 0.3, 0.2, 0.13, 0.1, 0.07, 0.05, 0.02)
ROUNDS = 7
PROTOCOL = TimingProtocol(cold=False, launches=20, repeats=3, min_total_ms=6.0, warmup_ms=1.0, spin_up_ms=0.0)
LIBRARY = "cublas-int8"
"""The side that calls PyTorch's ``_int_mm``: int8 operands, int32 sums in memory."""


@dataclass(frozen=True)
class Side:
    """A kernel ready to run; its machine code may come from another machine."""

    kernel: Kernel
    cubin: bytes

    @property
    def name(self) -> str:
        """Its name in records."""
        return self.kernel.config.key


@dataclass(frozen=True)
class Operands:
    """The operands of one density, with the expected outputs."""

    density: float
    x: NDArray[np.int8]
    w: NDArray[np.int8]
    sums: NDArray[np.int32]
    requant: Requantization

    def answer(self, output: str) -> NDArray[Any]:
        """The expected output of a kernel."""
        return self.sums if output == SUMS else self.requant.apply(self.sums)


def check_densities(given: Sequence[float]) -> tuple[float, ...]:
    """Distinct densities from 0 to 1, densest first. Raises InvalidInput."""
    for one in given:
        if not 0 <= one <= 1:
            raise InvalidInput(f"density {shown(one)}: expected shares from 0 (all zeros) to 1 (none), such as 0.05")
    if not given:
        raise InvalidInput("densities: at least one is needed, such as 0.05")
    return tuple(sorted({float(one) for one in given}, reverse=True))


def strewn(workload: ConvWorkload, density: float, seed: int = 0) -> tuple[NDArray[np.int8], NDArray[np.int8]]:
    """Values int8 x [N,H,W,C] and w [K,R,S,C], each nonzero with probability ``density``."""
    found = []
    for number, (operand, shape) in enumerate((
        (workload.precision.activations, (workload.n, workload.h, workload.w, workload.c)),
        (workload.precision.weights, (workload.k, workload.r, workload.s, workload.c)),
    )):  # fmt: skip
        draw = np.random.default_rng((seed, number, int(density * 1e6)))
        others = np.array([value for value in operand.values if value], np.int8)
        values = others[draw.integers(0, others.size, shape, np.uint8)]
        found.append(values * (draw.random(shape, np.float32) < density).astype(np.int8))
    return found[0], found[1]


def operands_of(
    workload: ConvWorkload, density: float, seed: int = 0, sums_of: Callable[..., NDArray[np.int32]] | None = None
) -> Operands:
    """Operands and expected outputs; ``sums_of(x, w)`` computes the exact sums elsewhere than in numpy."""
    x, w = strewn(workload, density, seed)
    sums = reference(workload, x, w) if sums_of is None else sums_of(x, w)
    return Operands(density, x, w, sums, _requantization(workload, sums))


def _requantization(workload: ConvWorkload, sums: NDArray[np.int32]) -> Requantization:
    """A requantization with which these sums use the range of the output."""
    spread = max(1.0, 2.0 * float(np.abs(sums[:1]).mean()))
    shift = 24
    multiplier = np.full(workload.k, min((1 << 31) - 1, max(1, round(4.0 / spread * (1 << shift)))), np.int64)
    zeros = np.zeros(workload.k, np.int64)
    return Requantization(zeros.astype(np.int32), multiplier.astype(np.int32), (zeros + shift).astype(np.int32))


class Bench:
    """The sides of one workload on a GPU."""

    def __init__(self, workload: ConvWorkload, sides: Sequence[Side], device: CudaDevice) -> None:
        self.workload, self.sides, self.device = workload, sides, device
        self.open = {side.name: GpuKernel(side.cubin, side.kernel.launch, device) for side in sides}
        self.library: Callable[[], Any] | None = None
        self.torch: Any = None

    def close(self) -> None:
        """Free the kernels."""
        for gpu in self.open.values():
            gpu.close()
        self.open = {}

    def prepare(self, found: Operands) -> dict[str, int]:
        """Put the operands in place and run every side; returns how many elements of each are wrong."""
        kept: dict[tuple[str, str], Any] = {}
        right: dict[str, Any] = {}
        wrong = {}
        for side in self.sides:
            kernel = side.kernel
            out = self.open[side.name].run(self.inputs(kernel, found, kept))["Out"]
            form = f"{kernel.output} {kernel.argument('Out').form}"
            if form in right and np.array_equal(out, right[form]):
                wrong[side.name] = 0
                continue
            wrong[side.name] = int(np.count_nonzero(kernel.unpack(out) != found.answer(kernel.output)))
            if not wrong[side.name]:
                right[form] = out
        if self.library is not None or self.torch is not None:
            wrong[LIBRARY] = self._prepare_library(found)
        return wrong

    def inputs(self, kernel: Kernel, found: Operands, kept: dict[tuple[str, str], Any]) -> dict[str, Any]:
        """The words that a kernel reads; ``kept`` holds those packed before, by argument and layout."""
        made = {}
        for one in kernel.launch.arguments:
            if one.role != "in":
                continue
            place = one.name, one.form
            if place not in kept:
                if one.name == "A":
                    kept[place] = activation_words(one, self.workload, found.x)
                elif one.name == "Wt":
                    kept[place] = weight_words(one, self.workload, found.w)
                else:
                    kept[place] = parameter_words(one, self.workload, found.requant, found.w)
            made[one.name] = kept[place]
        return made

    def with_library(self, torch_device: Any) -> None:
        """Add PyTorch's product of int8 operands as a side."""
        self.torch = torch_device

    def _prepare_library(self, found: Operands) -> int:
        torch, w = self.torch.torch, self.workload
        where = f"cuda:{self.device.info.ordinal}"
        left = torch.from_numpy(found.x.reshape(-1, w.c)).to(where)
        right = torch.from_numpy(found.w.reshape(w.k, w.c)).to(where).t()
        sums = torch._int_mm(left, right)
        self.library = lambda: torch._int_mm(left, right)
        return int((sums != torch.from_numpy(found.sums.reshape(-1, w.k)).to(where)).sum())

    def sample(self, name: str) -> float:
        """Time of a side in microseconds, L2 hot."""
        if name == LIBRARY:
            assert self.library is not None
            return time_launch(self.torch, self.library, PROTOCOL).microseconds
        return self.open[name].time(PROTOCOL).microseconds


def measure_density(bench: Bench, found: Operands, rounds: int = ROUNDS) -> dict[str, Any]:
    """A row of a record: every side at one density, ``rounds`` times in turn, alternately forward and backward."""
    wrong = bench.prepare(found)
    names = list(wrong)
    times: dict[str, list[float]] = {name: [] for name in names}
    for turn in range(rounds):
        for name in names if turn % 2 == 0 else reversed(names):
            times[name].append(bench.sample(name))
    sides = {}
    for name in names:
        sides[name] = {"microseconds": median(times[name]), "samples": times[name], "wrong": wrong[name]}
    for side in bench.sides:
        sides[side.name]["keeps"] = family_of(side.kernel.config).keeps(side.kernel.plan, found.x, found.w)
    return {"density": found.density, "elements": int(found.sums.size), "sides": sides}


def measure_densities(
    workload: ConvWorkload, sides: Sequence[Side], device: CudaDevice, densities: Sequence[float] = DENSITIES,
    rounds: int = ROUNDS, torch_device: Any = None, sums_of: Callable[..., NDArray[np.int32]] | None = None,
    say: Callable[[str], None] = lambda _: None,
) -> dict[str, Any]:  # fmt: skip
    """The record of a workload: plain data, ready for JSON. A density at which a side fails gets the reason.

    Raises InvalidInput for densities outside 0 to 1, CudaError.
    """
    rows: list[dict[str, Any]] = []
    bench = Bench(workload, sides, device)
    if torch_device is not None:
        bench.with_library(torch_device)
    try:
        for density in check_densities(densities):
            try:
                row = measure_density(bench, operands_of(workload, density, sums_of=sums_of), rounds)
            except SubbyteError as error:
                row = {"density": density, "reason": str(error)[:300]}
            rows.append(row)
            say(row_text(row))
    finally:
        bench.close()
    skipping = [side.name for side in sides if side.kernel.config.skips_zeros]
    dense = [side.name for side in sides if not side.kernel.config.skips_zeros]
    record = {
        "schema": SCHEMA, "kind": "densities", "date": datetime.now(UTC).isoformat(timespec="seconds"),
        "command": command_line(), "device": device.info.to_dict(), "protocol": PROTOCOL.to_dict(), "rounds": rounds,
        "workload": workload.label, "spec": workload.spec, "skipping": skipping, "dense": dense, "rows": rows,
    }  # fmt: skip
    return {**record, "break_even": break_even(record)}


def sides_of(workload: ConvWorkload, arch: str, skipping: int = 3) -> list[Side]:
    """The sides that ``subbyte bench`` measures: the kernels that find zeros with the best estimates, and the best
    known dense one.

    Raises Unsupported with the reason when none of them computes the workload."""
    family, target = finding_zeros(), arch_named(arch)
    if reason := family.covers(workload, target):
        raise Unsupported(f"{workload.label} on {arch}: {reason}")
    configs = [*islice(family.candidates(workload, target), skipping), best_known(workload, target)[0]]
    kernels = [Kernel(make_plan(workload, config, arch, None, None, "fixed")) for config in configs]
    return [Side(kernel, kernel.cubin) for kernel in kernels]


def library_on(device: CudaDevice) -> Any:
    """PyTorch on a GPU, None if it is not installed."""
    try:
        return TorchDevice(device.info)
    except MissingDependency:
        return None


class SideShape(msgspec.Struct, frozen=True, omit_defaults=True):
    """A side at a density."""

    microseconds: Time
    samples: tuple[Sample, ...]
    wrong: Count
    keeps: dict[Name, float] | None = None


class RowShape(msgspec.Struct, frozen=True, omit_defaults=True):
    """A density in a record: its sides, or a reason."""

    density: float
    elements: Count = 0
    sides: dict[Name, SideShape] = {}
    reason: str = ""


class DensitiesShape(msgspec.Struct, frozen=True):
    """The printed parts of a record."""

    device: dict[Name, Tree]
    date: Name
    workload: Name
    skipping: tuple[Name, ...]
    dense: tuple[Name, ...]
    rows: tuple[RowShape, ...]
    command: str = ""
    schema: Count = 1


def text_of(record: Mapping[str, Any]) -> str:
    """A row per density, the density above which dense is faster, and which side to use where."""
    found, device = break_even(record), record["device"]
    gains = {one["density"]: one for one in found["gains"]} if found else {}
    cells = []
    for row in record["rows"]:
        if row["density"] not in gains:
            cells.append((f"{row['density']:g}", row.get("reason") or "no side is right", *[""] * 5))
            continue
        one = gains[row["density"]]
        ours, other = (row["sides"][one[which]] for which in ("skipping", "dense"))
        keeps, library = ours.get("keeps") or {}, row["sides"].get(LIBRARY)
        cells.append((
            f"{row['density']:g}", f"{keeps.get('kept', 1):.3f}", f"{keeps.get('kept_expected', 1):.3f}",
            f"{ours['microseconds']:.2f}", f"{other['microseconds']:.2f}",
            f"{library['microseconds']:.2f}" if library else "-", f"{one['gain']:.2f}",
        ))  # fmt: skip
    names = ("density", "kept", "expected", "finds zeros, us", "dense, us", "cuBLAS int8, us", "dense / finds zeros")
    lines = [f"{record['workload']}: {device['name']} ({device['arch']}), {record['date']}", "",
             columns_text(Table(names, tuple(cells)))]  # fmt: skip
    wrong = [name for row in record["rows"] for name, one in row.get("sides", {}).items() if one["wrong"]]
    lines += [f"WRONG: {name}" for name in dict.fromkeys(wrong)]
    return "\n".join([*lines, "", *advice(found)])


def advice(found: Mapping[str, Any] | None) -> list[str]:
    """Which side is faster at which densities, in words."""
    if found is None:
        return ["no break-even: one of the sides is missing"]
    if found["value"] is None:
        at = {one["density"]: one["gain"] for one in found["gains"]}
        best = max(at, key=at.__getitem__)
        return {
            "dense": [
                f"dense is faster at every density measured, {1 / at[best]:.2f} times at {best:g}: it is to be taken"
            ],
            "skipping": ["finding zeros is faster at every density measured"],
        }.get(found["always"], ["no break-even: the sides do not change places once, from dense to sparse"])
    interval = f" (95 % interval {found['low']:.3g} to {found['high']:.3g})" if found["low"] is not None else ""
    return [
        f"break-even: density {found['value']:.3g} of both operands{interval}",
        "above it dense is to be taken: tiles keep more of K than gathering it costs; below it finding zeros is faster",
    ]


def row_text(row: Mapping[str, Any]) -> str:
    """A row as one line."""
    if "reason" in row:
        return f"density {row['density']:g}: {row['reason']}"
    parts = [
        f"{name} {one['microseconds']:.2f} us" + (f" ({one['wrong']} WRONG)" if one["wrong"] else "")
        for name, one in row["sides"].items()
    ]
    return f"density {row['density']:g}: " + "; ".join(parts)
