"""Exported headers: compiled as C99 and C++17 against a driver stand-in, and compared bit for bit with the library."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
from collections.abc import Iterator
from dataclasses import replace
from itertools import cycle, product
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from exported import CUBIN, LANGUAGES, STRICT, STUB, Host, verify_launch

import subbyte
from subbyte.device.arch import arch
from subbyte.errors import InvalidInput
from subbyte.families import config_from_key
from subbyte.families.mma.config import MmaConfig
from subbyte.families.mma.plan import Plan, plan
from subbyte.families.stem.config import StemConfig
from subbyte.families.stem.plan import StemPlan
from subbyte.families.wgmma.pipeline.config import PipelineConfig
from subbyte.families.wgmma.plan import WgmmaPlan
from subbyte.kernel import Kernel
from subbyte.kernel.execute import expected, random_operands, random_residual
from subbyte.kernel.export import header, stem_of
from subbyte.kernel.operands import fast_words
from subbyte.numerics import Requantization, to_nhwcnc
from subbyte.workload import workload

MAIN = Path(__file__).resolve().parents[2] / "gpu" / "export_main.cpp"


def make(spec: str, columns: int, arch: str = "sm_90a", layout: str = "nhwcnc", **options: Any) -> Plan:
    return plan(workload(spec), MmaConfig(1, 1, 2, columns, layout=layout), arch, **options)


def warpgroup(spec: str, options: dict[str, Any] | None = None, **knobs: Any) -> WgmmaPlan:
    config = PipelineConfig(stagger=0).with_values(knobs)
    return WgmmaPlan(workload(spec), config, arch("sm_90a"), **(options or {}))


def sparse(spec: str, key: str, zeros: str = "2of4") -> WgmmaPlan:
    config = config_from_key(key)
    assert isinstance(config, PipelineConfig)
    return WgmmaPlan(workload(f"{spec}:w4a4:signed-{zeros}.signed"), config, arch("sm_90a"))


def stem(spec: str, key: str, **options: Any) -> StemPlan:
    config = config_from_key(key)
    assert isinstance(config, StemConfig)
    return StemPlan(workload(spec), config, arch("sm_90a"), **options)


CASES: dict[str, Plan | WgmmaPlan | StemPlan] = {
    "one word a lane, padded images and channels": make("n3h5w7c40k20r3s3p1u2", 1, "sm_80"),
    "two words a lane, general": make("n9h3w5c64k65r3s2p1", 2, requant="general"),
    "four words a lane": make("n8h6w6c32k32r1s1", 4),
    "eight column tiles, nhwc": make("n9h4w3c33k64r3s3p1d2", 8, "sm_80", "nhwc", clip=(0, 7)),
    "nhwc, general": make("n1h4w5c8k9r2s3p1", 2, layout="nhwc", requant="general", clip=(-7, 7)),
    "sums": make("n10h4w5c32k40r3s3p1", 2, output="int32"),
    "sums, nhwc": make("n2h4w5c40k33r1s1", 1, layout="nhwc", output="int32"),
    "warpgroup, padded images and channels": warpgroup("n9h5w7c40k40r3s3p1", tile_width=8, tile_rows=2, stages=4),
    "warpgroup, cluster": warpgroup(
        "n8h7w7c256k72r3s3p1", tile_width=8, segments=7, cluster_split_k=2, stages=3, consumers_m=2
    ),
    "warpgroup, one block, general": warpgroup("n3h6w6c32k64r3s2p1", {"requant": "general"}, tile_width=6, stages=5),
    "warpgroup, own rows": warpgroup("n8h4w5c256k128r1s1p0", tile_width=20, row_reuse=0, channel_groups=4, stages=4),
    "warpgroup, stem": warpgroup("n8h12w12c3k64r7s7p3u2", tile_width=6, stages=9, segments=3),
    "warpgroup, sums": warpgroup("n8h6w6c64k64r3s3p1", {"output": "int32"}, tile_width=6, stages=6),
    "warpgroup, nhwc, no sharing": warpgroup(
        "n8h6w6c192k64r3s3p1", {"clip": (0, 7)}, tile_width=6, stages=6, duplicate_aware="none", layout="nhwc"
    ),
    "2:4, own rows": sparse("n8h7w7c256k64r3s3p1", "wg24-tw8-tr2-cm1-cr2-sg1-cg4-st3-rr3-la1-sta2-res0"),
    "a list of live blocks": sparse("n8h7w9c70k136r3s3p1", "wgb-tw10-tr1-cm2-sg2-st5-lp2", "blocks30"),
    "few channels, two phases, two slices": stem("n9h6w37c3k40r3s3p1", "stem-rw2-tg1-oc32-co2-sg1-tu2"),
    "few channels, weights in registers": stem("n3h8w21c3k128r3s3p1", "stem-rw2-tg1-oc64-co1-sg1-tu1-hw1"),
    "few channels, what no window reaches": stem(
        "n3h10w12c2k64r2s5p1u3", "stem-rw1-tg1-oc64-co1-sg1-tu1", requant="general"
    ),
    "unsigned": make("n9h3w5c40k33r3s2p1:w4a4:signed.unsigned", 2, requant="general", output="uint4", clip=(0, 15)),
    "unsigned in, int4 out": make("n2h4w5c40k33r1s1:w4a4:signed.unsigned.signed", 1, "sm_80"),
    "unsigned, by floats": warpgroup(
        "n9h5w7c40k40r3s3p1:w4a4:signed.unsigned", {"output": "uint4", "clip": (0, 15)}, tile_width=8, stages=4
    ),
    "2:4, an odd block, some channels": sparse("n9h7w9c70k40r3s3p1", "wg24-tw10-tr1-cm1-sg2-st5-res1"),
    "residual": make("n9h3w5c40k40r3s2p1", 2, output="int4+addint4"),
    "residual int8, nhwc, general": make(
        "n3h4w5c8k40r2s3p1", 2, layout="nhwc", requant="general", output="int4+addint8"
    ),
    "warpgroup, residual": warpgroup(
        "n9h5w7c40k40r1s1p0:w4a4:signed.unsigned", {"output": "uint4+adduint4", "clip": (0, 15)}, tile_width=8, stages=4
    ),
    "bytes": make("n9h3w5c20k70r3s2p1:w8a8", 1),
    "bytes, signed, nhwc, general": make("n3h4w5c40k33r1s1:w8a8:signed.signed", 2, layout="nhwc", requant="general"),
    "bytes, int4 weights": make("n3h4w5c20k40r3s3p1:w4a8:signed.signed", 2),
    "bytes, sums": make("n2h4w5c20k33r1s1:w8a8", 2, output="int32"),
    "bytes to int4": make("n3h4w5c20k40r1s1:w8a8o4:signed.signed.signed", 2),
    "uint4 to bytes": make("n3h4w5c40k40r1s1:w4a4o8:signed.unsigned.unsigned", 1),
    "zero point": make("n9h3w4c20k40r2s2p1:w8a8:signed.offset-z37", 1),
    "zero point, int4 weights, nhwc": make("n3h3w4c20k40r2s2p1:w4a8:signed.offset-z200", 2, layout="nhwc"),
    "zero point of uint4": make("n3h3w4c40k40r2s2p1:w4a4:signed.offset-z3", 2),
    "zero point, signed, sums": make("n3h3w4c40k40r2s2p1:w8a8:signed.signed-z-7", 1, output="int32", layout="nhwc"),
    "warpgroup, bytes": warpgroup("n3h4w5c40k70r3s3p1:w8a8", tile_width=6, tile_rows=1, stages=4),
    "warpgroup, bytes, int4 weights, general": warpgroup(
        "n3h4w5c72k40r3s2p1:w4a8:signed.signed", {"requant": "general"}, tile_width=6, stages=5
    ),
    "warpgroup, bytes, groups, sums": warpgroup(
        "n8h4w6c128k64r3s3p1:w4a8:signed.unsigned",
        {"output": "int32"},
        tile_width=6,
        channel_groups=2,
        stages=7,
        row_reuse=0,
        in_flight=2,
    ),
    "warpgroup, zero point": warpgroup(
        "n3h3w4c40k40r2s2p1:w8a8:signed.offset-z37", tile_width=6, tile_rows=1, stages=4
    ),
    "warpgroup, zero point of uint4": warpgroup("n3h3w4c40k40r2s2p1:w4a4:signed.offset-z3", tile_width=6, stages=4),
    "warpgroup, residual int8": warpgroup("n8h4w5c32k40r1s1p0", {"output": "int4+addint8"}, tile_width=8, stages=4),
}
FIXED = ["one word a lane, padded images and channels", "four words a lane", "warpgroup, cluster"]


@pytest.fixture(autouse=True)
def _compilers() -> None:
    for name in ("gcc", "g++"):
        if not shutil.which(name):
            pytest.skip(f"no {name} to compile the header with")


def verify(host: Host) -> None:
    """Constants, every host function and the launch against the library. Raises AssertionError."""
    kernel = host.kernel
    assert {name: host.library.read_value(i) for i, name in enumerate(host.values)} == host.values
    x, w, requant = random_operands(kernel, 3)
    residual = random_residual(kernel, 3)
    wanted = kernel.pack(x, w, requant, residual)
    if residual is not None and (added := kernel.fusion.added):
        words = host.words("Res")
        assert host.call("call_residual", residual, words) == 0
        np.testing.assert_array_equal(words, wanted["Res"])
        if added.bits < 8:
            residual[-1, -1, -1, -1] = added.largest + 1
            assert host.call("call_residual", residual, words) == 1
    for call, operand, name in (("call_pack", x, "A"), ("call_weights", w, "Wt")):
        words = host.words(name)
        assert host.call(call, operand, words) == 0
        np.testing.assert_array_equal(words, wanted[name])
        type_ = kernel.workload.precision.activations if name == "A" else kernel.workload.precision.weights
        limits = np.iinfo(operand.dtype)
        for place, value in ((0, type_.largest + 1), (operand.size - 1, type_.least - 1)):
            if not limits.min <= value <= limits.max:
                continue
            broken = operand.copy()
            broken.flat[place] = value
            assert host.call(call, broken, words) == 1
    if kernel.workload.precision.weights.group:  # three of four
        w[-1, -1, -1, 4:8] = [1, 0, 2, 3]
        assert host.call("call_weights", w, host.words("Wt")) == 1
    if requant is not None:
        status, words = host.parameters(requant)
        assert status == 0
        np.testing.assert_array_equal(words, wanted["Prm"])
    out = kernel.argument("Out")
    words = np.random.default_rng(4).integers(0, 1 << 32, out.shape, np.uint32).view(out.dtype)
    y = np.full_like(kernel.unpack(words), 99)
    host.call("call_unpack", words, y)
    np.testing.assert_array_equal(y, kernel.unpack(words))
    verify_launch(host)


@pytest.mark.sample("nhwcnc")
@pytest.mark.parametrize(
    ("output", "layout", "language"),
    [("uint2", "nhwcnc", "c99"), ("int32", "nhwc", "c99"), ("uint2", "nhwc", "c++17")],
)
def test_a_family_of_other_operands_brings_its_own_texts(
    toy: str, tmp_path: Path, output: str, layout: str, language: str
) -> None:
    kernel = subbyte.build(toy, config_from_key(f"toy-th64-wo1-{layout}"), output=output)
    made: Any = kernel.plan
    text = header(made, CUBIN)
    assert "x  uint2 [N=3][H=5][W=4][C=9]  input, values 0..3" in text
    assert "@" not in text
    verify(Host(made, text, tmp_path, language))


@pytest.mark.sample(5)
@pytest.mark.parametrize(("name", "language"), list(zip(CASES, cycle(LANGUAGES))))
def test_the_header_does_what_the_library_does(name: str, language: str, tmp_path: Path) -> None:
    verify(Host(CASES[name], header(CASES[name], CUBIN), tmp_path, language))


def edges(scale_log2: int) -> Iterator[tuple[int, int, int]]:
    """(bias, multiplier, shift) around every limit of the fixed form."""
    top = 32 - scale_log2
    biases = {0, -1, (1 << 31) - 1, -(1 << 31)}
    for shift, change in product((1, 2, 8, 23, 24, 25, 31, 32, 33, 62), (-1, 0, 1)):
        limit = 1 << max(0, min(31, 31 - (top - shift)))
        for multiplier in {0, 1, 5, min(limit + change, (1 << 31) - 1), (1 << 31) - 1}:
            factor = multiplier << max(0, 32 - shift)
            most = ((1 << 62) - (1 << 31)) // factor if factor else 0
            near = {sign * most + step for sign in (-1, 1) for step in (-2, -1, 0, 1, 2)}
            for bias in biases | {value for value in near if -(1 << 31) <= value < 1 << 31}:
                yield bias, multiplier, shift


@pytest.mark.sample("one word", "four words")
@pytest.mark.parametrize("name", FIXED)
def test_the_fixed_form_refuses_exactly_what_the_library_refuses(name: str, tmp_path: Path) -> None:
    made = CASES[name]
    host = Host(made, header(made, CUBIN), tmp_path)
    scale, k = made.atom.scale_log2, made.workload.k
    assert made.parameter_form == dict(zip(FIXED, ("fixed0", "fixed8", "float8"), strict=True))[name]
    refused = 0
    for edge in sorted(set(edges(scale))):
        pairs = zip((3, 5, 9), edge, strict=True)
        bias, multiplier, shift = (np.array([first] * (k - 1) + [last], np.int32) for first, last in pairs)
        requant = Requantization(bias, multiplier, shift)
        wanted = fast_words(made.parameter_form, made.workload, requant)
        status, words = host.parameters(requant)
        assert status == (2 if wanted is None else 0), edge
        refused += wanted is None
        if wanted is not None:
            np.testing.assert_array_equal(words, wanted.reshape(-1), err_msg=str(edge))
    assert refused > (3 if made.parameter_form == "float8" else 20)


@pytest.mark.sample("1--1-four", "2-63-nhwc")
@pytest.mark.parametrize("name", ["four words a lane", "nhwc, general"])
@pytest.mark.parametrize(("row", "value"), [(1, -1), (2, 0), (2, 63)])
def test_parameters_outside_their_range_are_refused(name: str, row: int, value: int, tmp_path: Path) -> None:
    host = Host(CASES[name], header(CASES[name], CUBIN), tmp_path)
    rows = [np.full(CASES[name].workload.k, start, np.int32) for start in (0, 3, 9)]
    rows[row][-1] = value
    assert host.call("call_parameters", *rows, host.words("Prm")) == 1


@pytest.mark.sample("factor >> 7", ": 0u", "0 *")
@pytest.mark.parametrize(
    ("name", "right", "wrong"),
    [
        ("residual", "& 15u) << (4 * (k % 8))", "& 15u) << (4 * (7 - k % 8))"),
        ("residual", "3 * row + k", "2 * row + k"),
        ("bytes", "c % 16 / 4", "c % 16 / 8"),
        ("bytes, int4 weights", "+ k / 8 % 2 * 4", "+ k % 2 * 4"),
        ("bytes to int4", "(bits ^ 8) - 8", "(bits ^ 0) - 0"),
        ("bytes, sums", "word * 4 + k % 4", "word * 4"),
        ("uint4 to bytes", "height, width, 3, 4)", "height, width, 3, 8)"),
        ("zero point", "sum += value;", ""),
        ("zero point", "value + (37)", "value + (36)"),
        ("zero point, int4 weights, nhwc", "-(int64_t)(200)", "(int64_t)(200)"),
        ("zero point of uint4", "& 0xFFFFFFFFu) << 8", "& 0xFFFFFFFFu) << 4"),
        ("warpgroup, bytes", "0xFFFFFFFFu", "0u"),
        ("warpgroup, bytes", "c % 16 / 4", "c % 32 / 8"),
        ("warpgroup, bytes, int4 weights, general", "c % 32 / 16 * 2", "c % 2 * 2"),
        ("warpgroup, zero point", " : 0u;", " : 1u;"),
        ("warpgroup, zero point of uint4", "& 0xFFFFFFFFu) << 8", "& 0xFFFFFFFFu) << 4"),
        ("warpgroup, residual", "residual, &w", "w, &residual"),
        ("warpgroup, residual int8", "k % 16 / 4", "k % 16 / 8"),
        ("residual int8, nhwc, general", "* 16 + k / 4", "* 8 + k / 4"),
        ("four words a lane", "(4 * (element % 8))", "(4 * (7 - element % 8))"),
        ("four words a lane", "image % 8) * 4", "image % 4) * 4"),
        ("four words a lane", "k % 8 * 4", "(7 - k % 8) * 4"),
        ("four words a lane", "+ tile % vector", "+ (vector - 1 - tile % vector)"),
        ("four words a lane", "value > 7", "value > 8"),
        ("four words a lane", "factor >> 8", "factor >> 7"),
        ("four words a lane", "* factor + ((int64_t)1 << 31)", "* factor"),
        ("four words a lane", "(bits ^ 8) - 8", "(bits ^ 8) - 7"),
        ("four words a lane", "{&x, &y, &parameters, &w}", "{&x, &w, &parameters, &y}"),
        ("four words a lane", "cuModuleUnload(*module);", ""),
        ("four words a lane", "0,1,2,3,4,5,6,7,8,9,", "0,1,2,3,4,5,6,7,9,8,"),
        ("nhwc, general", ": 1u;", ": 0u;"),
        ("nhwc, general", "* 4) + channel / 8", "* 4) + channel / 16"),
        ("sums", "word * 8 + k % 8", "word * 8"),
        ("warpgroup, cluster", "block % halves * 4", "0"),
        ("warpgroup, cluster", "+ step * 3", "+ step * 2"),
        ("warpgroup, cluster", "k % 16 / 2 * 4", "k % 16 / 2 * 4 + 1"),
        ("warpgroup, cluster", "c % 2 * 2 + k % 2", "k % 2 * 2 + c % 2"),
        ("warpgroup, cluster", "SerializationAllowed = 1", "SerializationAllowed = 0"),
        ("warpgroup, own rows", "part % groups *", "0 *"),
    ],
)
def test_a_wrong_header_is_refused(name: str, right: str, wrong: str, tmp_path: Path) -> None:
    text = header(CASES[name], CUBIN)
    assert right in text
    host = Host(CASES[name], text.replace(right, wrong), tmp_path)
    with pytest.raises(AssertionError):
        verify(host)


def test_two_headers_in_one_program(tmp_path: Path) -> None:
    chosen = [CASES["four words a lane"], CASES["nhwc, general"], CASES["sums"]]
    lines = []
    for made in [*chosen, chosen[0]]:
        (tmp_path / f"{stem_of(made)}.h").write_text(header(made, CUBIN))
        lines.append(f'#include "{stem_of(made)}.h"')
    source = tmp_path / "program.c"
    source.write_text("\n".join([*lines, "int main(void) { return 0; }", ""]))
    for compiler, *flags in LANGUAGES.values():
        command = [compiler, *flags, *STRICT, f"-I{STUB}", "-fsyntax-only", source]
        done = subprocess.run(command, capture_output=True, text=True)
        assert done.returncode == 0, done.stderr


@pytest.mark.parametrize(
    ("made", "stem"),
    [
        (make("resnet50.stage2@8", 4), "resnet50_stage2_8_sm_90a_int4"),
        (make("resnet50.stage2@8", 4, layout="nhwc", clip=(0, 7)), "resnet50_stage2_8_sm_90a_int4_nhwc_clip0to7"),
        (
            make("n1h6w6c8k9r1s1", 4, clip=(-7, 7), requant="general"),
            "n1h6w6c8k9r1s1p0_sm_90a_int4_clipm7to7_general",
        ),
        (make("n8h6w6c32k32r1s1", 4, output="int32", clip=(0, 7)), "n8h6w6c32k32r1s1p0_sm_90a_int32"),
    ],
)
def test_stems_name_what_the_result_depends_on(made: Plan, stem: str) -> None:
    assert stem_of(made) == stem
    assert stem.isidentifier()


def test_a_name_cannot_break_out_of_the_header(tmp_path: Path) -> None:
    odd = replace(CASES["sums"].workload, name="9 */ #error\n@n@ é")
    made = replace(CASES["sums"], workload=odd)
    assert stem_of(made) == "conv_9_error_n_sm_90a_int32"
    verify(Host(made, header(made, CUBIN), tmp_path))


# ---- files and whole programs -------------------------------------------------------------------------------------


@pytest.fixture(scope="module", params=["two words a lane, general", "warpgroup, cluster", "residual"])
def built(request: pytest.FixtureRequest) -> Kernel:
    """A kernel small enough to run on the CPU, with machine code."""
    return Kernel(CASES[request.param])


@pytest.mark.sample("residual")
def test_the_three_files(built: Kernel, tmp_path: Path) -> None:
    files = built.export(tmp_path / "new" / "folder")
    assert [file.name for file in files] == [f"{stem_of(built.plan)}.{suffix}" for suffix in ("cubin", "json", "h")]
    assert files[0].read_bytes() == built.cubin
    data = json.loads(files[1].read_text())
    assert data["launch"] == json.loads(json.dumps(built.launch.to_dict()))
    assert type(built.config).from_dict(data["config"]) == built.config
    assert workload(data["workload"]["spec"]) == built.workload
    assert data["requant"] == built.plan.requant
    for operand in data["operands"].values():
        assert 4 * np.prod(operand["device"]["shape"]) == operand["device"]["bytes"]
    assert files[2].read_text() == header(built.plan, built.cubin)
    assert built.export(tmp_path / "new" / "folder") == files


def test_a_folder_that_cannot_be_written_is_refused(built: Kernel, tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    (tmp_path / "taken" / f"{stem_of(built.plan)}.h").mkdir(parents=True)
    for folder in (tmp_path / "file", tmp_path / "file" / "below", tmp_path / "taken"):
        with pytest.raises(InvalidInput, match=r"cannot export to the folder .*; give a folder"):
            built.export(folder)


@pytest.mark.sample("two words", "residual")
def test_a_program_computes_the_convolution(built: Kernel, tmp_path: Path) -> None:
    """Operands prepared, launched and unpacked by the header alone; the emulator stands for the GPU."""
    host = Host(built.plan, header(built.plan, built.cubin), tmp_path)
    x, w, requant = random_operands(built, 11)
    assert requant is not None
    residual = random_residual(built, 11)
    device = {one.name: host.words(one.name) for one in built.launch.arguments}
    if residual is not None:
        assert host.call("call_residual", residual, device["Res"]) == 0
    assert host.call("call_pack", x, device["A"]) == 0
    assert host.call("call_weights", w, device["Wt"]) == 0
    status, device["Prm"] = host.parameters(requant)
    assert status == 0
    host.launch(device)
    wanted = expected(built, x, w, requant, residual)
    y = np.full_like(wanted, 99)
    host.call("call_unpack", device["Out"], y)
    np.testing.assert_array_equal(y, wanted)


def test_the_gpu_program_tells_right_from_wrong(tmp_path: Path) -> None:
    """The program that runs on a GPU, with a driver that fills in the right output, a wrong one or none."""
    made = CASES["four words a lane"]
    kernel, stem = Kernel(made), stem_of(made)
    x, w, requant = random_operands(kernel, 5)
    assert requant is not None
    wanted = expected(kernel, x, w, requant)
    arrays = {"x": x, "w": w, "bias": requant.bias, "multiplier": requant.multiplier, "shift": requant.shift}
    for name, array in {**arrays, "expected": wanted, "words": to_nhwcnc(wanted)}.items():
        array.tofile(tmp_path / f"{name}.bin")
    wrong = wanted.copy()
    wrong[0, 0, 0, 0] ^= 1
    to_nhwcnc(wrong).tofile(tmp_path / "wrong.bin")
    (tmp_path / f"{stem}.h").write_text(header(made, CUBIN))
    program = tmp_path / "program"
    defines = [f'-DHEADER="{stem}.h"', f"-DSTEM={stem}", f"-DNAME={stem.upper()}", "-DREQUANTIZED"]
    command = ["g++", "-std=c++17", *STRICT[:3], f"-I{STUB}", f"-I{tmp_path}", *defines, MAIN, "-x", "c++"]
    done = subprocess.run([*command, STUB / "driver.c", "-o", program], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr

    def run(output: str) -> subprocess.CompletedProcess[str]:
        environment = {**os.environ, **({"STUB_OUTPUT": str(tmp_path / output)} if output else {})}
        return subprocess.run([program, tmp_path], env=environment, capture_output=True, text=True)

    right = run("words.bin")
    assert (right.returncode, right.stdout) == (0, f"{wanted.size} values, 0 differ\n"), right.stderr
    np.testing.assert_array_equal(np.fromfile(tmp_path / "y.bin", wanted.dtype), wanted.reshape(-1))
    assert (run("wrong.bin").returncode, run("").returncode) == (1, 1)
    assert "1 differ" in run("wrong.bin").stdout
    (tmp_path / "x.bin").write_bytes(b"short")
    assert run("words.bin").returncode == 2
