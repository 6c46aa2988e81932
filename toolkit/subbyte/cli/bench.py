"""``subbyte bench``: this toolkit's kernels and cuDNN side by side on this GPU; ``bench atoms``, ``strides`` and
``planes``: the GPU's measured peaks, the cost of row strides, and pairs of bit planes."""

from __future__ import annotations

import argparse
import json
from importlib import import_module
from pathlib import Path
from types import ModuleType
from typing import TYPE_CHECKING, Any, NamedTuple

from subbyte.cli.arguments import (
    add_sparsity_argument,
    add_workloads_argument,
    command_parser,
    densities,
    emit_and_save,
    natural_number,
    seconds,
    take_sparsity,
)
from subbyte.errors import BrokenRecord, InvalidInput, MissingDependency
from subbyte.files import prove_writable, write_file
from subbyte.streams import say
from subbyte.workload import workloads
from subbyte.workload.operand import DENSE
from subbyte.workload.sparsity import FOUND

if TYPE_CHECKING:
    from subbyte.gpu.device import CudaDevice

PLANES_LAYER = "resnet50.stage3@64"


class Experiment(NamedTuple):
    """A word in place of WORKLOADs: the module whose ``text_of`` prints its record, and the shape of the record."""

    module: str
    shape: str
    about: str


DENSITIES = Experiment(
    "subbyte.measure.densities",
    "DensitiesShape",
    "kernels that find zeros, compared with dense ones at several densities",
)
EXPERIMENTS = {
    "atoms": Experiment(
        "subbyte.measure.atoms.report", "PeaksShape",
        "the measured peaks of this GPU: single matrix instructions, copies, launches; `atoms wgmma.sp` takes only "
        "those with this text in their name",
    ),
    "strides": Experiment(
        "subbyte.measure.latency.report", "StridesShape",
        "cycles to load and store a tile, by the stride between its rows, and cycles of one-bit products",
    ),
    "planes": Experiment(
        "subbyte.measure.plane_scaling", "PlanesShape",
        f"the time of a layer (default {PLANES_LAYER}) in 15 precisions, by the number of pairs of bit planes",
    ),
}  # fmt: skip


_PRINTED = {**EXPERIMENTS, "densities": DENSITIES}


def add_parser(subparsers: Any) -> None:
    """Add the arguments of ``subbyte bench``."""
    parser = command_parser(
        subparsers,
        "bench",
        "Time this toolkit's kernels side by side with cuDNN's (float16, bfloat16, float8, int8); needs PyTorch.\n"
        "With --from, print a record again; needs no GPU. Other measurements, by a word in place of WORKLOAD:\n"
        + "".join(f"  {word}: {one.about}\n" for word, one in EXPERIMENTS.items()),
        "subbyte bench resnet50.stage2@8\n  subbyte bench atoms --out atoms.json\n  subbyte bench --from atoms.json\n"
        "  subbyte bench strides\n  subbyte bench planes resnet50.stage4@64\n"
        "  subbyte bench gemm4096 --sparsity condense --densities 0.3,0.1,0.05,0.02",
    )
    add_workloads_argument(parser, nargs="*")
    add_sparsity_argument(parser)
    parser.add_argument("--densities", metavar="D,D,...", type=densities,
                        help="with --sparsity condense: shares of nonzero values in both operands")  # fmt: skip
    text = "measure the kernels of this bundle instead of building WORKLOAD; may be repeated"
    parser.add_argument("--bundle", action="append", default=[], metavar="DIR", help=text)
    parser.add_argument("--device", type=natural_number, default=0, metavar="N", help="GPU number (default 0)")
    parser.add_argument("--out", metavar="FILE", help="also write the record, with every sample, to this JSON file")
    parser.add_argument(
        "--from", metavar="FILE", dest="record", type=Path, help="print this record; nothing is measured"
    )
    parser.add_argument("--plan-seconds", type=seconds, default=40.0, metavar="S",
                        help="time limit for the plans of one cuDNN graph (default 40)")  # fmt: skip
    parser.add_argument("--no-graph-api", action="store_true", help="measure cuDNN only through PyTorch")


def run(args: argparse.Namespace) -> int:
    """Measure and print; 0 if every side was measured, 1 if one of our kernels was wrong or did not run."""
    if args.out is not None:
        prove_writable(args.out, parents=True)
    elsewhere = args.record is not None or args.bundle or (args.workloads and args.workloads[0] in EXPERIMENTS)
    if args.sparsity != DENSE and elsewhere:
        raise InvalidInput(
            f"--sparsity applies to WORKLOADs: leave it out with --from, --bundle, {', '.join(EXPERIMENTS)}"
        )
    if args.densities is not None and (args.sparsity != FOUND or elsewhere):
        raise InvalidInput(f"--densities apply to WORKLOADs with --sparsity {FOUND}: add that, or leave them out")
    if args.record is not None:
        return _show(args)
    if args.sparsity == FOUND:
        return _densities(args)
    if args.workloads and args.workloads[0] in EXPERIMENTS and not args.bundle:
        return _experiment(args)
    from subbyte.gpu.lock import hold
    from subbyte.measure.sidebyside import build_candidates, from_bundles, side_by_side, text_of

    if bool(args.workloads) == bool(args.bundle):
        raise InvalidInput(
            f"bench needs WORKLOADs (resnet50.stage2@8), --bundle DIR, or one of the words {', '.join(EXPERIMENTS)}"
        )
    take_sparsity(args)
    asked = [one for text in args.workloads for one in workloads(text)]
    packed = from_bundles(args.bundle)
    device = _device(args.device)
    kernels = packed or {one: build_candidates(one, device.info.arch) for one in asked}
    with hold(device.info):
        record = side_by_side(
            kernels, device, plan_seconds=args.plan_seconds, graph_api=not args.no_graph_api,
            say=say,
        )  # fmt: skip
    failed = _put(record, args, text_of(record))
    return failed or int(any(entry["side"].startswith("subbyte") for entry in record["missing"]))


