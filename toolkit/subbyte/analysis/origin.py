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
from subbyte.kernel.choose import first_choice
from subbyte.kernel.own import gpu_names, own_records
from subbyte.workload import ConvWorkload
from subbyte.workload import workload as workload_named

SOURCES = ("own", "shipped", "predicted")


@dataclass(frozen=True)
class Origin(InfoRecord):
    """What ``compile`` takes first for a workload on an architecture, and what is known of it.

    ``source`` is ``own`` (the user's store), ``shipped`` (a record of the package) or ``predicted`` (nobody measured
    it); ``reason`` is that of the kernel. ``microseconds`` is the recorded time, from ``low`` to ``high`` where the
    record is an own one, on the GPU ``device``; None where it is predicted. ``floor`` is the time in microseconds below
    which no kernel can be on the GPU ``floor_device`` (None: not known for these operands). ``left`` says which own
    records are not taken, and why.
    """

    workload: str
    spec: str
    arch: str
    source: str
    family: str
    config: str
    reason: str
    microseconds: float | None
    low: float | None
    high: float | None
    device: str
    measured: str
    trials: int | None
    floor: float | None
    floor_device: str
    left: tuple[str, ...]

    @property
    def share(self) -> float | None:
        """The part of the recorded time that the floor explains; 1 is the speed of light. None where one is missing, or
        the floor is another GPU's."""
        if self.microseconds is None or self.floor is None or self.device != self.floor_device:
            return None
        return self.floor / self.microseconds

    @property
    def advice(self) -> str:
        """What would make it better known; empty for an own record."""
        if self.source == "own":
            return ""
        return f'on a GPU of {self.arch}, subbyte.compile("{self.workload}", tries=16) measures and remembers'

    def title(self) -> str:
        """What is taken, in a line."""
        known = {"own": "your own record", "shipped": "a record of the package", "predicted": "predicted, not measured"}
        return f"{self.workload} on {self.arch}: {known.get(self.source, self.source)}"

    def table(self) -> Table:
        """A row for each thing known."""
        rows = [("source", self.source), ("family", self.family), ("configuration", self.config)]
        if self.microseconds is not None:
            spread = f" ({self.low:.2f} to {self.high:.2f})" if self.low is not None and self.high is not None else ""
            rows.append(("recorded", f"{self.microseconds:.2f} us{spread} on {self.device}"))
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
    """Where the kernel of a workload comes from that :func:`subbyte.compile` would try first; nothing is built.

    The arguments are those of ``compile``. Raises InvalidInput for an unknown workload, architecture or option,
    Unsupported with the reason when no family covers it.
    """
    found = workload_named(workload)
    target = arch_named(arch) if isinstance(arch, str) else arch
    choice = first_choice(found, target, family, output, "", store, gpu)
    own = own_records(found, target, output, store, gpu)
    record = next((one for one in own.taken if choice.own and one.configuration == choice.config), None)
    device = choice.device if choice.microseconds is not None else ""
    floor, floor_device = _floor(found, target, device or gpu)
    source = "own" if choice.own else "predicted" if choice.microseconds is None else "shipped"
    return Origin(
        found.label, found.spec, target.name, source, choice.family.name, choice.config.key,
        choice.reason.removesuffix(own.left_text), choice.microseconds, record.low if record else None,
        record.high if record else None, device, record.day if record else "", record.trials if record else None, floor,
        floor_device, own.left,
    )  # fmt: skip


def _floor(workload: ConvWorkload, arch: Arch, device: str | None) -> tuple[float | None, str]:
    """The floor on the GPU a record is of, else on this machine's, else on the one whose peaks are usual; None of
    operands, GPUs and architectures without measured peaks."""
    near = [device] if device else [*sorted(gpu_names(arch.name)), DEFAULT_DEVICE]
    known = next((one for one in near if one in known_devices() and measured_peaks(one).arch == arch.name), None)
    if known is None:
        return None, ""
    try:
        return speed_of_light(workload, known).floor, known
    except SubbyteError:
        return None, ""
