"""From a float convolution, with or without batch normalization after it, to integer weights and a requantization."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
import torch
from numpy.typing import NDArray

from subbyte.errors import InvalidInput, Unsupported
from subbyte.numerics import Requantization, quantize, scale_for
from subbyte.workload.precision import Precision


class Quantized(NamedTuple):
    """Weights int8 [K,R,S,C], the requantization of the sums, and the input and output scales."""

    weight: NDArray[np.int8]
    requant: Requantization
    input_scale: float
    output_scale: float


def folded(convolution: torch.nn.Conv2d, norm: Any) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Weights [K,C,R,S] and bias [K] of a convolution with the batch normalization after it folded in, as in inference.
    Raises InvalidInput."""
    weight = _array(convolution.weight)
    bias = np.zeros(weight.shape[0]) if convolution.bias is None else _array(convolution.bias)
    if norm is None:
        return weight, bias
    if not isinstance(norm, torch.nn.BatchNorm2d) or norm.running_mean is None or norm.running_var is None:
        raise InvalidInput(f"norm is a {type(norm).__name__}: must be a BatchNorm2d that tracks its mean, or None")
    if norm.num_features != weight.shape[0]:
        raise InvalidInput(f"norm has {norm.num_features} channels, the convolution {weight.shape[0]}: must be equal")
    factor = 1 / np.sqrt(_array(norm.running_var) + norm.eps)
    shift = np.zeros_like(factor)
    if norm.weight is not None:
        factor, shift = factor * _array(norm.weight), _array(norm.bias)
    return weight * factor[:, None, None, None], (bias - _array(norm.running_mean)) * factor + shift


def quantized(
    convolution: torch.nn.Conv2d, norm: Any, relu: bool, input_scale: float | None, output_scale: float | None,
    sample: torch.Tensor | None, types: Precision,
) -> Quantized:  # fmt: skip
    """See :meth:`Conv2d.from_float`."""
    weight, bias = folded(convolution, norm)
    if sample is not None and not (isinstance(sample, torch.Tensor) and sample.dim() == 4
                                   and sample.shape[1] == convolution.in_channels):  # fmt: skip
        found = list(sample.shape) if isinstance(sample, torch.Tensor) else type(sample).__name__
        raise InvalidInput(f"sample is {found}: must be a tensor [N,{convolution.in_channels},H,W]")
    if (input_scale is None or output_scale is None) and sample is None:
        raise InvalidInput("input_scale and output_scale are needed, or a sample of the input to observe them on")
    if sample is not None and input_scale is None:
        input_scale = scale_for(_array(sample), types.activations.dense)
    if sample is not None and output_scale is None:
        output_scale = scale_for(_observed(convolution, norm, relu, sample), types.output)
    assert input_scale is not None
    assert output_scale is not None
    weights = types.weights.dense
    scales = np.array([scale_for(one, weights) for one in weight])
    values = np.stack([quantize(one, scale, weights) for one, scale in zip(weight, scales, strict=True)])
    steps = np.rint(bias / (input_scale * scales))
    if np.abs(steps).max(initial=0) > np.iinfo(np.int32).max:
        raise InvalidInput(f"the bias is {np.abs(steps).max():g} steps of a sum: 32 bits do not hold it; give a larger "
                           "input_scale")  # fmt: skip
    factors = input_scale * scales / output_scale
    requant = Requantization.from_scale(factors, steps.astype(np.int32), relu=relu, output=types.output)
    return Quantized(np.ascontiguousarray(values.transpose(0, 2, 3, 1)), requant, input_scale, output_scale)


def _observed(convolution: torch.nn.Conv2d, norm: Any, relu: bool, sample: torch.Tensor) -> NDArray[np.float64]:
    """The float layer's output for a sample, in inference mode."""
    with torch.no_grad():
        y = convolution(sample)
        if norm is not None:
            y = torch.nn.functional.batch_norm(y, norm.running_mean, norm.running_var, norm.weight, norm.bias, False,
                                               0.0, norm.eps)  # fmt: skip
        return _array(torch.relu(y) if relu else y)


def one_size(convolution: torch.nn.Conv2d) -> tuple[int, int, int]:
    """Padding, stride and dilation of a convolution. Raises Unsupported for combinations that no kernel has."""
    if not isinstance(convolution, torch.nn.Conv2d):
        raise InvalidInput(f"convolution is a {type(convolution).__name__}: must be a torch.nn.Conv2d")
    found = []
    for name in ("padding", "stride", "dilation"):
        sizes = getattr(convolution, name)
        if isinstance(sizes, str) or len(set(sizes)) != 1:
            raise Unsupported(f"{name}={sizes!r}: must be one number for rows and columns; pad the input yourself")
        found.append(int(sizes[0]))
    if convolution.groups != 1:
        raise Unsupported(
            f"groups={convolution.groups}: must be 1; make one layer for each group, call it with its channels and "
            "join the results with torch.cat, or give dense weights with zeros between the groups; both are exact"
        )
    if convolution.padding_mode != "zeros":
        raise Unsupported(f"padding_mode={convolution.padding_mode!r}: must be 'zeros'; pad the input yourself")
    return found[0], found[1], found[2]


def _array(tensor: torch.Tensor) -> NDArray[np.float64]:
    return tensor.detach().to("cpu", torch.float64).numpy()
