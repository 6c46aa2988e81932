"""Exported kernels in a C++ program on a GPU, compiled there with g++ and cuda.h and compared with the reference.

Write them where TVM is, run them where the GPU is:

    PYTHONPATH=toolkit python tests/gpu/test_export.py FOLDER [--arch sm_90a]
    SUBBYTE_GPU_EXPORT=FOLDER PYTHONPATH=toolkit python -m pytest -m gpu tests/gpu/test_export.py
"""

from __future__ import annotations

import argparse
import json
import os
import shutil
import subprocess
import sys
import sysconfig
from pathlib import Path
from typing import Any

import numpy as np
import pytest

VARIABLE = "SUBBYTE_GPU_EXPORT"
MAIN = Path(__file__).with_name("export_main.cpp")
KERNELS = {
    "default": ("resnet50.stage2@8", {}, {}),
    "padded_relu": ("n3h5w7c40k20r3s3p1u2", {"warp_col_tiles": 1}, {"clip": (0, 7)}),
    "nhwc_general": ("n9h4w5c64k65r3s2p1", {"warp_col_tiles": 2, "layout": "nhwc"}, {"requant": "general"}),
    "sums": ("n10h4w5c32k40r3s3p1", {"warp_col_tiles": 2}, {"output": "int32"}),
}
"""Workload, knobs and options of what is exported, by folder."""
WARPGROUP: dict[str, tuple[str, dict[str, Any], dict[str, Any]]] = {
    "warpgroup": ("resnet50.stage3@8", {"tile_width": 14, "segments": 14, "tile_rows": 2, "stages": 4}, {}),
    "warpgroup_cluster": (
        "n8h7w7c256k72r3s3p1", {"tile_width": 8, "segments": 7, "cluster_split_k": 2, "stages": 3, "consumers_m": 2},
        {"clip": (0, 7)},
    ),
    "warpgroup_general": ("n9h5w7c40k40r3s3p1", {"tile_width": 8, "stages": 4}, {"requant": "general"}),
    "warpgroup_sums": ("n8h12w12c3k64r7s7p3u2", {"tile_width": 6, "stages": 9, "segments": 3}, {"output": "int32"}),
}  # fmt: skip
"""The same of the warpgroup family, for sm_90a."""
BIT_PLANES: dict[str, tuple[str, dict[str, Any], dict[str, Any]]] = {
    "bits": ("resnet50.stage3@8:w1a1", {"tile_rows": 4}, {}),
    "bits_pairs_of_rows": ("n9h5w5c40k40r3s3p1:w1a2", {"paired_rows": 1, "tile_rows": 2, "doubled": 1}, {}),
    "bits_line": ("n8h3w8c64k70r3s3p1:w1a4", {"doubled": 1, "tile_rows": 2, "channels": 32}, {}),
    "bits_sums": ("n9h4w6c200k70r3s3p1u2:w2a3", {"channels": 32, "tile_rows": 2}, {"output": "int32"}),
    "bmma": ("n9h4w6c200k70r3s3p1:w2a2", {"warp_row_tiles": 2}, {}),
    "popc": ("n9h3w4c130k70r3s3p1:w1a2", {"layout": "nhwc", "warp_row_tiles": 2}, {}),
}
"""The same of the families on bit planes, each by the first word of its name, for sm_90a."""


def write(folder: Path, arch: str) -> None:
    """For each kernel a folder with its exported files, random operands and the output they must give."""
    from subbyte.families import family_named
    from subbyte.families.mma.config import MmaConfig
    from subbyte.families.wgmma.pipeline.config import PipelineConfig
    from subbyte.kernel import build
    from subbyte.kernel.execute import expected, random_operands
    from subbyte.numerics import Requantization, Thresholds

    for name, (spec, knobs, options) in (KERNELS | (WARPGROUP | BIT_PLANES if arch == "sm_90a" else {})).items():
        base: Any = PipelineConfig(stagger=0) if name in WARPGROUP else MmaConfig(1, 1, 2, 4)
        if name in BIT_PLANES:
            base = family_named(name.partition("_")[0]).plain
        config = base.with_values(knobs) if knobs else None
        kernel = build(spec, config, arch, **options)
        x, w, requant = random_operands(kernel, 17)
        arrays = {"x": x, "w": w}
        if name in BIT_PLANES and requant is not None:
            requant = Thresholds.random(kernel.workload, np.random.default_rng(5))
            if name == "bits_line":
                requant = Thresholds.from_batch_norm(1.5, 2.0, 0.0, 900.0, step=0.2, workload=kernel.workload)
            arrays |= {"levels": requant.levels, "flips": requant.flip.astype(np.uint8)}
        elif requant is not None:
            wide, rng = kernel.plan.requant == "general", np.random.default_rng(5)
            drawn = Requantization.random(kernel.workload, rng, wide=wide)
            requant = Requantization(drawn.bias, drawn.multiplier, drawn.shift, kernel.plan.clip)
            arrays |= {"bias": requant.bias, "multiplier": requant.multiplier, "shift": requant.shift}
        arrays["expected"] = expected(kernel, x, w, requant)
        kernel.export(folder / name)
        for file, array in arrays.items():
            array.tofile(folder / name / f"{file}.bin")


