"""A convolution as a module: weights of 4 or 8 bits packed once, packed words or values in and out."""

from __future__ import annotations

from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray

from subbyte.arguments import number, one_of, whole
from subbyte.errors import InvalidInput, Unsupported
from subbyte.kernel.choose import compile as compile_kernel
from subbyte.kernel.convert.build import convertible, thresholds
from subbyte.kernel.execute import device_arch
from subbyte.kernel.kernel import Kernel
from subbyte.kernel.operands import check_channels
from subbyte.kernel.placed import ends_of
from subbyte.numerics import Requantization, check_values
from subbyte.torch.operators import kernel_of, kernel_text
from subbyte.torch.quantizing import one_size, quantized
from subbyte.workload import ConvWorkload
from subbyte.workload.precision import INT4, SUMS, Precision

GIVES = ("packed", "int8", "uint8", "int16", "float")
_PACK, _CONV2D, _UNPACK = (getattr(torch.ops.subbyte, name).default for name in ("pack", "conv2d", "unpack"))
PACKED_FORM = "nhwcnc"
"""The layout of packed words that layers pass on, unless another is asked for."""


class Conv2d(torch.nn.Module):
    """An integer convolution whose weights are packed once: int4 with int4, unless ``precision`` says otherwise.

    ``weight`` int8 [K,C,R,S], -8..7, and ``requant`` (without it the layer returns raw int32 sums) are packed for the
    kernel that :func:`subbyte.compile` chooses for ``arch`` (default: that of the GPU here, else ``sm_90a``);
    ``input_size`` is (N, H, W). The input of a call is packed words (int32, the output of a layer with
    ``gives="packed"``), int8 values [N,C,H,W], or real values (float16, bfloat16 or float32), which are divided by
    ``input_scale``, rounded to nearest with ties to even, and clipped exactly as :func:`subbyte.numerics.quantize` does
    (NaN becomes -8). The output is ``packed`` words, ``float`` values (float32) times ``output_scale`` or, without
    ``gives``, int8 values (int32 for sums); tensors of values are [N,K,P,Q], channels last. Values outside -8..7 are
    clipped to the nearest allowed value.

    ``precision`` is that of :func:`subbyte.conv2d`: ``w4a4:signed.unsigned`` (uint4 activations),
    ``w8a8:signed.signed`` and ``w8a8:signed.unsigned`` (int8 weights with int8 or uint8 activations),
    ``w4a8:signed.unsigned``, and with a zero point z such as ``w8a8:signed.offset-z37``: values are codes 0..255 minus
    z, -37..218, and the padding is 0. Input and output values have the type's dtype: int8; uint8 for uint8; int16 for
    most 8-bit types with a zero point. ``gives`` may name it. The requantization must produce the output's type. For
    groups, use one layer per group and join them with ``torch.cat``, or dense weights with zeros between the groups:
    both are exact.

    Values of other sizes (N, H, W) are accepted too: the first call with a new size builds a kernel and packs the
    weights for it, or shares the words if both kernels read the same. Packed words always have ``input_size``.
    ``torch.compile`` and ``torch.export`` specialize on that size, and dynamic sizes are rejected; a CUDA graph of
    another size needs one call beforehand.

    ``reads`` and ``writes`` name the layouts of packed inputs and outputs, ``nhwcnc`` by default: layers that pass on
    packed words must agree; "" accepts whatever the fastest kernel has. Weights and parameters are buffers:
    ``state_dict`` holds the packed words, and loads into a layer with the same kernel. Raises InvalidInput, Unsupported
    with the reason when no kernel covers the layer.
    """

    weight: torch.Tensor
    requantization: torch.Tensor | None
    thresholds: torch.Tensor | None

    def __init__(
        self,
        weight: torch.Tensor | NDArray[np.int8],
        requant: Requantization | None,
        input_size: tuple[int, int, int],
        *,
        padding: int = 0,
        stride: int = 1,
        dilation: int = 1,
        gives: str | None = None,
        input_scale: float | None = None,
        output_scale: float | None = None,
        reads: str = PACKED_FORM,
        writes: str = PACKED_FORM,
        arch: str | None = None,
        precision: Precision | str = INT4,
    ) -> None:
        super().__init__()
        w, types = _weights(weight), Precision.of(precision)
        self.workload = _workload(w, input_size, padding, stride, dilation, types)
        self._made_of: dict[str, Any] = {
            "w": w, "requant": requant, "padding": padding, "stride": stride, "dilation": dilation, "gives": gives,
            "input_scale": input_scale, "output_scale": output_scale, "reads": reads, "writes": writes,
            "precision": types,
        }  # fmt: skip
        self._further: dict[tuple[object, ...], Conv2d] = {}
        self.gives = _given(gives, types)
        if input_scale is not None:
            number(input_scale, "input_scale", positive=True)
        if gives == "float":
            number(output_scale, "output_scale", positive=True)
        if requant is not None:
            check_channels(requant, self.workload)
        self.input_scale, self.output_scale = input_scale, output_scale
        target = device_arch("auto") if arch is None else arch
        output = SUMS if requant is None else None
        chosen = compile_kernel(self.workload, target, output=output, reads=reads, writes=writes)
        self._take(chosen.for_requantization(requant), w, requant)

    def _take(self, kernel: Kernel, w: NDArray[np.int8], requant: Requantization | None) -> None:
        held = kernel.constants(w, requant)
        self.kernel = kernel_text(kernel)
        self.reason = kernel.reason
        self.arch, self.reads, self.writes = kernel.arch, kernel.argument("A").form, kernel.argument("Out").form
        ends = ends_of(kernel, kernel)
        if ends.pack is None:
            raise InvalidInput(f"{self.workload.label}: {ends.reason}")
        self.shape, self.element = list(ends.returns), ends.gives
        types = self.workload.precision
        self.takes, self.makes = types.activations.dense.name, types.output.dense.name
        self.register_buffer("weight", _words(held["Wt"]))
        self.register_buffer("requantization", _words(held["Prm"]) if "Prm" in held else None)
        steps = (
            None
            if self.input_scale is None
            else torch.from_numpy(thresholds(self.input_scale, types.activations.dense))
        )
        self.register_buffer("thresholds", steps)

    @classmethod
    def from_float(
        cls,
        convolution: torch.nn.Conv2d,
        input_size: tuple[int, int, int],
        *,
        norm: torch.nn.BatchNorm2d | None = None,
        relu: bool = False,
        input_scale: float | None = None,
        output_scale: float | None = None,
        sample: torch.Tensor | None = None,
        gives: str = "float",
        precision: Precision | str = INT4,
        **options: Any,
    ) -> Conv2d:
        """A float convolution [N,C,H,W] quantized to int4, or to ``precision``: ``norm`` is folded into it, ``relu``
        becomes the lower clip, and each filter gets the smallest scale that clips none of its weights.

        Input and output scales are those given, or else those that clip nothing of ``sample``, an input, and of the
        float layers' output for it. ``options`` are those of the class. Raises InvalidInput, Unsupported for groups,
        padding other than zeros, and padding, stride or dilation that differ between rows and columns.
        """
        padding, stride, dilation = one_size(convolution)
        types = Precision.of(precision)
        found = quantized(convolution, norm, relu, input_scale, output_scale, sample, types)
        return cls(
            np.ascontiguousarray(found.weight.transpose(0, 3, 1, 2)), found.requant, input_size, padding=padding,
            stride=stride, dilation=dilation, gives=gives, input_scale=found.input_scale,
            output_scale=found.output_scale, precision=types, **options,
        )  # fmt: skip

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        """Packed words (int32) or values [N,C,H,W] in; the output is what ``gives`` says."""
        if not isinstance(x, torch.Tensor) or x.layout is not torch.strided:
            found = "sparse tensor" if isinstance(x, torch.Tensor) else type(x).__name__
            raise InvalidInput(f"x is a {found}: must be a dense torch tensor")
        if x.dtype != torch.int32:
            wl = self.workload
            if tuple(x.shape) != (wl.n, wl.c, wl.h, wl.w):
                further: torch.Tensor = self._of_size(x)(x)
                return further
            x = _PACK(x.permute(0, 2, 3, 1), self.thresholds, self.reads, self.arch, self.takes)
        words = _CONV2D(x, self.weight, self.requantization, self.kernel)
        if self.gives == "packed":
            return words
        values = _UNPACK(words, self.shape, self.writes, self.arch, self.element, self.makes)
        values = values.permute(0, 3, 1, 2)
        return values * self.output_scale if self.gives == "float" else values

    def _of_size(self, x: torch.Tensor) -> Conv2d:
        """The same layer for the size of ``x``, on its device. Raises InvalidInput if none can be built now."""
        wl, shape = self.workload, list(x.shape)
        asked = f"x has shape {shape}: this layer is built for {[wl.n, wl.c, wl.h, wl.w]} [N,C,H,W]"
        if torch.compiler.is_compiling():
            raise InvalidInput(f"{asked}; torch.compile and torch.export hold only that size, no dynamic one; make "
                               "a layer with input_size of this size")  # fmt: skip
        if len(shape) != 4 or shape[1] != wl.c:
            raise InvalidInput(f"{asked}; N, H and W may differ, C may not")
        key = (*shape, x.device)
        if key not in self._further:
            if x.is_cuda and torch.cuda.is_current_stream_capturing():
                raise InvalidInput(f"{asked}, and a CUDA graph is being captured: call it once with this size before")
            self._further[key] = self._built((shape[0], shape[2], shape[3]), asked).to(x.device)
        return self._further[key]

    def _built(self, size: tuple[int, int, int], asked: str) -> Conv2d:
        made = dict(self._made_of)
        w, requant = made.pop("w"), made.pop("requant")
        own = kernel_of(self.kernel).constants(w, requant)
        for name, buffer in (("Wt", self.weight), ("Prm", self.requantization)):
            if buffer is not None and not torch.equal(buffer.cpu(), _words(own[name])):
                raise InvalidInput(f"{asked}, and its words were loaded from a state, which other sizes cannot be "
                                   "packed from; make a layer with input_size of this size")  # fmt: skip
        weight = np.ascontiguousarray(w.transpose(0, 3, 1, 2))
        found = Conv2d(weight, requant, size, arch=self.arch, **made)
        for name in ("weight", "requantization"):
            mine, other = getattr(self, name), getattr(found, name)
            if mine is not None and torch.equal(mine.cpu(), other):
                setattr(found, name, mine)
        return found

    def _apply(self, fn: Any, recurse: bool = True) -> Conv2d:
        """Keep thresholds in float32 when a whole network is converted to float16 or bfloat16: they are exact."""
        before = self.thresholds
        super()._apply(fn, recurse)
        if before is not None and self.thresholds is not None and self.thresholds.dtype != before.dtype:
            self.thresholds = before.to(self.thresholds.device)
        return self

    def get_extra_state(self) -> str:
        """The kernel that the buffers are packed for, which ``state_dict`` stores beside them."""
        return self.kernel

    def set_extra_state(self, state: object) -> None:
        """Raises InvalidInput for words that were packed for another kernel."""
        if state != self.kernel:
            raise InvalidInput(
                f"the state is packed for the kernel {state!r}, this layer has {self.kernel!r}: make the layer with "
                "the same sizes, requantization, arch, reads and writes, on a machine with the same records"
            )

    def extra_repr(self) -> str:
        """Sizes, kernel, and why it was chosen."""
        return f"{self.workload.label}, gives={self.gives!r}, kernel={self.kernel!r}"


