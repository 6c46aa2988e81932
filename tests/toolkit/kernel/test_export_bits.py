"""Exported headers of kernels on bit planes, compared bit for bit with the library, and a program that runs one."""

from __future__ import annotations

import os
import shutil
import subprocess
from itertools import cycle
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from exported import CUBIN, LANGUAGES, STRICT, STUB, Host, verify_launch

from subbyte.errors import Unsupported
from subbyte.families import family_named
from subbyte.families.base import Plan
from subbyte.families.bits.ring_config import RingConfig
from subbyte.kernel import Kernel
from subbyte.kernel.build import make_plan
from subbyte.kernel.execute import expected, random_operands
from subbyte.kernel.export import header, stem_of
from subbyte.kernel.operands import layout_words, on_line, parameter_words
from subbyte.numerics import Thresholds
from subbyte.numerics.thresholds import LINE
from subbyte.workload import workload

MAIN = Path(__file__).resolve().parents[2] / "gpu" / "export_main.cpp"


def make(
    family: str, spec: str, arch: str = "sm_90a", output: str | None = None, requant: str = "general", **knobs: Any
) -> Plan:
    return make_plan(workload(spec), family_named(family).plain.with_values(knobs), arch, output, None, requant)


CASES: dict[str, Plan] = {
    "bits, two sums a register, classes of the border": make("bits", "n9h3w4c200k70r3s3p1:w1a1", tile_rows=2),
    "bits, four words of a block": make("bits", "n8h1w8c100k120r1s1p0:w1a2", channels=128, consumers=1, doubled=1),
    "bits, pairs of rows, both parities": make("bits", "n9h5w5c40k40r3s3p1:w1a1", paired_rows=1, tile_rows=2),
    "bits, pairs of rows out alone": make("bits", "n8h3w4c130k64r3s3p1:w2a2", paired_rows=1, consumers=1),
    "bits, padding of a value, several slices": make(
        "bits", "n3h7w6c70k80r5s5p2u2:w1a1:plus", channels=32, consumers=1, tile_rows=3
    ),
    "bits, signed planes": make("bits", "n8h2w4c70k64r3s3p1:w2a2:signed.unsigned", tile_rows=2, consumers=1),
    "bits, four bits out": make("bits", "n8h2w8c64k64r3s3p1:w1a4", doubled=1, tile_rows=2),
    "bits, a line": make("bits", "n8h3w8c64k70r3s3p1:w1a4", requant="fixed", doubled=1, tile_rows=2, channels=32),
    "bits, a ring": make_plan(
        workload("n9h3w4c600k70r1s1p0:w1a2"),
        RingConfig(channels=64, depth=2, stages=2),
        "sm_90a", None, None, "general",
    ),
    "bits, sums": make("bits", "n9h2w4c200k70r3s3p1:w1a1", output="int32", tile_rows=2),
    "bits, sums of eight bits": make(
        "bits", "n2h1w8c64k32r1s1p0:w1a8", output="int32", channels=32, consumers=1, doubled=1
    ),
    "warps, differing bits": make("bmma", "n9h3w4c200k70r3s3p1:w1a1", "sm_80", warp_row_tiles=2),
    "warps, all rows staged, chunks": make(
        "bmma", "n8h2w3c512k128r3s3p1:w2a3", chunk=2, warp_col_tiles=8, blk_row_warps=1, warp_row_tiles=2,
        reorder_inner=0,
    ),
    "warps, halves on sm_75": make(
        "bmma", "n8h3w5c200k64r3s3p1:w2a2:signed.signed.unsigned", "sm_75", warp_row_tiles=2, blk_col_warps=1
    ),
    "warps, equal bits, plain layout": make(
        "bmma", "n9h3w4c200k70r3s3p1:w1a1", correction="double", warp_row_tiles=2, layout="nhwc"
    ),
    "warps, doubled sums, plain layout": make(
        "bmma", "n9h2w4c130k70r3s3p1:w2a3", "sm_75", "int32", layout="nhwc", warp_row_tiles=1
    ),
    "popcounts": make("popc", "n9h4w6c200k70r3s3p1u2:w3a2", warp_row_tiles=2),
}  # fmt: skip


@pytest.fixture(autouse=True)
def _compilers() -> None:
    for name in ("gcc", "g++"):
        if not shutil.which(name):
            pytest.skip(f"no {name} to compile the header with")


