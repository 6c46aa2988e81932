"""The network timeline in words: a sentence for each layer, and one for all of them."""

from __future__ import annotations

from subbyte.networks.timeline import NetworkTimeline, TimelineLayer

UNITS = ((1e9, "GB"), (1e6, "MB"), (1e3, "KB"))


def unit_of(count: float) -> tuple[float, str]:
    """The unit in which this many bytes are shown."""
    return next(((factor, unit) for factor, unit in UNITS if count >= factor), (1.0, "bytes"))


def amount(count: float) -> str:
    """Bytes in words."""
    factor, unit = unit_of(count)
    return f"{count / factor:.3g} {unit}"


def sentence(one: TimelineLayer) -> str:
    """What a layer moves and computes, and what follows from that."""
    waiting = one.residual_read + one.residual_written
    longer = "moving" if one.move > one.multiply else "multiplying"
    operations = "one-bit operations" if one.bit_products else "operations on bytes"
    pooled = f" after {one.pool} x {one.pool} pooling" if one.pool > 1 else ""
    said = [
        f"{one.name}, {one.workload}, gives {' x '.join(map(str, one.output))}{pooled}.",
        f"Floor {one.floor:.2f} us: launching {one.launch:.2f}, then {longer}, the longer of",
        f"moving {amount(one.bytes_moved)} ({one.move:.2f} us) and of",
        f"{(one.bit_products or one.operations) / 1e9:.3g} billion {operations} ({one.multiply:.2f} us).",
    ]
    if waiting:
        what = [f"reads sums of {one.adds}"] * bool(one.residual_read)
        what += ["writes its own for a later layer"] * bool(one.residual_written)
        said.append(f"It {' and '.join(what)}: {amount(waiting)}, {waiting / one.bytes_moved:.0%} of its bytes.")
    if one.estimate is not None:
        said.append(f"Its kernel's estimate is {one.estimate:.2f} us, without pooling and residuals.")
    elif one.cpu:
        said.append(f"No kernel takes all of it: {one.cpu}")
    return " ".join(said)


def whole(record: NetworkTimeline) -> str:
    """The totals of all layers, and how to read them."""
    said = [
        f"{len(record.layers)} layers run from top to bottom.",
        "A floor is launching, then the longer of moving and multiplying;",
        f"all together {record.floor:.1f} us. Residuals are {record.residual_share:.0%} of all bytes.",
    ]
    if record.estimate is not None:
        said.append(
            f"The kernels' estimates, which leave out pooling and residuals, add up to {record.estimate:.1f} us."
        )
    else:
        said.append(f"Of {sum(one.estimate is None for one in record.layers)} layers there is no estimate.")
    return " ".join([*said, "Choose a layer with a click or the arrow keys."])