def _weights(weight: Any) -> NDArray[np.int8]:
    """int8 [K,R,S,C] of weights [K,C,R,S]. Raises InvalidInput."""
    if isinstance(weight, torch.Tensor) and weight.dtype != torch.int8:
        raise InvalidInput(f"weight is {weight.dtype}: must be torch.int8 values; from_float takes a float layer")
    given = weight.detach().cpu().numpy() if isinstance(weight, torch.Tensor) else np.asarray(weight)
    if given.ndim != 4:
        raise InvalidInput(f"weight has shape {list(given.shape)}: expected four dimensions, [K,C,R,S]")
    return np.ascontiguousarray(given.transpose(0, 2, 3, 1))


def _given(gives: str | None, types: Precision) -> str:
    """The output of a layer: ``packed``, ``float``, or the dtype of its values. Raises InvalidInput, Unsupported for
    types whose values are not converted on a device."""
    if not (convertible(types.activations.dense) and convertible(types.output.dense)):
        raise Unsupported(f"precision {types.text}: a module takes and gives 4 or 8 bits, signed or unsigned, with or "
                          "without a zero point; subbyte.conv2d takes other types")  # fmt: skip
    dtype = types.output.dense.dtype
    if gives is None:
        return dtype
    one_of(gives, "gives", GIVES)
    if gives not in ("packed", "float", dtype):
        raise InvalidInput(f"gives={gives!r}: {types.output} values are given as packed, {dtype} or float")
    return gives


def _workload(
    w: NDArray[np.int8], size: Any, padding: int, stride: int, dilation: int, types: Precision
) -> ConvWorkload:
    try:
        n, height, width = size
    except (TypeError, ValueError):
        raise InvalidInput(f"input_size={size!r}: expected (N, H, W)") from None
    for value, name in ((n, "N"), (height, "H"), (width, "W")):
        whole(value, f"input_size ({name})", 1)
    k, r, s, c = w.shape
    found = ConvWorkload(n, height, width, c, k, r, s, padding, stride, dilation, precision=types)
    check_values(w, "weight", found.precision.weights)
    return found


def _words(words: NDArray[Any]) -> torch.Tensor:
    return torch.from_numpy(np.array(words).reshape(-1).view(np.int32))