def random_thresholds(kernel: Kernel, seed: int = 1, uneven: bool = False) -> Thresholds | None:
    """Of a kernel that multiplies those of normalizations, a channel of them constant; else any."""
    rng = np.random.default_rng(seed)
    if kernel.output == "int32":
        return None
    if kernel.plan.parameter_form != LINE or uneven:
        return Thresholds.random(kernel.workload, rng)
    k = kernel.workload.k
    gamma = rng.uniform(0.2, 2, k) * rng.choice([-1, 1], k)
    gamma[5] = 0
    numbers = gamma, rng.normal(0, 3, k), rng.normal(0, 20, k), rng.uniform(50, 3000, k)
    return Thresholds.from_batch_norm(*numbers, step=0.2, workload=kernel.workload)


def verify(host: Host) -> None:
    """Constants, every host function and the launch against the library. Raises AssertionError."""
    kernel = host.kernel
    assert {name: host.library.read_value(i) for i, name in enumerate(host.values)} == host.values
    x, w, _ = random_operands(kernel, 3)
    thresholds = random_thresholds(kernel)
    wanted, types = kernel.pack(x, w, thresholds), kernel.workload.precision
    for call, operand, name, of in (("call_pack", x, "A", types.activations), ("call_weights", w, "Wt", types.weights)):
        words = host.words(name)
        assert host.call(call, operand, words) == 0
        np.testing.assert_array_equal(words, wanted[name])
        for place, value in ((0, of.largest + 1), (operand.size - 1, of.least - 1)):
            if np.iinfo(of.dtype).min <= value <= np.iinfo(of.dtype).max:
                broken = operand.copy()
                broken.flat[place] = value
                assert host.call(call, broken, words) == 1
    if thresholds is not None:
        status, words = host.thresholds(w, thresholds)
        assert status == 0
        np.testing.assert_array_equal(words, wanted["Prm"])
    out = kernel.argument("Out")
    words = np.random.default_rng(4).integers(0, 1 << 32, out.shape, np.uint32).view(out.dtype)
    y = np.full_like(kernel.unpack(words), 99)
    host.call("call_unpack", words, y)
    np.testing.assert_array_equal(y, kernel.unpack(words))
    verify_launch(host)


@pytest.mark.sample("bits, two", "warps, all")
@pytest.mark.parametrize(("name", "language"), list(zip(CASES, cycle(LANGUAGES))))
def test_the_header_does_what_the_library_does(name: str, language: str, tmp_path: Path) -> None:
    text = header(CASES[name], CUBIN)
    assert "@" not in text
    verify(Host(CASES[name], text, tmp_path, language))


def test_a_line_is_refused_where_the_library_refuses_it(tmp_path: Path) -> None:
    made = CASES["bits, a line"]
    host, kernel = Host(made, header(made, CUBIN), tmp_path), Kernel(made)
    _, w, _ = random_operands(kernel, 3)
    statuses = []
    for seed in range(12):
        given = random_thresholds(kernel, seed, uneven=seed % 3 == 0)
        assert given is not None
        status, words = host.thresholds(w, given)
        statuses.append(status)
        assert status == (0 if on_line(kernel.workload, given) else 2)
        if not status:
            np.testing.assert_array_equal(words, parameter_words(kernel.argument("Prm"), kernel.workload, given, w))
    assert set(statuses) == {0, 2}


def test_thresholds_out_of_order_are_refused(tmp_path: Path) -> None:
    made = CASES["bits, signed planes"]
    host, kernel = Host(made, header(made, CUBIN), tmp_path), Kernel(made)
    _, w, _ = random_operands(kernel, 3)
    levels, flips, words = np.zeros((3, 64), np.int32), np.zeros(64, np.uint8), host.words("Prm")
    assert host.call("call_thresholds", w, levels, flips, words) == 0
    levels[1, 63] = 1
    assert host.call("call_thresholds", w, levels, flips, words) == 1
    levels[2] = 1
    assert host.call("call_thresholds", w, levels, flips, words) == 0
    flips[63] = 1
    assert host.call("call_thresholds", w, levels, flips, words) == 1
    flips[63] = 2
    assert host.call("call_thresholds", w, np.zeros((3, 64), np.int32), flips, words) == 1


