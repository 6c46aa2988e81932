"""Time kernels that skip the zeros they find, and dense ones, at several densities of both operands.

``build FILE`` writes their CUDA texts, for a machine without TVM; ``measure FILE OUT`` compiles, verifies and times
them there. Dense are the fastest recorded kernel of the layer, or the first that the estimate names, and cuBLAS's
product of int8 operands through PyTorch. All sides of a density have the same operands and take turns in one process.
"""

from __future__ import annotations

import json
import time
from collections.abc import Sequence
from itertools import islice
from typing import Any

import subbyte
from benchmarks.shared.command import answering
from benchmarks.shared.texts import all_compiled, lines_of
from benchmarks.sparse.built import two_steps, write_lines
from subbyte.device.arch import arch
from subbyte.families import config_from_key, family_of
from subbyte.families.condense.dense import MEASURED
from subbyte.families.registry import families
from subbyte.files import prove_writable, write_file
from subbyte.kernel import Kernel
from subbyte.kernel.build import make_plan
from subbyte.kernel.choose import best_known
from subbyte.kernel.resources import read_resources
from subbyte.measure.densities import DENSITIES, Side, measure_densities
from subbyte.records.describe import to_line
from subbyte.spaces.configuration import Configuration
from subbyte.workload import ConvWorkload

LAYERS = ("gemm4096", "resnet50.stage4.reduce1x1@64", "resnet50.stage5.reduce1x1@64",
          "resnet50.stage3.expand1x1@256", "resnet50.stage5.reduce1x1@256")  # fmt: skip
FIRST = "gemm4096"
"""The layer on which many configurations are tried; the others take the estimate's."""
TRIED = (
    "cd-rw4-cw4-pn2-ch16-ct1", "cd-rw4-cw4-pn2-ch16-ct2", "cd-rw4-cw4-pn2-ch16-ct4", "cd-rw4-cw4-pn2-ch16-ct1-fa1",
    "cd-rw4-cw4-pn2-ch16-ct2-fa1", "cd-rw4-cw4-pn2-ch16-ct4-fa1", "cd-rw4-cw6-pn1-ch16-ct4",
    "cd-rw4-cw6-pn1-ch16-ct4-fa1", "cd-rw4-cw6-pn1-ch16-ct2-fa1", "cd-rw8-cw3-pn1-ch16-ct4-fa1",
    "cd-rw4-cw5-pn1-ch16-ct4-fa1", "cd-rw4-cw4-pn2-ch16-ct4-sh1", "cd-rw4-cw2-pn2-ch16-ct4-ah0-mb2",
    "cd-rw4-cw2-pn4-ch16-ct4",
)  # fmt: skip
"""Ways to divide a large product."""


def skipping(workload: ConvWorkload, keys: Sequence[str], most: int) -> list[Configuration]:
    """Configurations that can be built: those named, else the first that the estimate names."""
    target = arch("sm_90a")
    found = [config_from_key(key) for key in keys]
    if not found:
        finding = (one for one in families().values() if one.finds_zeros and one.hopeless(workload, target) is None)
        found = [config for one in finding for config in islice(one.candidates(workload, target), most)]
    return [one for one in found if family_of(one).check(family_of(one).plan(workload, one, target)) is None]


def dense(workload: ConvWorkload, most: int) -> list[Configuration]:
    """The best known kernel of all families, and what the estimate of the newest instruction names first."""
    best, _ = best_known(workload, "sm_90a")
    more = islice(family_of(best).candidates(workload, arch("sm_90a")), most)
    return list(dict.fromkeys((best, *more)))


def line(workload: ConvWorkload, config: Configuration, output: str) -> str:
    """One kernel, with its text."""
    plan = make_plan(workload, config, "sm_90a", output, None, "fixed")
    about: dict[str, Any] = {"layer": workload.label, "config": config.key, "output": output}
    return to_line({**about, "cuda": Kernel(plan).cuda})


def build(asked: Any) -> int:
    """Write the texts."""
    lines = []
    for name in asked.layers:
        workload = subbyte.workload(name)
        keys = asked.configs or (TRIED if name == FIRST else ())
        configs = [*skipping(workload, keys, asked.most), *dense(workload, asked.dense)]
        lines += [line(workload, config, "int4") for config in configs]
        print(f"{name}: {len(configs)} kernels", flush=True)
    write_lines(asked.out, lines)
    return 0


def exact_on(torch: Any) -> Any:
    """The exact sums of matrix products on the GPU: in float32, where integers below 2^24 are exact."""

    def sums(x: Any, w: Any) -> Any:
        torch.backends.cuda.matmul.allow_tf32 = False
        left = torch.from_numpy(x.reshape(-1, x.shape[3])).cuda().float()
        right = torch.from_numpy(w.reshape(w.shape[0], -1)).cuda().float()
        found = (left @ right.t()).round().int().cpu().numpy()
        return found.reshape(*x.shape[:3], w.shape[0])

    return sums


