"""Check and time batches of two launches as a user meets them on this GPU: compiled from nothing.

    python benchmarks/network parts OUT.json LAYER ... [--outputs int32 int4]

Of each layer and output `compile` makes the kernel, from an empty cache and without a store. `run` is compared with the
reference in every element, on random values of the whole range, and a call on the device with `run`. The record says of
how many launches each kernel is; it ends with 1 where something differs.
"""

from __future__ import annotations

import json
import os
import tempfile
import time
from collections.abc import Sequence
from dataclasses import asdict
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import numpy as np

import subbyte
from benchmarks.shared.command import answering, parser_of
from subbyte.files import prove_writable, write_file
from subbyte.gpu.driver import detect
from subbyte.gpu.timing import TimingProtocol, command_line
from subbyte.kernel import Kernel
from subbyte.kernel.execute import random_operands
from subbyte.numerics import reference
from subbyte.records.store import OFF, VARIABLE
from subbyte.workload import ConvWorkload

FORMAT = "subbyte-network-parts"
OUTPUTS = ("int32", "int4")


@answering
def main(arguments: Sequence[str]) -> int:
    parser = parser_of("network parts", __doc__)
    parser.add_argument("out", type=Path)
    parser.add_argument("layers", nargs="+", type=subbyte.workload, metavar="LAYER")
    parser.add_argument("--outputs", nargs="+", choices=OUTPUTS, default=list(OUTPUTS))
    args = parser.parse_args(arguments)
    prove_writable(args.out)
    found: list[dict[str, Any]] = []
    right = True
    with tempfile.TemporaryDirectory(prefix="subbyte-parts-") as folder:
        os.environ |= {"SUBBYTE_CACHE": folder, VARIABLE: OFF}
        record = {
            "format": FORMAT, "schema": 1, "command": command_line(), "date": datetime.now(UTC).date().isoformat(),
            "protocol": asdict(TimingProtocol()), "gpu": detect()[0].to_dict(), "layers": found,
        }  # fmt: skip
        for layer in args.layers:
            found.append({"layer": layer.label})
            for output in args.outputs:
                one = found[-1][output] = measured(layer, output)
                right &= one["equals_reference"] and one["run_equals_on_device"]
                write_file(args.out, (json.dumps(record, indent=1) + "\n").encode())
                print(f"{layer.label} {output}: {len(one['parts'])} launches, {one['microseconds']:.2f} us", flush=True)
    return 0 if right else 1


def measured(layer: ConvWorkload, output: str, device: str = "cuda:0") -> dict[str, Any]:
    """What a kernel is, whether it is right, and its time."""
    begin = time.monotonic()
    kernel = subbyte.compile(layer, output=output)
    one = {
        "seconds": round(time.monotonic() - begin, 2), "reason": kernel.reason,
        "parts": [[part.workload.label, part.key] for part in kernel.parts], **compared(kernel, device),
    }  # fmt: skip
    timing = kernel.time()
    told = ("microseconds", "samples", "cold_microseconds", "cold_samples", "before", "after", "date")
    values = {name: getattr(timing, name) for name in told}
    snapshots = {name: asdict(values[name]) for name in ("before", "after")}
    return {**one, **values, **snapshots}


def compared(kernel: Kernel, device: str) -> dict[str, bool]:
    """Whether ``run`` gives the reference, and a call on the device what ``run`` gives, in every element."""
    x, w, requant = random_operands(kernel, 7)
    if kernel.output == "int32":
        requant = None
    expected = reference(kernel.workload, x, w)
    expected = expected if requant is None else requant.apply(expected)
    ran = kernel.run(x, w, requant, device)
    layer = kernel.on_device(w, requant, device)
    if device == "emulator":
        again = layer(x)
    else:
        import torch  # where there is a GPU the tensors are on it

        again = layer(torch.from_numpy(x).to(device)).cpu().numpy()
    return {
        "run_equals_on_device": bool(np.array_equal(ran, again)),
        "equals_reference": bool(np.array_equal(ran, expected)),
    }
