"""A network as a timeline: what each layer computes and moves, and the least time that this takes."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from subbyte.device.arch import arch as arch_named
from subbyte.device.peaks import MeasuredPeaks, known_devices, measured_peaks
from subbyte.errors import Unsupported
from subbyte.families.registry import family_of
from subbyte.info_record import InfoRecord, Table, columns_text
from subbyte.kernel.build import make_plan
from subbyte.kernel.choose import best_known
from subbyte.networks.layer import PIXEL, NetworkLayer
from subbyte.networks.steps import bits_of, request, unproven
from subbyte.workload import ConvWorkload

if TYPE_CHECKING:
    from subbyte.networks.network import Network

CLOCK_MHZ = 1_755
"""Clock at which estimated cycles are converted to microseconds: that of an H200 with its Tensor Cores under load."""


@dataclass(frozen=True)
class TimelineLayer:
    """A layer of a timeline; times in microseconds.

    ``operations`` counts two per multiply-accumulate, ``bit_products`` each of them once per one-bit product it
    consists of (0 if the activations are pixels, which kernels multiply whole, as bytes). ``residual_read`` and
    ``residual_written`` are bytes of sums kept for later layers, with ``residual_bits`` each (0 if there are none).
    ``launch``, ``move`` and ``multiply`` are floors; ``floor`` is the first plus the longer of the other two.
    ``estimate`` is that of the kernel's family for ``config``, None if no kernel does the whole layer; it ignores
    pooling and residuals. ``cpu`` says why none does.
    """

    name: str
    workload: str
    kind: str
    output: tuple[int, int, int]
    pool: int
    adds: str
    operations: int
    bit_products: int
    input_bytes: int
    weight_bytes: int
    output_bytes: int
    residual_read: int
    residual_written: int
    residual_bits: int
    launch: float
    move: float
    multiply: float
    estimate: float | None
    config: str
    cpu: str

    @property
    def floor(self) -> float:
        """Launch, plus the longer of moving and multiplying."""
        return self.launch + max(self.move, self.multiply)

    @property
    def bytes_moved(self) -> int:
        """Bytes of all operands and results, each counted once."""
        return self.input_bytes + self.weight_bytes + self.output_bytes + self.residual_read + self.residual_written


@dataclass(frozen=True)
class NetworkTimeline(InfoRecord):
    """The layers of a network in the order in which they run; ``peaks_of`` names the GPU of the floors."""

    network: str
    batch: int
    source: str
    label: str
    arch: str
    peaks_of: str
    layers: tuple[TimelineLayer, ...]
    floor: float
    residual_share: float
    """Sum of the bytes moved by all layers."""
    estimate: float | None
    """Microseconds, summed over all layers; None if one of them has no estimate."""

    def title(self) -> str:
        """Network and GPU."""
        return f"{self.network} layer by layer, floors of {self.peaks_of}: {self.label}"

    def table(self) -> Table:
        """One row for each layer."""
        columns = ("layer", "workload", "GOP", "in KB", "weights KB", "out KB", "residual KB", "move us", "multiply us",
                   "floor us", "estimate us")  # fmt: skip
        rows = [
            (one.name, one.workload, one.operations / 1e9, one.input_bytes / 1e3, one.weight_bytes / 1e3,
             one.output_bytes / 1e3, (one.residual_read + one.residual_written) / 1e3, one.move, one.multiply,
             one.floor, one.estimate)
            for one in self.layers
        ]  # fmt: skip
        return Table(columns, tuple(rows))

    def text(self) -> str:
        """The table and the conclusion."""
        lines = [f"floor of all layers {self.floor:.1f} us; residuals are {self.residual_share:.0%} of all bytes"]
        wide = [one.name for one in self.layers if one.residual_bits > 16]
        if wide:
            lines.append(f"16 bits are not proven to hold the residual sums of {', '.join(wide)}: these have 32")
        if self.estimate is not None:
            lines.append(f"the kernels' own estimates, without pooling and residuals: {self.estimate:.1f} us")
        if apart := [one.name for one in self.layers if one.cpu]:
            lines.append(f"no kernel does all of {', '.join(apart)}: the whole network has no measured time")
            lines += [f"{one.name}: {one.cpu}" for one in self.layers if one.cpu]
        return "\n\n".join([self.title(), columns_text(self.table()), "\n".join(lines)])


def timeline(network: Network, arch: str) -> NetworkTimeline:
    """See :meth:`Network.timeline`. Raises Unsupported for an architecture without a measured GPU."""
    name = arch_named(arch).name
    peaks = next((found for found in map(measured_peaks, known_devices()) if found.arch == name), None)
    if peaks is None or not peaks.binary_tops:
        raise Unsupported(f"{network.name} on {name}: no GPU of this architecture was measured, so there are no floors")
    layers = tuple(_layer(network, place, name, peaks) for place in range(len(network.layers)))
    moved = sum(one.bytes_moved for one in layers)
    waiting = sum(one.residual_read + one.residual_written for one in layers)
    estimates = [one.estimate for one in layers if one.estimate is not None]
    whole = sum(estimates) if len(estimates) == len(layers) else None
    return NetworkTimeline(network.name, network.batch, network.source, network.label, name, peaks.device, layers,
                           sum(one.floor for one in layers), waiting / moved, whole)  # fmt: skip


def _layer(network: Network, place: int, arch: str, peaks: MeasuredPeaks) -> TimelineLayer:
    layer = network.layers[place]
    wl = layer.workload
    types = wl.precision
    last = place == len(network.layers) - 1
    read, written, bits = residual_bytes(network, layer)
    x, w = (types.activations.stored_bits(wl.n * wl.pixels_read * wl.c),
            types.weights.stored_bits(wl.k * wl.r * wl.s * wl.c))  # fmt: skip
    rows, columns, channels = layer.output
    count = wl.n * rows * columns * channels
    y = 32 * count if last else types.output.stored_bits(count)
    bit_products, multiply = _multiplied(wl, peaks)
    config, estimate, cpu = _estimate(network, layer, arch)
    moved = (x + w + y) // 8 + read + written
    return TimelineLayer(
        layer.name, wl.spec, layer.kind, layer.output, layer.pool, layer.residual, wl.operations, bit_products, x // 8,
        w // 8, y // 8, read, written, bits, peaks.launch_microseconds, moved / peaks.copy_terabytes_per_second / 1e6,
        multiply, estimate, config, cpu,
    )  # fmt: skip


def _multiplied(wl: ConvWorkload, peaks: MeasuredPeaks) -> tuple[int, float]:
    """One-bit operations of a layer and the least microseconds they take; for pixels 0, and the time for bytes."""
    types = wl.precision
    if types.activations.bits == PIXEL.bits:
        return 0, wl.operations / max(peaks.tops.values()) / 1e6
    pairs = types.weights.bits * types.activations.bits
    return wl.operations * pairs, wl.operations * pairs / max(peaks.binary_tops.values()) / 1e6


def residual_bytes(network: Network, layer: NetworkLayer) -> tuple[int, int, int]:
    """Bytes of sums read and written, and the bits of those written, or else of those read."""

    def size(name: str) -> tuple[int, int]:
        wl = next(one.workload for one in network.layers if one.name == name)
        bits = bits_of(network, name)
        by = network.kept_pool(name)
        return wl.n * (wl.p // by) * (wl.q // by) * wl.k * bits // 8, bits

    read, read_bits = size(layer.residual) if layer.residual else (0, 0)
    written, written_bits = size(layer.name) if layer.name in network.residuals else (0, 0)
    return read, written, written_bits or read_bits


def _estimate(network: Network, layer: NetworkLayer, arch: str) -> tuple[str, float | None, str]:
    """The best known configuration for a whole layer, the microseconds that its family predicts, and the reason if
    there is none; nothing is built."""
    workload, output = request(network, layer)
    if reason := unproven(network, layer):
        return "", None, reason
    try:
        config, _ = best_known(workload, arch, output=output)
    except Unsupported as error:
        return "", None, str(error)
    plan = make_plan(workload, config, arch, output, None, "fixed")
    return config.key, family_of(config).estimate(plan) / CLOCK_MHZ, ""
