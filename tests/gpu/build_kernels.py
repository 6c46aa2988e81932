"""Builds what the GPU tests run, on a machine with TVM; the machine with the GPU needs neither TVM nor a compiler.

    PYTHONPATH=toolkit python tests/gpu/build_kernels.py FOLDER [--arch sm_90a] [--quick] [--variants]
    SUBBYTE_GPU_BUNDLE=FOLDER PYTHONPATH=toolkit python -m pytest -m gpu tests/gpu     # there

With ``--texts`` the kernels stay CUDA texts, ``texts.jsonl.xz``, a fiftieth of the size; ``compile_kernels.py FOLDER``
makes the machine code of them where NVRTC is, without TVM.

FOLDER gets ``kernels.jsonl`` (one kernel a line: name, workload, configuration, output, clip, cubin, launch, for design
variants also the digest of the text, and the form that racecheck runs), the cubins, a small bundle as `subbyte
landscape record` builds it, a plain reference kernel (direct_convolution.cu), and four kernels that misbehave on
purpose.
"""

from __future__ import annotations

import argparse
import json
import sys
from collections import Counter
from concurrent.futures import ProcessPoolExecutor
from functools import partial
from multiprocessing import get_context
from pathlib import Path
from typing import Any

import numpy as np
from bits_cases import bits, planes
from bytes_cases import bytes_and_zero_points
from compile_kernels import compiled, digest, planned, write_kernels, write_texts
from shipped_cases import shipped
from warpgroup_cases import VARIANTS as DESIGNS
from warpgroup_cases import (
    chain,
    chain_single,
    drawn,
    drawn_pointwise,
    drawn_single,
    drawn_sparse,
    text_with_every_lane_arriving,
    variants,
)

from subbyte.errors import InvalidInput, SubbyteError
from subbyte.families import space
from subbyte.families.bits.config import BitsConfig
from subbyte.families.mma.config import MmaConfig
from subbyte.families.shared.planes.config import PlaneConfig
from subbyte.families.wgmma.config import WgmmaConfig
from subbyte.kernel.build import cuda_text
from subbyte.kernel.choose import compile as compile_kernel
from subbyte.kernel.nvrtc import compile_cubin
from subbyte.records.checked import new_folder
from subbyte.records.describe import describe_workload
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

