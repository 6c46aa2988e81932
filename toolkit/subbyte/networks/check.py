"""The result of checking a network's run: each layer against the reference, and the predictions."""

from __future__ import annotations

from dataclasses import dataclass

from subbyte.info_record import InfoRecord, Table, columns_text


@dataclass(frozen=True)
class CheckedLayer:
    """A layer that ran: its kernel's configuration and output, why the CPU did a part of it (``cpu``, "" if it did
    none), and how many of its output ``elements`` differ from the reference."""

    name: str
    workload: str
    config: str
    output: str
    cpu: str
    elements: int
    differing: int


@dataclass(frozen=True)
class NetworkCheck(InfoRecord):
    """A run of ``images`` images on ``device``. ``label`` says what the parameters are; ``accuracy`` is that on images
    with known labels, else None; ``predictions`` has the class of each image."""

    network: str
    device: str
    arch: str
    label: str
    images: int
    layers: tuple[CheckedLayer, ...]
    predictions: tuple[int, ...]
    accuracy: float | None

    @property
    def differing(self) -> int:
        """Number of elements, over all layers, that differ from the reference."""
        return sum(layer.differing for layer in self.layers)

    def title(self) -> str:
        """Network, images, device."""
        return f"{self.network} on {self.device}: {self.images} images, {self.label}"

    def table(self) -> Table:
        """One row for each layer."""
        columns = ("layer", "workload", "kernel", "gives", "outputs", "differing")
        rows = [(one.name, one.workload, one.config, one.output, one.elements, one.differing) for one in self.layers]
        return Table(columns, tuple(rows))

    def text(self) -> str:
        """The table and the conclusion."""
        total = sum(layer.elements for layer in self.layers)
        lines = [f"{total - self.differing:,} of {total:,} outputs equal the reference"]
        lines += [f"the CPU does what follows the sums of {one.name}: {one.cpu}" for one in self.layers if one.cpu]
        if self.accuracy is not None:
            right = round(self.accuracy * self.images)
            lines.append(f"{right} of {self.images} images are classified as they should be: {self.accuracy:.1%}")
        return "\n\n".join([self.title(), columns_text(self.table()), "\n".join(lines)])
