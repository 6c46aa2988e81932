"""Where a layer's kernel comes from: the user's own record, a shipped record, or an estimate."""

from __future__ import annotations

import os
from dataclasses import dataclass

from subbyte.analysis.speed import speed_of_light
from subbyte.arguments import checked
from subbyte.device.arch import Arch
from subbyte.device.arch import arch as arch_named
from subbyte.device.peaks import DEFAULT_DEVICE, known_devices, measured_peaks
from subbyte.errors import SubbyteError
from subbyte.info_record import InfoRecord, Table, columns_text
from subbyte.kernel.choose import Choice, best_known, choices
from subbyte.kernel.own import Own, gpu_names, own_records, reason_of
from subbyte.kernel.remembered import launches_ahead
from subbyte.kernel.split import ways_ahead
from subbyte.numerics.fusion import SEPARATOR
from subbyte.records.launches import SplitLaunches
from subbyte.records.own import OwnRecord
from subbyte.workload import ConvWorkload
from subbyte.workload import workload as workload_named

SOURCES = ("own", "shipped", "predicted")
_TITLES = {"own": "your own record", "shipped": "a record of the package", "predicted": "predicted, not measured"}


@dataclass(frozen=True)
class Source:
    """What one of :data:`SOURCES` knows: a kernel, its time in microseconds on the GPU ``device``, and a range.

    For one of the user's own records the range is from the fastest to the slowest sample. For a predicted time it is an
    error bar: as far off as first choices were on ``layers`` layers that the model was not trained on (None if nobody
    measured those, or if the kernel was ``measured`` at another batch size). A family that only ranks kernels predicts
    no time (None).
    """

    source: str
    family: str
    config: str
    microseconds: float | None
    low: float | None
    high: float | None
    device: str
    layers: int = 0
    measured: bool = False
    launches: tuple[int, ...] = ()
    """Images of each launch if there is more than one launch; empty otherwise."""

    @property
    def launched(self) -> str:
        """The launches, as the reason of what is expected of them begins; empty for one."""
        if not self.launches or self.source != "predicted":
            return ""
        sizes = " and ".join(map(str, self.launches))
        return (
            f"two launches, of {sizes} images: {self.microseconds:.2f} us expected, less than of one; of one launch: "
        )

    @property
    def short(self) -> str:
        """The configuration for a line that has little room: of two launches their images."""
        return " + ".join(f"{n} images" for n in self.launches) or self.config

    def in_words(self) -> str:
        """The time, its range and its GPU, in a phrase."""
        if self.microseconds is None:
            return f"no time: the {self.family} family only puts kernels in order"
        spread = f" ({self.low:.2f} to {self.high:.2f})" if self.low is not None and self.high is not None else ""
        said = f"{self.microseconds:.2f} us{spread} on {self.device}"
        if self.layers:
            return f"{said}, as far off as on {self.layers} layers that the model was not trained on"
        if self.measured:
            return f"{said}, which it took at another batch"
        return f"{said}, error unknown" if self.source == "predicted" else said


@dataclass(frozen=True)
class Origin(InfoRecord):
    """What ``compile`` chooses for a workload on an architecture, and what is known about it.

    ``source`` is ``own`` (the user's store), ``shipped`` (a record in the package) or ``predicted`` (not measured);
    ``reason`` is the kernel's. ``sources`` says what each source knows, the chosen one first; nothing is predicted if
    there is a shipped record. ``measured`` is when an own record was measured (UTC), among ``trials`` results.
    ``floor`` is the time in microseconds that no kernel can beat on the GPU ``floor_device`` (None: not known for these
    operands). ``left`` says which own records are not used, and why.
    """

    workload: str
    spec: str
    arch: str
    reason: str
    sources: tuple[Source, ...]
    measured: str
    trials: int | None
    floor: float | None
    floor_device: str
    left: tuple[str, ...]

    @property
    def taken(self) -> Source:
        """The source that ``compile`` uses."""
        return self.sources[0]

    @property
    def source(self) -> str:
        """The name of that source."""
        return self.taken.source

    @property
    def microseconds(self) -> float | None:
        """The recorded time; None if it is predicted."""
        return None if self.source == "predicted" else self.taken.microseconds

    @property
    def share(self) -> float | None:
        """The part of the recorded time that the floor explains; 1 is the speed of light. None if either is missing, or
        the floor is that of another GPU."""
        if self.microseconds is None or self.floor is None or self.taken.device != self.floor_device:
            return None
        return self.floor / self.microseconds

    @property
    def advice(self) -> str:
        """What to do to know more; empty for an own record."""
        if self.source == "own":
            return ""
        return f'on a GPU of {self.arch}, subbyte.compile("{self.workload}", tries=16) measures and remembers'

    def of(self, source: str) -> Source | None:
        """What one of :data:`SOURCES` knows; None if it was not asked, or knows nothing."""
        return next((one for one in self.sources if one.source == source), None)

    def title(self) -> str:
        """What is chosen, in one line."""
        return f"{self.workload} on {self.arch}: {_TITLES.get(self.source, self.source)}"

    def table(self) -> Table:
        """One row for each source."""
        rows = [("source", self.source), ("family", self.taken.family), ("configuration", self.taken.config)]
        rows += [("expected" if one.source == "predicted" else "recorded" if one is self.taken else one.source,
                  one.in_words()) for one in self.sources]  # fmt: skip
        if self.measured:
            rows.append(("measured", f"{self.measured} UTC, {self.trials} results"))
        if self.floor is not None:
            share = f", {self.share:.0%} of the recorded time" if self.share is not None else ""
            rows.append(("floor", f"{self.floor:.2f} us on {self.floor_device}{share}"))
        rows.append(("reason", self.reason))
        rows += [("not taken", text) for text in self.left]
        if self.advice:
            rows.append(("next", self.advice))
        return Table(("", self.workload), tuple(rows))

    def text(self) -> str:
        """The table for a terminal."""
        return f"{self.title()}\n\n{columns_text(self.table())}"