def _experiment(args: argparse.Namespace) -> int:
    """The experiment that a word selects."""
    from subbyte.gpu.lock import hold

    word, *more = args.workloads
    takes = {"atoms": "one TEXT at most, a part of instructions' names", "planes": "one WORKLOAD at most"}
    layers = [one for text in more for one in workloads(text)] if word == "planes" else []
    if max(len(more), len(layers)) > (word in takes):
        raise InvalidInput(f"bench {word} takes {takes.get(word, 'no WORKLOADs')}")
    device = _device(args.device)
    with hold(device.info):
        if word == "atoms":
            from subbyte.measure.atoms import measure_atoms

            record = measure_atoms(device, say=say, only="".join(more))
        elif word == "strides":
            from subbyte.measure.latency import measure_strides

            record = measure_strides(device, say=say)
        else:
            from subbyte.measure.plane_scaling import measure_planes

            record = measure_planes((layers or workloads(PLANES_LAYER))[0], device, say=say)
    return _put(record, args, _printing(word).text_of(record))


def _densities(args: argparse.Namespace) -> int:
    """Kernels that find zeros, compared with dense ones."""
    from subbyte.gpu.lock import hold
    from subbyte.measure import densities as measure

    layers = [one for text in args.workloads for one in workloads(text)]
    if len(layers) != 1:
        raise InvalidInput(f"bench --sparsity {FOUND} takes one WORKLOAD, such as gemm4096")
    device = _device(args.device)
    sides = measure.sides_of(layers[0], device.info.arch)
    with hold(device.info):
        record = measure.measure_densities(
            layers[0], sides, device, args.densities or measure.DENSITIES, torch_device=measure.library_on(device),
            say=say,
        )  # fmt: skip
    wrong = any(one["wrong"] for row in record["rows"] for one in row.get("sides", {}).values())
    return _put(record, args, measure.text_of(record)) or int(wrong)


def _printing(word: str) -> ModuleType:
    return import_module(_PRINTED[word].module)


def _device(number: int) -> CudaDevice:
    """The GPU. Raises MissingDependency; the message says what works without one."""
    from subbyte.gpu import device

    try:
        return device.CudaDevice(number)
    except MissingDependency as error:
        raise MissingDependency(f"{error}; `subbyte bench --from FILE` prints a recorded run") from None


def _show(args: argparse.Namespace) -> int:
    """Print a record of an earlier run as it was printed then."""
    from subbyte.measure import sidebyside
    from subbyte.records.reading import json_file, typed

    word = args.workloads[0] if len(args.workloads) == 1 else None
    if args.bundle or (args.workloads and word not in EXPERIMENTS):
        raise InvalidInput("--from prints a whole record: leave out WORKLOADs and --bundle")
    source, advice = f"{args.record}: no record of `subbyte bench`, or a damaged one", "`subbyte bench --out` makes one"
    try:
        record: Any = json_file(args.record, "record")
    except BrokenRecord as error:
        raise BrokenRecord(f"{source} ({error!s:.300}); {advice}") from None
    except InvalidInput as error:
        raise InvalidInput(f"cannot read {error!s:.300}; give a file of `subbyte bench --out`") from None
    kind = record.get("kind") if isinstance(record, dict) else None
    printing = _printing(kind) if kind in _PRINTED else sidebyside
    typed(record, getattr(printing, _PRINTED[kind].shape) if kind in _PRINTED else sidebyside.BenchShape, source,
          advice)  # fmt: skip
    try:
        text = printing.text_of(record)
        shown = {**record, "command": record["command"]}
    except (ValueError, KeyError, TypeError, AttributeError, IndexError):
        raise BrokenRecord(f"{source}; {advice}") from None
    return _put(shown, args, text)


def _put(record: dict[str, Any], args: argparse.Namespace, text: str) -> int:
    """Print a record, and write it to ``--out``; returns the exit code."""

    def save() -> None:
        if args.out is not None:
            write_file(args.out, (json.dumps(record, indent=1) + "\n").encode())

    shown = {key: value for key, value in record.items() if key not in ("schema", "command")}
    return emit_and_save("bench", {**shown, "command_line": record["command"]}, args, text, save)
