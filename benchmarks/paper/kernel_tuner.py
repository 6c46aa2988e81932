"""Run Kernel Tuner's own searches as baselines in a race, on an exported landscape.

python benchmarks/paper kernel-tuner resnet50.stage2@8 --seeds 100 --trials 200 -o genetic.json.gz
subbyte race resnet50.stage2@8 --seeds 100 --trials 200 --traces genetic.json.gz

Runs Kernel Tuner's simulation mode (no GPU; the package kernel-tuner) once per seed at the strategy's default options
and writes the configurations each run visited. A configuration that is visited again is not counted again, as in
Kernel Tuner itself. Invalid combinations are kept from it by a restriction, as a user of Kernel Tuner would.
"""

from __future__ import annotations

import contextlib
import io
import json
import random
import tempfile
import warnings
from collections.abc import Sequence
from importlib import metadata
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks.shared.command import answering, parser_of
from subbyte.analysis import write_traces
from subbyte.errors import MissingDependency
from subbyte.records.exchange import export_landscape, restriction, to_kernel_tuner
from subbyte.records.foreign import index_of
from subbyte.records.landscape import landscape
from subbyte.tune import Landscape


@answering
def main(arguments: Sequence[str]) -> int:
    parser = parser_of("paper kernel-tuner", __doc__)
    parser.add_argument("landscape", help="a landscape file, a shipped name or its workload")
    parser.add_argument("--strategy", default="genetic_algorithm", help="Kernel Tuner's name of the strategy")
    parser.add_argument("--trials", type=int, default=200, help="unique evaluations of each run")
    parser.add_argument("--seeds", type=int, default=100, help="runs, seeds 0 to N-1")
    parser.add_argument("-o", "--output", type=Path, required=True, help="trace file (.json or .json.gz)")
    args = parser.parse_args(arguments)
    found = landscape(args.landscape)
    visits = dict(enumerate(search(found, args.strategy, args.trials, range(args.seeds))))
    tool = {"name": "kernel-tuner", "version": metadata.version("kernel-tuner"), "strategy": args.strategy,
            "options": {"max_fevals": args.trials}}  # fmt: skip
    path = write_traces(args.output, f"kernel_tuner:{args.strategy}", found, visits, tool)
    counts = [len(visited) for visited in visits.values()]
    print(f"{path}: {len(visits)} runs, {min(counts)} to {max(counts)} unique evaluations")
    return 0


def search(found: Landscape, strategy: str, trials: int, seeds: Any) -> list[list[int]]:
    """Indices that Kernel Tuner's ``strategy`` visited for each seed, each once, in order."""
    try:
        import kernel_tuner
    except ImportError:
        raise MissingDependency("this needs Kernel Tuner: pip install 'kernel-tuner>=1.4,<2'") from None
    header = {name: value for name, value in to_kernel_tuner(found).items() if name not in ("cache", "subbyte")}
    knobs = header["tune_params"]
    with tempfile.TemporaryDirectory() as folder:
        cache = str(export_landscape(found, Path(folder) / "cache.json", "kernel-tuner"))
        visits = []
        for seed in seeds:
            random.seed(seed)
            np.random.seed(seed)  # noqa: NPY002 (what Kernel Tuner draws from)
            with contextlib.redirect_stdout(io.StringIO()), warnings.catch_warnings():
                warnings.simplefilter("ignore")  # it misses knobs named after thread blocks
                rows, _ = kernel_tuner.tune_kernel(
                    header["kernel_name"], "not compiled", header["problem_size"], [], json.loads(json.dumps(knobs)),
                    restrictions=restriction(found), simulation_mode=True, cache=cache, strategy=strategy,
                    strategy_options={"max_fevals": trials}, seed=seed, lang="CUDA", quiet=True,
                )  # fmt: skip
            indices = [index_of(row, knobs) for row in rows]
            visits.append([index for index in dict.fromkeys(indices) if index in found.results][:trials])
    return visits