@pytest.mark.sample("2 * 4", "{0, 0}")
@pytest.mark.parametrize(
    ("name", "right", "wrong"),
    [
        ("bits, two sums a register, classes of the border", "in_word % 8 / 2 * 8", "in_word % 8 / 2 * 4"),
        ("bits, two sums a register, classes of the border", "<< (16 * half)", "<< (8 * half)"),
        ("bits, two sums a register, classes of the border", "counted +=", "counted -="),
        ("bits, pairs of rows, both parities", "{0, 1}", "{0, 0}"),
        ("warps, all rows staged, chunks", "c % 8 / 4 * 16", "c % 8 / 4 * 8"),
    ],
)
def test_a_wrong_header_is_refused(name: str, right: str, wrong: str, tmp_path: Path) -> None:
    text = header(CASES[name], CUBIN)
    assert right in text
    with pytest.raises(AssertionError):
        verify(Host(CASES[name], text.replace(right, wrong), tmp_path))


@pytest.mark.parametrize(
    ("spec", "output", "knobs", "words"),
    [
        ("n8h3w4c64k64r3s3p1:w1a1", "bipolar1+keep", {}, "has a fused layer"),
        ("n8h8w8c64k64r3s3p1:w1a8o1:bipolar.signed", None, {"whole_values": 1}, "build it with whole_values=0"),
    ],
)
def test_what_no_header_is_written_for_says_so(
    spec: str, output: str | None, knobs: dict[str, Any], words: str
) -> None:
    config = family_named("bits").plain.with_values({"consumers": 1, **knobs})
    made = make_plan(workload(spec), config, "sm_90a", output, None, "fixed")
    with pytest.raises(Unsupported, match=words):
        header(made, CUBIN)


@pytest.mark.deep
@pytest.mark.parametrize(
    "name", ["bits, pairs of rows, both parities", "bits, a line", "warps, equal bits, plain layout"]
)
def test_a_program_computes_the_layer(name: str, tmp_path: Path) -> None:
    """Operands prepared, launched and unpacked by the header alone; the emulator stands for the GPU."""
    kernel = Kernel(CASES[name])
    host = Host(kernel.plan, header(kernel.plan, CUBIN), tmp_path)
    x, w, _ = random_operands(kernel, 11)
    thresholds = random_thresholds(kernel)
    assert thresholds is not None
    status, parameters = host.thresholds(w, thresholds)
    device = {"A": host.words("A"), "Wt": host.words("Wt"), "Prm": parameters, "Out": host.words("Out")}
    assert (status, host.call("call_pack", x, device["A"]), host.call("call_weights", w, device["Wt"])) == (0, 0, 0)
    host.launch(device)
    wanted = expected(kernel, x, w, thresholds)
    y = np.full_like(wanted, 99)
    host.call("call_unpack", device["Out"], y)
    np.testing.assert_array_equal(y, wanted)


@pytest.mark.deep
def test_the_gpu_program_tells_right_from_wrong(tmp_path: Path) -> None:
    """The program that runs on a GPU, with a driver that fills in the right output or a wrong one."""
    made = CASES["bits, four bits out"]
    kernel, stem, types = Kernel(made), stem_of(made), made.workload.precision
    x, w, _ = random_operands(kernel, 5)
    thresholds = random_thresholds(kernel)
    assert thresholds is not None
    wanted = expected(kernel, x, w, thresholds)
    form = kernel.argument("Out").form
    arrays = {"x": x, "w": w, "levels": thresholds.levels, "flips": thresholds.flip.astype(np.uint8)}
    for name, array in {**arrays, "expected": wanted, "words": layout_words(form, wanted, types.output)}.items():
        array.tofile(tmp_path / f"{name}.bin")
    wrong = wanted.copy()
    wrong[0, 0, 0, 0] ^= 1
    layout_words(form, wrong, types.output).tofile(tmp_path / "wrong.bin")
    (tmp_path / f"{stem}.h").write_text(header(made, CUBIN))
    defines = [f'-DHEADER="{stem}.h"', f"-DSTEM={stem}", f"-DNAME={stem.upper()}", "-DCOMPARED", "-DLEVELS=15"]
    defines += [f"-D{name}_TYPE={one.dtype}_t" for name, one in (("X", types.activations), ("Y", types.output))]
    program = tmp_path / "program"
    command = ["g++", "-std=c++17", *STRICT[:3], f"-I{STUB}", f"-I{tmp_path}", *defines, MAIN, "-x", "c++"]
    done = subprocess.run([*command, STUB / "driver.c", "-o", program], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    for words, code, said in (("words.bin", 0, f"{wanted.size} values, 0 differ"), ("wrong.bin", 1, "1 differ")):
        environment = {**os.environ, "STUB_OUTPUT": str(tmp_path / words)}
        run = subprocess.run([program, tmp_path], env=environment, capture_output=True, text=True)
        assert (run.returncode, said in run.stdout) == (code, True), run.stderr
