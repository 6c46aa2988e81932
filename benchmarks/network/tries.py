"""Time `compile(tries=)` on this GPU, from an empty cache and an empty store, and show what it found.

    python benchmarks/network tries OUT.json LAYER ... [--tries 16] [--texts TEXTS.jsonl.xz]

``--texts`` (of tests/gpu/tries_texts.py) are CUDA texts for a machine without TVM: the time then lacks making them. Run
it under ``taskset -c 0-7`` for the time on eight cores; the record says how many there were.
"""

from __future__ import annotations

import json
import os
import sys
import tempfile
import time
from collections.abc import Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import subbyte
from benchmarks.shared.command import answering, parser_of
from subbyte.analysis.origin import origin
from subbyte.files import prove_writable, write_file
from subbyte.gpu.driver import detect
from subbyte.gpu.timing import command_line
from subbyte.measure.gpu_worker import usable_cpus
from subbyte.records.store import VARIABLE, Store
from subbyte.workload import ConvWorkload

FORMAT = "subbyte-network-tries"
GPU_TESTS = Path(__file__).resolve().parents[2] / "tests/gpu"


@answering
def main(arguments: Sequence[str]) -> int:
    parser = parser_of("network tries", __doc__)
    parser.add_argument("out", type=Path)
    parser.add_argument("layers", nargs="+", type=subbyte.workload, metavar="LAYER")
    parser.add_argument("--tries", type=int, default=16)
    parser.add_argument("--texts", type=Path, help="CUDA texts, where TVM is not installed")
    args = parser.parse_args(arguments)
    prove_writable(args.out)
    found: list[dict[str, Any]] = []
    with tempfile.TemporaryDirectory(prefix="subbyte-tries-") as folder:
        os.environ |= {"SUBBYTE_CACHE": f"{folder}/cache", VARIABLE: f"{folder}/own.sqlite"}
        if args.texts is not None:
            sys.path.append(str(GPU_TESTS))
            from tries_texts import prime

            prime(args.texts)
        record = {
            "format": FORMAT, "schema": 1, "command": command_line(), "date": datetime.now(UTC).date().isoformat(),
            "gpu": detect()[0].to_dict(), "cores": usable_cpus(), "texts_given": args.texts is not None,
            "tries": args.tries, "layers": found,
        }  # fmt: skip
        for layer in args.layers:
            found.append(measured(layer, args.tries, Path(folder) / "own.sqlite"))
            write_file(args.out, (json.dumps(record, indent=1) + "\n").encode())
            print("{layer}: {seconds:.2f} s, {reason}".format(**found[-1]), flush=True)
    return 0


def measured(layer: ConvWorkload, tries: int, store: Path) -> dict[str, Any]:
    """Seconds, what was stored and what was said of one layer."""
    before = origin(layer)
    begin = time.monotonic()
    kernel = subbyte.compile(layer, tries=tries)
    seconds = time.monotonic() - begin
    rows = [row.record.to_dict() for row in Store(store).rows(layer.spec)]
    return {
        "layer": layer.label, "seconds": round(seconds, 3), "config": kernel.config.key, "reason": kernel.reason,
        "before": before.source, "stored": rows, "after": origin(layer).source,
    }  # fmt: skip
