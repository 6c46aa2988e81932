"""The TIRx function of a kernel: weights, pixels, products, partial sums of others, results."""

from __future__ import annotations

from typing import Any

from tvm.script import tirx as T

from subbyte.families.image.emit import exchange, pixels
from subbyte.families.image.emit.block import coordinates
from subbyte.families.image.emit.epilogue import ImageTarget, load_parameters
from subbyte.families.image.emit.multiply import load_weights, multiply, unpack
from subbyte.families.image.plan import ImagePlan
from subbyte.tirx import instructions as op
from subbyte.tirx.function import kernel_function


def image_kernel(plan: ImagePlan) -> Any:
    """The TIRx function of a plan."""
    return kernel_function(plan, 1, _body)


def _body(plan: ImagePlan, activations: Any, output: Any, parameters: Any, weights: Any) -> None:
    block = coordinates(plan, activations, output, parameters, weights)
    held = load_weights(block)
    own = load_parameters(block)
    exchange.set_up(block)
    if plan.config.dependent_launch:
        op.allow_next_launch()
        op.wait_for_previous_launch()
    pieces = pixels.load(block)
    target = ImageTarget(block, own)
    target.clear_padding()
    begun = [unpack(block, held, fragment) for fragment in range(min(plan.config.in_flight, plan.fragments))]
    pixels.store(block, pieces)
    T.evaluate(T.cuda.cta_sync())
    sums = multiply(block, held, begun)
    target.store_all(exchange.exchange(block, sums))
