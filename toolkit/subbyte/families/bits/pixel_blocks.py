"""Strided layers with few channels, as blocks of pixels: a pixel of three channels would use a fifth of 16 bytes.

A layer with stride u reads, for neighbouring outputs, windows that are u pixels apart. Blocks of u x u pixels, one for
each output, are pixels with u u C channels of a layer with stride 1 whose kernel is ceil(R/u) x ceil(S/u) blocks; taps
beyond the kernel have weights 0. The border is stored: block (0, 0) begins ``pad`` pixels above and left of the image.
A kernel as large as its image has one window: u is its size.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from subbyte.workload.conv import ConvWorkload, ceil_div

FEW = 16
"""Number of channels that fill a piece of 16 bytes."""


def blocked(workload: ConvWorkload) -> ConvWorkload:
    """A strided layer with few channels as the layer of its blocks; any other layer unchanged."""
    w, u = workload, block_size(workload)
    if u == 1:
        return w
    r, s = ceil_div(w.r, u), ceil_div(w.s, u)
    return replace(w, h=w.p + r - 1, w=w.q + s - 1, c=u * u * w.c, r=r, s=s, pad=0, stride=1)


def block_size(workload: ConvWorkload) -> int:
    """Edge length of a block in pixels; 1 if pixels are used as they are."""
    w = workload
    if w.dilation > 1 or w.c >= FEW or (w.r, w.s) == (1, 1):
        return 1
    return w.r if (w.h, w.w, w.s, w.pad) == (w.r, w.r, w.r, 0) else w.stride


def block_weights(workload: ConvWorkload, w: NDArray[Any]) -> NDArray[Any]:
    """Weights [K,R,S,C] of the layer as those of its blocks, [K,ceil(R/u),ceil(S/u),u*u*C]."""
    view, u = blocked(workload), block_size(workload)
    if view == workload:
        return w
    full = np.zeros((len(w), view.r * u, view.s * u, workload.c), w.dtype)
    full[:, : workload.r, : workload.s] = w
    split = full.reshape(len(w), view.r, u, view.s, u, workload.c).transpose(0, 1, 3, 2, 4, 5)
    return np.ascontiguousarray(split).reshape(len(w), view.r, view.s, view.c)