Named = tuple[str, ConvWorkload, MmaConfig | WgmmaConfig | BitsConfig | PlaneConfig | None, dict[str, Any]]
DRAWN = 80
"""Random configurations of the wgmma family."""
DRAWN_MORE = 24
"""The same of blocks that make a single tile iteration, of 1x1 kernels and on 2:4 sparse weights."""
PROBED = ("bits", "planes", "mma family")
"""How names of kernels begin that the sanitizer runs beside the design variants and 2:4 weights, which have a form for
racecheck."""
DIRECT = Path(__file__).with_name("direct_convolution.cu")

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
    parser.add_argument("--family", choices=("both", "wgmma"), default="both")
    parser.add_argument("--variants", action="store_true", help="the design variants alone, for sanitize.py")
    parser.add_argument("--only", default="", help="only kernels whose name begins so")
    parser.add_argument("--texts", action="store_true", help="write CUDA texts, which compile_kernels.py compiles")
    parser.add_argument("--workers", type=int, default=2, help="processes that build (default 2)")
    args = parser.parse_args()
    try:
        new_folder(args.folder / "cubins", "folder")
    except InvalidInput as error:
        print(f"error: {error}", file=sys.stderr)
        return error.exit_code
    import subbyte.tirx.lower  # noqa: F401 - loads TVM once; the processes are forked with it

    with ProcessPoolExecutor(args.workers, get_context("fork")) as pool:
        wanted = list(variants()) if args.variants else wanted_kernels(args.arch, args.quick, args.family == "both")
        made = pool.map(partial(one, arch=args.arch), (named for named in wanted if named[0].startswith(args.only)))
        lines = limited([line for line in made if line is not None], 3 if args.quick else 9)
        if args.texts:
            write_texts(args.folder, lines)
        else:
            write_kernels(args.folder, pool.map(partial(compiled, folder=args.folder), lines))
    for name, body in FAULTY.items():
        text = f'extern "C" __global__ void conv_kernel(unsigned* out) {{ {body} }}'
        (args.folder / f"{name}.cubin").write_bytes(compile_cubin(text, args.arch)[0])
    (args.folder / "direct.cubin").write_bytes(compile_cubin(DIRECT.read_text(encoding="utf-8"), args.arch)[0])
    small = space(workload(SHAPES[0]), args.arch)
    build_bundle(small, args.folder / "bundle", workers=1, indices=small.valid[:: max(1, len(small.valid) // 6)][:6])
    build_zeros(args.folder, args.arch)
    return 0


def wanted_kernels(arch: str, quick: bool, both: bool) -> list[Named]:
    """What to build, of both families or of the wgmma family alone, in the order of the tests."""
    rng = np.random.default_rng(0)
    wanted = [named for spec in SHAPES for named in warp_kernels(workload(spec), arch, rng)] if both else []
    wanted += (named for named in bytes_and_zero_points() if both and (arch == "sm_90a" or "wgmma" not in named[0]))
    if arch == "sm_90a":
        random = (
            drawn(8 if quick else DRAWN),
            *(more(4 if quick else DRAWN_MORE) for more in (drawn_single, drawn_pointwise, drawn_sparse)),
        )
        cases = (bits(), planes(), variants(), chain(), chain_single(), *random, () if quick else shipped())
        wanted += [named for part in cases for named in part]
    return wanted


def limited(lines: list[dict], count: int) -> list[dict]:
    """At most ``count`` kernels of each shape of the mma family; all others."""
    seen: Counter[str] = Counter()
    kept = []
    for line in lines:
        key = json.dumps(line["workload"]) if line["name"] == "mma family" else ""
        seen[key] += 1
        if not key or seen[key] <= count:
            kept.append(line)
    return kept


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


def warp_kernels(found: ConvWorkload, arch: str, rng: np.random.Generator) -> list[Named]:
    """Each switch, each output form, then random configurations of the space."""
    valid = space(found, arch).valid
    random = [space(found, arch).config(int(index)) for index in rng.choice(valid, min(len(valid), 3), replace=False)]
    wanted = [(random[i % len(random)].with_values(variant), OPTIONS[i % 4]) for i, variant in enumerate(VARIANTS)]
    wanted = [wanted[int(i)] for i in rng.permutation(len(wanted))] + [(config, {}) for config in random]
    return [("mma family", found, config, options) for config, options in wanted]


def one(named: Named, arch: str) -> dict | None:
    """A line of ``texts.jsonl``: that of ``kernels.jsonl`` with texts where that names cubins. None for a configuration
    this shape refuses."""
    name, found, config, options = named
    try:
        plan = compile_kernel(found, arch).plan if config is None else planned(found, config, arch, **options)
        text = cuda_text(plan)
    except SubbyteError as error:
        print(f"  left out ({name}): {error}", file=sys.stderr)
        return None
    line = {
        "name": name, "workload": describe_workload(found), "config": plan.config.to_dict(), "key": plan.config.key,
        "launch": plan.launch.to_dict(), "output": plan.output, "options": options,
        "clip": list(plan.clip), "arch": arch, "cubin": text,
    }  # fmt: skip
    if name.startswith(PROBED) and (name != "mma family" or found.spec in SHAPES[:2]):
        line["cubin_text"] = digest(text)
    if name in DESIGNS or name == "2:4 weights":
        every_lane = text_with_every_lane_arriving(plan)
        line |= {"cubin_text": digest(text), "every_lane": every_lane, "every_lane_text": digest(every_lane)}
    return line


if __name__ == "__main__":
    sys.exit(main())
