"""Which convolutions the kernels of the toolkit compute, whatever the configuration."""

from __future__ import annotations

from subbyte.workload.conv import ConvWorkload

LARGEST_KERNEL = 7
STRIDES = (1, 2)
DILATIONS = (1, 2)


def covered(workload: ConvWorkload) -> str | None:
    """Why no kernel covers the workload: kernel size, stride or dilation; None when kernels do.

    Channels and images never matter here: they are padded to 32 and 8 with zeros.
    """
    wl = workload
    if max(wl.r, wl.s) > LARGEST_KERNEL:
        return f"kernel size {wl.r}x{wl.s}: kernels cover 1 to {LARGEST_KERNEL} in each direction"
    if wl.stride not in STRIDES:
        return f"stride {wl.stride}: kernels cover stride {' and '.join(map(str, STRIDES))}"
    if wl.dilation not in DILATIONS:
        return f"dilation {wl.dilation}: kernels cover dilation {' and '.join(map(str, DILATIONS))}"
    return None
