"""Builds what the GPU tests run, on a machine with TVM; the machine with the GPU needs neither TVM nor a compiler.

    PYTHONPATH=toolkit python tests/gpu/build_kernels.py FOLDER [--arch sm_90a] [--quick]
    SUBBYTE_GPU_BUNDLE=FOLDER PYTHONPATH=toolkit python -m pytest -m gpu tests/gpu     # there

FOLDER gets ``kernels.jsonl`` (one kernel a line: workload, configuration, output, clip, cubin, launch), the cubins, a
small bundle as `subbyte landscape record` builds it, and four kernels that misbehave on purpose.
"""

from __future__ import annotations

import argparse
import hashlib
import json
import sys
from dataclasses import asdict
from pathlib import Path

import numpy as np

from subbyte.device.arch import arch as arch_named
from subbyte.errors import SubbyteError
from subbyte.kernel import build
from subbyte.kernel.nvrtc import compile_cubin
from subbyte.kernel.warpgroup_default import warpgroup_candidates
from subbyte.schedule import ConvConfig, WarpgroupConfig
from subbyte.space import space
from subbyte.tune.bundle import build_bundle
from subbyte.workload import ConvWorkload, workload

SHAPES = (
    "n8h6w6c32k32r3s3p1", "n1h5w7c40k24r3s3p1", "n9h4w9c64k40r3s3p0", "n3h11w5c32k64r1s1p0", "n8h9w9c64k32r3s3p1u2",
    "n2h12w10c33k65r3s3p2d2", "n8h7w7c32k32r5s5p2", "n4h8w3c96k32r1s3p1", "n17h3w3c32k32r3s3p1", "n8h1w1c128k96r1s1p0",
)  # fmt: skip
"""Awkward ones: batches, channels and filters that need padding, odd sizes, strides, dilation, single pixels."""

VARIANTS = (
    {}, {"layout": "nhwc"}, {"duplicate_aware": "none"}, {"duplicate_aware": "shared"}, {"register_packing": False},
    {"layout": "nhwc", "duplicate_aware": "none", "register_packing": False}, {"reorder_inner": 1}, {"stages": 3},
    {"warp_row_tiles": 1, "warp_col_tiles": 1}, {"warp_row_tiles": 8, "warp_col_tiles": 2, "blk_row_warps": 2},
    {"blk_col_warps": 1, "warp_col_tiles": 2},
)  # fmt: skip
OPTIONS = ({}, {"clip": (0, 7)}, {"output": "int32"}, {"requant": "general"})

FAULTY = {
    "spin": "while (atomicAdd(out, 0u) != 0xFFFFFFFFu) {}",
    "stray": "*(volatile unsigned*)((unsigned long long)out + (1ull << 45)) = 1u;",
    "silent": "if (threadIdx.x == 99999u) out[0] = 1u;",
}


def main() -> int:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("folder", type=Path)
    parser.add_argument("--arch", default="sm_90a")
    parser.add_argument("--quick", action="store_true", help="a few kernels of each shape")
    args = parser.parse_args()
    (args.folder / "cubins").mkdir(parents=True, exist_ok=True)
    rng = np.random.default_rng(0)
    lines = []
    for spec in SHAPES:
        lines += list(kernels(workload(spec), args.arch, args.folder, 3 if args.quick else 9, rng))
        if args.arch == "sm_90a":
            lines += list(warpgroup_kernels(workload(spec), args.arch, args.folder, 1 if args.quick else 3, rng))
        print(f"{spec}: {len(lines)} kernels so far", file=sys.stderr)
    (args.folder / "kernels.jsonl").write_text("".join(json.dumps(line) + "\n" for line in lines))
    for name, body in FAULTY.items():
        text = f'extern "C" __global__ void conv_kernel(unsigned* out) {{ {body} }}'
        (args.folder / f"{name}.cubin").write_bytes(compile_cubin(text, args.arch)[0])
    small = space(workload(SHAPES[0]), args.arch)
    build_bundle(small, args.folder / "bundle", workers=1, indices=small.valid[:: max(1, len(small.valid) // 6)][:6])
    build_zeros(args.folder, args.arch)
    return 0


def build_zeros(folder: Path, arch: str) -> None:
    """A kernel that writes every word of the bundle's output, each time the same and each time wrong."""
    entries = map(json.loads, (folder / "bundle/manifest.jsonl").read_text().splitlines()[1:])
    launch = next(entry["launch"] for entry in entries if "launch" in entry)
    words = next(int(np.prod(a["shape"])) for a in launch["arguments"] if a["role"] == "out")
    body = (
        f"if (blockIdx.x + blockIdx.y == 0) for (unsigned i = threadIdx.x; i < {words}u; i += blockDim.x) out[i] = 0u;"
    )
    text = f'extern "C" __global__ void conv_kernel(unsigned* out) {{ {body} }}'
    (folder / "zeros.cubin").write_bytes(compile_cubin(text, arch)[0])


def kernels(found: ConvWorkload, arch: str, folder: Path, count: int, rng: np.random.Generator):
    """Up to ``count`` kernels: each switch, each output form, then random configurations of the space."""
    valid = space(found, arch).valid
    drawn = [space(found, arch).config(int(index)) for index in rng.choice(valid, min(len(valid), 3), replace=False)]
    wanted = [(drawn[i % len(drawn)].with_values(variant), OPTIONS[i % 4]) for i, variant in enumerate(VARIANTS)]
    wanted = [wanted[int(i)] for i in rng.permutation(len(wanted))] + [(config, {}) for config in drawn]
    made = 0
    for config, options in wanted:
        if made == count:
            return
        line = one(found, config, options, arch, folder)
        if line is not None:
            made += 1
            yield line


def warpgroup_kernels(found: ConvWorkload, arch: str, folder: Path, count: int, rng: np.random.Generator):
    """Up to ``count`` kernels of the warpgroup family: the best by estimate, then some of the others."""
    candidates = warpgroup_candidates(found, arch_named(arch))
    wanted = candidates[:1] + [candidates[int(i)] for i in rng.permutation(len(candidates))]
    made = 0
    for number, config in enumerate(wanted):
        if made == count or number > 4 * count:
            return
        line = one(found, config, OPTIONS[number % 4], arch, folder)
        if line is not None:
            made += 1
            yield line


def one(found: ConvWorkload, config: ConvConfig | WarpgroupConfig, options: dict, arch: str, folder: Path):
    """A line of ``kernels.jsonl``, None for a configuration this shape refuses."""
    try:
        kernel = build(found, config, arch, **options)
    except SubbyteError as error:
        print(f"  left out: {error}", file=sys.stderr)
        return None
    name = f"cubins/{hashlib.sha256(kernel.cubin).hexdigest()[:20]}.cubin"
    (folder / name).write_bytes(kernel.cubin)
    return {"workload": asdict(found), "config": config.to_dict(), "cubin": name, "launch": kernel.launch.to_dict(),
            "output": kernel.output, "clip": list(options.get("clip", (-8, 7))), "arch": arch}  # fmt: skip


if __name__ == "__main__":
    sys.exit(main())