def _toolkit() -> list[str]:
    """Where cuda.h is, and the driver this process has loaded: a toolkit's link library may be missing."""
    wheels = Path(sysconfig.get_path("purelib")).glob("nvidia/*")
    headers = [root / "include" for root in (*Path("/usr/local").glob("cuda*"), *wheels, Path("/usr"))]
    found = [folder for folder in headers if (folder / "cuda.h").is_file()]
    if not found or not shutil.which("g++"):
        pytest.skip("no g++ with cuda.h: install the CUDA toolkit's headers")
    drivers = {line.split()[-1] for line in Path("/proc/self/maps").read_text().splitlines() if "/libcuda.so" in line}
    return [f"-I{found[0]}", "-Wl,--allow-shlib-undefined", *sorted(drivers)]


def _compile(folder: Path, program: Path) -> dict:
    """Compile the program for the kernel exported to ``folder``; what was exported."""
    flags = _toolkit()
    exported = json.loads(next(folder.glob("*.json")).read_text())
    stem = exported["stem"]
    defines = [f'-DHEADER="{stem}.h"', f"-DSTEM={stem}", f"-DNAME={stem.upper()}"]
    defines += ["-DREQUANTIZED"] if exported["output"] == "int4" else []
    if exported["output"] not in ("int4", "int32"):
        defines += ["-DCOMPARED", f"-DLEVELS={exported['operands']['parameters']['host']['shape'][0]}"]
    for name in ("x", "w", *(("y",) if exported["output"] != "int32" else ())):
        defines.append(f"-D{name.upper()}_TYPE={exported['operands'][name]['host']['dtype']}_t")
    defines += ["-DOVERLAPPING"] if exported["launch"]["overlap"] else []
    command = ["g++", "-std=c++17", "-O2", "-Wall", "-Wextra", "-Werror", *defines, f"-I{folder}", MAIN, *flags]
    done = subprocess.run([*command, "-o", program], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    return exported


@pytest.mark.gpu
@pytest.mark.timeout(120)
@pytest.mark.parametrize("name", [*KERNELS, *WARPGROUP, *BIT_PLANES])
def test_a_program_with_the_header_computes_the_convolution(name: str, tmp_path: Path, device) -> None:
    given = os.environ.get(VARIABLE)
    if not given or not (Path(given) / name).is_dir():
        pytest.skip(
            f"{VARIABLE} names no folder with {name}: run `python tests/gpu/test_export.py FOLDER` where TVM is"
        )
    folder = tmp_path / name
    shutil.copytree(Path(given) / name, folder)
    exported = _compile(folder, tmp_path / "program")
    if exported["arch"] != device.info.arch:
        pytest.skip(f"the kernel was exported for {exported['arch']}, this GPU is {device.info.arch}")
    done = subprocess.run([tmp_path / "program", folder], capture_output=True, text=True, timeout=60)
    assert done.returncode == 0, done.stdout + done.stderr
    shape = exported["operands"]["y"]["host"]
    expected = np.fromfile(folder / "expected.bin", shape["dtype"]).reshape(shape["shape"])
    np.testing.assert_array_equal(np.fromfile(folder / "y.bin", shape["dtype"]).reshape(shape["shape"]), expected)
    some = 2 if name in BIT_PLANES else 8
    assert len(np.unique(expected)) >= some, "operands that hardly exercise the kernel"
    assert f"{expected.size} values, 0 differ" in done.stdout

    expected.flat[-1] ^= 1
    expected.tofile(folder / "expected.bin")
    wrong = subprocess.run([tmp_path / "program", folder], capture_output=True, text=True, timeout=60)
    assert (wrong.returncode, "1 differ" in wrong.stdout) == (1, True), wrong.stderr


def main() -> int:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("folder", type=Path)
    parser.add_argument("--arch", default="sm_90a")
    args = parser.parse_args()
    write(args.folder, args.arch)
    print(f"{len(list(args.folder.iterdir()))} kernels in {args.folder}", file=sys.stderr)
    return 0


if __name__ == "__main__":
    sys.exit(main())
