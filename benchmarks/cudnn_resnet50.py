"""The four 3x3 stages of ResNet50 at batch 8: this toolkit's prebuilt kernels against cuDNN, in one process.

    python benchmarks/cudnn_resnet50.py BUNDLE [BUNDLE ...] --out benchmarks/results/h200.json

A BUNDLE is a folder of kernels built beforehand, so neither TVM nor a compiler is needed on the machine with the GPU.
cuDNN runs through PyTorch (float16, bfloat16) and, where nvidia-cudnn-frontend is installed, through its graph API
with every plan its heuristics offer (float16, bfloat16, int8 to int32, int8 to int8). Every side computes from the same
int4 values and is compared with the exact reference; every side is timed by CUDA-graph replay under one protocol
(subbyte/gpu/timing.py). The record keeps every sample, clocks, power, the plan and the epilogue of each row.
"""

from __future__ import annotations

import argparse
import json
import sys
from pathlib import Path

from subbyte.errors import SubbyteError
from subbyte.gpu.device import CudaDevice
from subbyte.gpu.timing import TimingProtocol
from subbyte.measure.sidebyside import from_bundles, side_by_side, text_of


def main() -> int:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("bundle", nargs="+", help="folder of prebuilt kernels, one workload each")
    parser.add_argument("--out", required=True, help="JSON file of the record")
    parser.add_argument("--device", type=int, default=0)
    parser.add_argument("--min-total-ms", type=float, default=50.0, help="device time of a row's hot samples together")
    parser.add_argument("--plan-seconds", type=float, default=25.0, help="time for the plans of one cuDNN graph")
    parser.add_argument("--no-graph-api", action="store_true")
    args = parser.parse_args()
    try:
        record = side_by_side(
            from_bundles(args.bundle),
            CudaDevice(args.device),
            TimingProtocol(min_total_ms=args.min_total_ms, repeats=15, cold_repeats=11),
            plan_seconds=args.plan_seconds,
            graph_api=not args.no_graph_api,
            say=lambda text: print(text, file=sys.stderr, flush=True),
        )
    except SubbyteError as error:
        print(f"error: {error}", file=sys.stderr)
        return error.exit_code
    target = Path(args.out)
    target.parent.mkdir(parents=True, exist_ok=True)
    target.write_text(json.dumps(record, indent=1) + "\n", encoding="utf-8")
    print(text_of(record))
    return int(any(entry["side"].startswith("subbyte") for entry in record["missing"]))


if __name__ == "__main__":
    sys.exit(main())