@checked
def origin(
    workload: ConvWorkload | str,
    arch: Arch | str = "sm_90a",
    *,
    family: str = "auto",
    output: str | None = None,
    store: str | os.PathLike[str] | None = None,
    gpu: str | None = None,
) -> Origin:
    """Where the kernel comes from that :func:`subbyte.compile` would choose for a workload; nothing is built.

    The arguments are those of ``compile``. Times are in microseconds. Raises InvalidInput for an unknown workload,
    architecture or option, Unsupported with the reason when no family covers it.
    """
    found = workload_named(workload)
    target = arch_named(arch) if isinstance(arch, str) else arch
    own = own_records(found, target, output, store, gpu)
    known = _by_source(found, target, family, output, own)
    if not known:
        best_known(found, target, family, output=output, store=store, gpu=gpu)  # raises the reason
    sources = tuple(_source(choice, found, target, own, SEPARATOR in str(output)) for choice in known)
    first = next((one for one in own.taken if known[0].own and one.configuration == known[0].config), None)
    reason = sources[0].launched + known[0].reason.removesuffix(own.left_text)
    if (two := next(iter(launches_ahead(own, known[0], family)), None)) is not None:
        first, reason = two, reason_of(two)
        sources = (_of_launches(two), *sources)
    floor, floor_device = _floor(found, target, sources[0].device or gpu)
    return Origin(
        found.label, found.spec, target.name, reason, sources,
        first.day if first else "", first.trials if first else None, floor, floor_device, own.left,
    )  # fmt: skip


def _by_source(workload: ConvWorkload, arch: Arch, family: str, output: str | None, own: Own) -> list[Choice]:
    """The first choice of each source, in the order of ``compile``; nothing is predicted beside a shipped record."""
    found: dict[str, Choice] = {}
    for choice in choices(workload, arch, family, output, own=own):
        found.setdefault(choice.source, choice)
        if choice.source == "predicted" or (choice.source == "shipped" and ("own" in found or not own.taken)):
            break
    return [choice for source, choice in found.items() if source != "predicted" or "shipped" not in found]


def _source(choice: Choice, workload: ConvWorkload, arch: Arch, own: Own, fused: bool) -> Source:
    """What is known about a choice, or about two launches of it if they are expected to be faster."""
    name, key = choice.family.name, choice.config.key
    if choice.source == "predicted":
        time = choice.family.expected(workload, choice.config, arch)
        if time is None:
            return Source("predicted", name, key, None, None, None, "")
        for sizes, microseconds in ways_ahead(workload, choice.config, arch, fused)[:1]:
            each = " + ".join(f"{n} images" for n in sizes)
            return Source("predicted", name, each, microseconds, None, None, time.device, launches=sizes)
        return Source("predicted", name, key, time.microseconds, time.low, time.high, time.device, *time[4:])
    record = next((one for one in own.taken if choice.own and one.configuration == choice.config), None)
    low, high = (record.low, record.high) if record else (None, None)
    return Source(choice.source, name, key, choice.microseconds, low, high, choice.device)


def _of_launches(record: OwnRecord) -> Source:
    """The user's own find of two launches."""
    config = record.configuration
    images = config.images if isinstance(config, SplitLaunches) else ()
    return Source("own", record.family, record.config, record.microseconds, record.low, record.high, record.gpu,
                  launches=images)  # fmt: skip


def _floor(workload: ConvWorkload, arch: Arch, device: str | None) -> tuple[float | None, str]:
    """The floor on the record's GPU, else on this machine's, else on the default GPU of the measured peaks; None for
    operands, GPUs and architectures without measured peaks."""
    near = [device] if device else [*sorted(gpu_names(arch.name)), DEFAULT_DEVICE]
    known = next((one for one in near if one in known_devices() and measured_peaks(one).arch == arch.name), None)
    if known is None:
        return None, ""
    try:
        return speed_of_light(workload, known).floor, known
    except SubbyteError:
        return None, ""