def measure(asked: Any) -> int:
    """Measure them: quickly at one density, then the fastest at all."""
    from subbyte.gpu.device import CudaDevice
    from subbyte.measure.baselines import TorchDevice

    prove_writable(asked.out)
    end = time.monotonic() + asked.seconds
    lines = lines_of(asked.texts)
    built = all_compiled(lines)
    device = CudaDevice(0)
    torch_device = TorchDevice(device.info)
    entries = [json.loads(one) for one in lines]
    records: list[dict[str, Any]] = []
    refused: list[dict[str, Any]] = []
    for name in dict.fromkeys(entry["layer"] for entry in entries):
        if time.monotonic() > end:
            break
        workload = subbyte.workload(name)
        sides = []
        for entry, result in zip(entries, built, strict=True):
            if entry["layer"] != name:
                continue
            side, reason = _side(workload, entry, result)
            if side is None:
                refused.append({"layer": name, "config": entry["config"], "reason": reason})
                print(name, entry["config"], reason, flush=True)
            else:
                sides.append(side)
        exact = exact_on(torch_device.torch)

        def say(text: str) -> None:
            print("  " + text, flush=True)

        quick = measure_densities(workload, sides, device, asked.quick, 1, None, exact, say)
        kept = _fastest(sides, quick, asked.best)
        print(name, "fastest:", [side.name for side in kept], flush=True)
        record = measure_densities(workload, kept, device, asked.densities, asked.rounds, torch_device, exact, say)
        print(name, "break-even", {k: v for k, v in (record["break_even"] or {}).items() if k != "gains"}, flush=True)
        records.append({**record, "quick": quick["rows"]})
        whole = {"schema": 1, "kind": "densities", "records": records, "refused": refused}
        write_file(asked.out, (json.dumps(whole, indent=1) + "\n").encode())
    return int(any(one["wrong"] for record in records for row in record["rows"] for one in row["sides"].values()))


def collect(asked: Any) -> int:
    """Write the break-evens of a record where the library looks them up."""
    record = json.loads(asked.record.read_text(encoding="utf-8"))["records"]
    found = {one["spec"]: (one["break_even"] or {}).get("value") or 0.0 for one in record}
    gpu = record[0]["device"]["name"]
    whole = {"gpu": gpu, "record": asked.record.name, "products": found}
    write_file(MEASURED, (json.dumps(whole, indent=1) + "\n").encode())
    return 0


def _side(workload: ConvWorkload, entry: dict[str, Any], result: Any) -> tuple[Side | None, str]:
    if isinstance(result, str):
        return None, result
    cubin, log = result
    config = config_from_key(entry["config"])
    plan = make_plan(workload, config, "sm_90a", entry["output"], None, "fixed")
    found = read_resources(log, plan.arch, plan.launch.block[0], plan.shared_bytes)
    reason = family_of(config).refused(cubin, log, found.local_bytes)
    return (Side(Kernel(plan), cubin), "") if reason is None else (None, reason)


def _fastest(sides: Sequence[Side], quick: dict[str, Any], best: int) -> list[Side]:
    """Of the skipping ones the fastest few of each density, of the dense ones the fastest."""
    names: dict[str, None] = {}
    for row in quick["rows"]:
        for which, most in (("skipping", best), ("dense", 1)):
            right = [one for one in quick[which] if "sides" in row and row["sides"][one]["wrong"] == 0]
            names |= dict.fromkeys(sorted(right, key=lambda one: row["sides"][one]["microseconds"])[:most])
    return [side for side in sides if side.name in names]


@answering
def main(arguments: Sequence[str]) -> int:
    """Build or measure."""
    parser, writing, running = two_steps("sparse densities", __doc__, "collect: the break-evens, for the library")
    writing.add_argument("--layers", nargs="+", default=list(LAYERS), metavar="LAYER")
    writing.add_argument("--configs", nargs="+", default=[], metavar="KEY", help="instead of those named here")
    writing.add_argument("--most", type=int, default=4, help="skipping kernels of a layer, by estimate (default 4)")
    writing.add_argument("--dense", type=int, default=4, help="dense kernels of a layer, by estimate (default 4)")
    running.add_argument("--densities", type=float, nargs="+", default=list(DENSITIES))
    running.add_argument("--quick", type=float, nargs="+", default=[0.05, 0.02], help="to choose the fastest at")
    running.add_argument("--best", type=int, default=2, help="skipping kernels of each of those (default 2)")
    running.add_argument("--rounds", type=int, default=7)
    running.add_argument("--seconds", type=float, default=90.0, help="begin no layer after that (default 90)")
    asked = parser.parse_args(arguments)
    return {"build": build, "measure": measure, "collect": collect}[asked.what](asked)
