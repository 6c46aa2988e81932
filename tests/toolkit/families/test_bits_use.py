"""The bits family where users meet it: refusals, caches, the command line, searches, machine code."""

from __future__ import annotations

import json
import re
import subprocess
from dataclasses import fields
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import numpy as np
import pytest

import subbyte
from subbyte.cli.main import main
from subbyte.device.arch import ARCHS
from subbyte.errors import InvalidInput, SubbyteError, Unsupported
from subbyte.families import config_from_dict, config_from_key, family_named, space
from subbyte.families.bits.config import BitsConfig
from subbyte.families.bits.rules import RULES, multiplies_whole, why_not
from subbyte.families.bits.space import plan_of
from subbyte.kernel import Kernel, nvrtc
from subbyte.kernel.build import machine_code
from subbyte.kernel.disassemble import nvdisasm, sass
from subbyte.kernel.execute import random_operands
from subbyte.measure.case import Case
from subbyte.measure.fake import FakeRunner
from subbyte.measure.replay import ReplayRunner
from subbyte.numerics import Requantization, Thresholds, pack_planes
from subbyte.records.landscape import Landscape
from subbyte.records.recorded_space import space_of
from subbyte.tune.study import Study
from subbyte.workload import Operand, workload
from subbyte.workload.operand import UNSIGNED

LAYER = "n8h6w8c128k64r3s3p1:w1a1"
SMALL = "n8h3w4c64k64r3s3p1:w1a1"
BYTES = "n8h8w8c64k64r3s3p1:w1a8o1:bipolar.signed"
MACHINE_CODE = {
    "one bit": (SMALL, {"tile_rows": 3, "consumers": 3}),
    "two planes of each": ("n8h3w4c64k64r3s3p1:w2a2", {"tile_rows": 3, "run_on": 1, "consumers": 1}),
    "doubled, two rows share a block": ("n8h3w4c64k64r3s3p1:w1a2", {"doubled": 1, "paired_rows": 1, "tile_rows": 3}),
}
REFUSED = [
    ("output", "n8h4w4c64k64r1s1p0:w1a5", {}, "output: uint5 has 31 thresholds; at most 15"),
    ("output", "n8h4w4c64k64r1s1p0:w2a2:signed.signed", {}, "output: codes of int2 do not rise with its values"),
    ("sizes", SMALL, {"tile_rows": 4}, "tiles: 4 rows of a layer with 3"),
    ("sizes", SMALL, {"channels": 48}, "tiles: 48 output channels; allowed: 32, 64, 128, 256"),
    ("sizes", SMALL, {"channels": 128}, "tiles: 128 output channels of a layer with 64"),
    ("sizes", "n8h8w8c64k64r3s3p1u2:w1a1", {"run_on": 1}, "tiles: run_on needs stride 1"),
    ("sizes", "n1h1w5c64k64r3s1p3:w1a1", {"row_parts": 2, "consumers": 1}, "tiles: of 2 parts of rows one"),
    ("sizes", "n1h1w3c64k64r1s3p9:w1a1", {"row_parts": 2, "consumers": 1}, "tiles: of 2 parts of rows one"),
    ("sizes", SMALL, {"consumers": 4}, "tiles: 4 warpgroups for 1 turns"),
    ("sizes", SMALL, {"tile_rows": 3, "turn_rows": 2}, "tiles: 2 rows of a turn divide those of a block (3)"),
    ("sizes", LAYER, {"tile_rows": 3, "consumers": 3, "stagger": 2}, "tiles: 2 of 3 warpgroups at a time"),
    ("sizes", "n8h6w8c128k128r3s3p1:w1a1", {"paired_rows": 1, "consumers": 1}, "layout: nb8r holds at most 64"),
    ("sizes", SMALL, {"paired_rows": 1, "run_on": 1, "consumers": 1}, "layout: tiles of nb8r end with an output row"),
    ("sizes", "n8h3w4c64k64r3s3p1:w1a1:plus", {"paired_rows": 1, "consumers": 1}, "layout: the row below an odd"),
    ("fusion", SMALL, {"output": "bipolar1+pool3", "consumers": 1}, "fusion: windows of 3"),
    ("fusion", SMALL, {"output": "bipolar1+pool2", "consumers": 1}, "fusion: a warpgroup pools two"),
    ("fusion", SMALL, {"output": "bipolar1+pool2+keep", "consumers": 1}, "fusion: a kernel pools, or adds"),
    ("fusion", SMALL, {"output": "bipolar1+add40", "consumers": 1}, "fusion: 40 channels are added to 64"),
    ("fusion", SMALL, {"output": "int32+keep", "consumers": 1}, "fusion: raw sums are neither"),
    ("fusion", "n8h4w4c64k64r1s1p0:w1a1", {"output": "bipolar1+addpool2x32", "consumers": 1}, "fusion: pixels of"),
    ("fusion", "n8h3w4c4096k64r3s3p1:w1a1", {"output": "bipolar1+keep", "consumers": 1}, "fusion: sums up to 36864"),
    ("compared", "n8h1w8c20000k64r1s1p0:w8a8o1:bipolar.bipolar.bipolar", {"consumers": 1}, "range: what is compared"),
    ("instruction", "n8h4w4c64k128r3s3p1:w2a2", {"channels": 128, "tile_rows": 4}, "columns: 256 and those of"),
    ("instruction", SMALL, {"doubled": 1, "consumers": 1}, "columns: doubled needs several planes of activations"),
    ("instruction", "n8h8w8c512k32r11s11p5:w1a2", {"channels": 32, "consumers": 1}, "columns: 484 instructions of a"),
    ("instruction", "n8h4w17c8192k64r1s1p0u16:w1a2", {"consumers": 1}, "columns: pixels lie further"),
    ("instruction", "n8h5w1c300k64r5s5p3:w1a1", {"run_on": 1, "consumers": 1}, "columns: rows so narrow that a"),
    ("registers", "n8h4w4c64k64r3s3p1:w2a4", {"tile_rows": 4}, "registers: 288 counts of a thread; at most"),
    ("shared_memory", "n8h20w56c512k64r3s3p1:w1a1", {"tile_rows": 20}, "shared: "),
]  # fmt: skip


def said(capsys: pytest.CaptureFixture[str], *argv: str) -> dict[str, Any]:
    assert main([*argv, "--json"]) == 0, capsys.readouterr().err
    found: dict[str, Any] = json.loads(capsys.readouterr().out)
    return found


@pytest.mark.parametrize(("rule", "spec", "knobs", "words"), REFUSED)
def test_every_rule_refuses_in_one_sentence(rule: str, spec: str, knobs: dict[str, Any], words: str) -> None:
    values = dict(knobs)
    output = values.pop("output", None)
    plan = plan_of(workload(spec), BitsConfig().with_values(values), ARCHS["sm_90a"], output)
    reason = why_not(plan)
    assert reason is not None
    assert reason.startswith(words)
    assert "\n" not in reason
    assert next(one.__name__ for one in RULES if one(plan)) == rule
    with pytest.raises(Unsupported, match="cannot be built"):
        subbyte.build(plan.workload, plan.config, output=output)


def test_every_rule_has_a_case() -> None:
    assert {rule for rule, *_ in REFUSED} == {rule.__name__ for rule in RULES}


@pytest.mark.parametrize(
    ("spec", "arch", "words"),
    [
        ("n8h6w8c64k64r3s3p1", "sm_90a", "int4 has the wgmma family"),
        ("n8h6w8c64k64r3s3p1:w4a4", "sm_90a", ""),
        (LAYER, "sm_80", "one-bit wgmma exists on sm_90a, not on sm_80"),
        ("n8h16w16c8192k64r3s3p1:w8a8", "sm_90a", "range: "),
    ],
)
def test_layers_of_other_families_and_machines(spec: str, arch: str, words: str) -> None:
    reason = family_named("bits").covers(workload(spec), ARCHS[arch])
    assert words in reason if words and reason else reason is None
    if reason:
        with pytest.raises(Unsupported, match="in the bits family"):
            subbyte.compile(spec, arch=arch, family="bits")


def test_sums_can_be_had_where_the_output_type_has_too_many_thresholds() -> None:
    with pytest.raises(Unsupported, match="uint8 has 255 thresholds; at most 15"):
        subbyte.compile("n8h2w8c64k32r1s1p0:w1a8")
    kernel = subbyte.compile("n8h2w8c64k32r1s1p0:w1a8", output="int32")
    assert isinstance(kernel.config, BitsConfig)


def test_wrong_requantizations_are_refused() -> None:
    rng = np.random.default_rng(0)
    kernel = subbyte.build(SMALL, BitsConfig(consumers=1))
    x, w, _ = random_operands(kernel, 0)
    for given, words in (
        (Thresholds.random(workload("n8h3w4c64k32r3s3p1:w1a1"), rng), "32 channels: the layer has 64"),
        (Thresholds.random(workload("n8h3w4c64k64r3s3p1:w1a2"), rng), "the layer gives bipolar1"),
        (Requantization.from_scale(0.1, k=64), "requantization to"),
        (None, "a bipolar1 output needs requant=, for example subbyte.Thresholds.from_batch_norm"),
        (3, "expected Thresholds, such as"),
    ):
        with pytest.raises(InvalidInput, match=words):
            kernel.run(x, w, given, device="emulator")  # type: ignore[arg-type]
    four = subbyte.build("n8h3w4c64k64r3s3p1")
    with pytest.raises(InvalidInput, match="expected a Requantization"):
        four.for_requantization(Thresholds.random(workload(SMALL), rng))
    with pytest.raises(InvalidInput, match="requant given"):
        subbyte.build(SMALL, BitsConfig(consumers=1), output="int32").for_requantization(
            Thresholds.random(workload(SMALL), rng)
        )
    with pytest.raises(InvalidInput, match="x "):
        kernel.run(np.zeros_like(x), w, Thresholds.random(workload(SMALL), rng), device="emulator")


@pytest.mark.parametrize("kind", ["bits", "bits-ring", "bmma", "popc", "condense", "stem", "wgmma-image"])
def test_a_space_tells_configurations_by_every_field(kind: str) -> None:
    spec = {"bits-ring": "gemm512x512x1024:w1a1", "condense": "n8h4w4c64k64r1s1p0", "stem": "n8h24w24c3k64r7s7p3u2",
            "wgmma-image": "n1h14w14c64k64r3s3p1"}.get(kind, SMALL)  # fmt: skip
    found = space(spec, kind=kind)
    config = found.config(0)
    assert found.index(config) == 0
    assert {one.name for one in fields(config)} == {*found.knobs, *found.fixed}


def test_a_field_that_a_space_holds_is_none_of_its_indices() -> None:
    config = config_from_key("bits-tr2-oc64-co4-rp4-pr1")
    with pytest.raises(InvalidInput, match="row_parts=4: fixed at 1 in this space"):
        space("resnet50.stage2@8:w1a1", kind="bits").index(config)
    parts = space("resnet50.stage2@8:w1a1", kind="bits", row_parts=4)
    assert parts.config(parts.index(config)) == config
    assert parts.check(config) is None


def test_the_shipped_landscape_is_replayed_though_the_space_has_grown(capsys: pytest.CaptureFixture[str]) -> None:
    layer, replay = "resnet50.stage3@8:w1a1", ("--runner", "replay", "--trials", "12", "--strategy", "random")
    assert main(["tune", layer, *replay, "--space", "bits"]) == 0
    assert "% of the optimum (2.32 us)" in capsys.readouterr().out
    assert main(["tune", layer, *replay]) == 0
    assert "12 trials on NVIDIA H200, bits space" in capsys.readouterr().out


def test_bit_planes_are_taken_in_any_layout() -> None:
    kernel = subbyte.build(SMALL, BitsConfig(consumers=1))
    x, w, _ = random_operands(kernel, 0)
    types, rule = kernel.workload.precision, Thresholds.random(kernel.workload, np.random.default_rng(0))
    wanted = kernel.run(x, w, rule, device="emulator")
    for layout in ("nhwc", "nb8", "nb8r", "fsb"):
        planes = pack_planes(x, types.activations, layout)
        np.testing.assert_array_equal(kernel.run(planes, w, rule, device="emulator"), wanted)
    np.testing.assert_array_equal(kernel.run(x, pack_planes(w, types.weights, "fsb"), rule, device="emulator"), wanted)
    with pytest.raises(InvalidInput, match="x has bit planes of uint2: this layer takes bipolar1"):
        kernel.run(pack_planes(x + 1, Operand(2, UNSIGNED), "nb8"), w, rule, device="emulator")
    with pytest.raises(InvalidInput, match="pass precision=, such as w1a2"):
        subbyte.conv2d(x, w, rule, pad=1, device="emulator")


@pytest.mark.deep
def test_no_kernel_of_another_precision_comes_out_of_a_cache() -> None:
    base, config = "n8h3w4c64k64r3s3p1", BitsConfig(consumers=1)
    specs = [f"{base}:{types}" for types in ("w1a1", "w1a1:minus", "w1a1:plus", "w1a2", "w2a1", "w1a1o2")]
    kernels = [subbyte.build(spec, config) for spec in specs]
    assert len({kernel.cuda for kernel in kernels}) >= 4
    assert len({kernel.argument("Wt").form for kernel in kernels}) == len(specs)
    assert len({kernel.argument("Prm").form for kernel in kernels}) == len(specs)
    assert len({space(spec, kind="bits").hash for spec in specs}) == len(specs)
    assert len({kernel.workload for kernel in kernels}) == len(specs)
    for kernel in kernels:
        case = Case(kernel.workload, seed=2)
        words = {one.name: case.operand(one) for one in kernel.launch.arguments if one.role == "in"}
        given = kernel.pack(case.x, case.w, case.requant)
        assert all(np.array_equal(words[name], given[name]) for name in given)


@pytest.mark.sample("two planes")
@pytest.mark.parametrize("name", MACHINE_CODE)
def test_machine_code_holds_one_bit_products(name: str) -> None:
    spec, knobs = MACHINE_CODE[name]
    kernel = Kernel(plan_of(workload(spec), BitsConfig().with_values(knobs), ARCHS["sm_90a"]))
    text = sass(kernel.cubin)
    assert text.count("BGMMA") >= kernel.plan.steps * kernel.plan.planes  # type: ignore[attr-defined]
    assert not re.search(r"\sPOPC", text)
    # the assembler waits for no single instruction: that is how it goes on where it loses track of the sums
    waits = kernel.plan.planes * kernel.plan.config.turn_rows  # type: ignore[attr-defined]
    assert text.count("WARPGROUP.ARRIVE") <= waits
    assert kernel.resources.local_bytes == kernel.resources.spill_store_bytes == 0
    assert "serialized" not in machine_code(kernel.plan, kernel.cuda)[1].__repr__()


def loops(text: str) -> list[str]:
    """The bodies of a machine code's loops: from a label to a jump back to it."""
    lines = text.splitlines()
    labels = {line.strip()[:-1]: number for number, line in enumerate(lines) if re.match(r"\s*\.L_\w+:", line)}
    jumps = [(number, re.search(r"BRA[^`]*`\((\.L_\w+)\)", line)) for number, line in enumerate(lines)]
    return ["\n".join(lines[labels[to[1]] : number]) for number, to in jumps if to and labels[to[1]] < number]


def lines_of(cubin: bytes, instruction: str) -> list[int]:
    """Of each such instruction the line of the CUDA text that it comes from; of an inlined function the caller's."""
    with TemporaryDirectory() as folder:
        file = Path(folder) / "kernel.cubin"
        file.write_bytes(cubin)
        text = subprocess.run([nvdisasm()[0], "-c", "-gi", file], capture_output=True, text=True, check=True).stdout
    found, line = [], 0
    for one in text.splitlines():
        if (place := re.search(r'//## File "[^"]*", line (\d+)(?! inlined)', one)) is not None:
            line = int(place[1])
        elif re.search(rf"\s{instruction}\s", one):
            found.append(line)
    return found


@pytest.mark.deep
@pytest.mark.parametrize(
    ("spec", "knobs", "counts"),
    [
        (SMALL, {"tile_rows": 3, "counted": 1, "consumers": 1}, 12),
        ("resnet50.stage3@256:w1a1", {"tile_rows": 7, "channels": 128, "consumers": 4, "counted": 1}, 12),
    ],
)
def test_windows_are_counted_beside_the_products_not_between_them(
    spec: str, knobs: dict[str, Any], counts: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A warpgroup of its own has the bit counts, four for each 16 bytes of a pixel; the loop with the products has
    none, and each count comes from a line of the branch of that warpgroup."""
    kernel = Kernel(plan_of(workload(spec), BitsConfig().with_values(knobs), ARCHS["sm_90a"]))
    product_loop = min((body for body in loops(sass(kernel.cubin)) if "BGMMA" in body), key=len)
    assert not re.search(r"\sPOPC", product_loop)
    monkeypatch.setattr(nvrtc, "OPTIONS", {**nvrtc.OPTIONS, "lineinfo": True})
    cubin, _ = nvrtc.compile_cubin(kernel.cuda, "sm_90a")
    text = kernel.cuda.splitlines()
    first = next(number for number, line in enumerate(text, 1) if f"if (warp >= {4 * knobs['consumers']})" in line)
    last = next(number for number in range(first, len(text)) if re.match(r"  \}", text[number - 1]))
    places = lines_of(cubin, "POPC")
    assert len(places) == counts
    assert all(first < place < last and "popc_b32(" in text[place - 1] for place in places)
    assert all(not first <= place <= last for place in lines_of(cubin, r"BGMMA\S*"))


def test_the_command_line(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    assert main(["build", LAYER]) == 0
    shown = capsys.readouterr().out
    assert "b1.wgmma.m64n" in shown
    assert "slower" not in shown
    ran = said(
        capsys, "run", SMALL, "--device", "emulator", "--set", "channels=32", "--save", str(tmp_path / "run.npz")
    )
    assert ran["check"]["ok"]
    assert sorted(np.load(tmp_path / "run.npz")) == ["flip", "levels", "w", "x", "y"]
    assert "Y = 4 U - 2 S - 2 P + n" in said_text(capsys, "explain", "bits", LAYER)
    for topic in ("planes", "thresholds"):
        assert said(capsys, "explain", topic, LAYER)["topic"] == topic
    row = said(capsys, "workloads", LAYER)["workloads"][0]
    assert (row["covered"], row["operands"]) == (True, "bipolar1 x bipolar1")


def said_text(capsys: pytest.CaptureFixture[str], *argv: str) -> str:
    assert main([*argv]) == 0, capsys.readouterr().err
    return capsys.readouterr().out


def test_what_is_refused_says_so_in_one_sentence(capsys: pytest.CaptureFixture[str]) -> None:
    for argv, words in (
        (["build", LAYER, "--set", "channels=48"], "allowed: 32, 64, 128, 256"),
        (["build", LAYER, "--set", "channels=300"], "allowed: an integer from 32 to 256"),
        (["build", LAYER, "--family", "bits", "--set", "chunk=3"], "unknown knob 'chunk'"),
        (["build", LAYER, "--family", "bits", "--set", "stages=3"], "a ring goes through the channels"),
        (["build", LAYER, "--set", "consumer=2"], "did you mean consumers"),
        (["build", "resnet50.stage2@8", "--family", "bits"], "int4 has the wgmma family"),
        (["build", LAYER, "--arch", "sm_80", "--family", "bits"], "one-bit wgmma exists on sm_90a"),
        (["build", LAYER, "--output", "bipolar1+pool3"], "windows of 3; kernels pool 2 x 2"),
        (["build", "n8h6w8c64k64r3s3p1", "--output", "int4+pool2"], "only kernels of the bits family fuse that"),
        (["build", "n8h6w8c64k64r3s3p1:w2a2:signed.signed"], "such as w2a2:signed.signed.offset"),
        (
            ["build", LAYER, "--family", "wgmma"],
            "or with uint4 activations or outputs, not w1a1",
        ),
        (["build", "n8h6w8c128k64r3s3p1:w1a9"], "1 to 8 bits"),
        (["tune", LAYER, "--runner", "fake", "--trials", "3", "--space", "paper"], "--space bits"),
        (
            ["build", "n8h8w8c64k64r3s3p1:w1a8o1:bipolar.signed", "--set", "whole_values=1", "--export", "."],
            "whole values",
        ),
    ):
        assert main(argv) in (1, 2), argv
        out, err = capsys.readouterr()
        assert words in err, err
        assert (out, len(err.splitlines())) == ("", 1)


def test_a_search_is_logged_resumed_and_replayed(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    log, file = str(tmp_path / "bits.jsonl"), tmp_path / "bits.json.gz"
    command = ["tune", SMALL, "--runner", "fake", "--strategy", "random", "--space", "bits", "--log", log, "--trials"]
    first = said(capsys, *command, "4")
    again = said(capsys, *command, "9", "--resume")
    assert (first["command"], again["command"]) == ("tune", "tune")
    found = space(SMALL, kind="bits")
    runner = FakeRunner(3)
    results = dict(zip(found.valid, runner.run(found.workload, [found.config(i) for i in found.valid]), strict=True))
    Landscape.from_results(found, results, runner.device).save(file)
    held = Landscape.load(file)
    record = Study(space_of(held), "random", 0).run(ReplayRunner(held), None)
    assert record.best is not None
    assert record.best.config == held.config(held.best[0])
    replayed = ["--runner", "replay", "--landscape", str(file), "--space", "bits", "--trials", "5"]
    assert said(capsys, "tune", SMALL, *replayed)["command"] == "tune"
    assert said(capsys, "landscape", "info", str(file))["kind"] == "bits"


def test_configurations_are_read_back() -> None:
    found = space("n8h3w4c64k64r3s3p1:w1a2", kind="bits")
    for index in found.valid:
        config = found.config(index)
        assert config_from_key(config.key) == config_from_dict(config.to_dict()) == config
        assert found.index(config) == index
    with pytest.raises(InvalidInput, match="cannot be fixed in a bits space"):
        space(SMALL, kind="bits", channels=32)
    with pytest.raises(InvalidInput, match="not in the bits space"):
        found.index(BitsConfig(consumers=5))
    with pytest.raises(SubbyteError, match="expected a BitsConfig"):
        found.index(subbyte.build("n8h3w4c64k64r3s3p1").config)


@pytest.mark.sample(1)
@pytest.mark.parametrize(
    ("layer", "words"),
    [
        ("resnet50.stage2@64:w2a2", "an int4 kernel holds these values too and needs"),
        ("resnet50.stage2@64:w1a4", "an int4 kernel (w4a4:signed.unsigned) holds these values too and needs"),
        ("resnet50.stage2@8:w2a4", "an int4 kernel (w4a4:signed.unsigned) holds these values too and needs"),
        ("resnet50.stage3@64:w1a4", ""),  # faster than the int4 kernel
        ("n8h4w4c64k64r3s3p1:w2a3", "; 6 one-bit products for each product of values: int8 was faster"),
        ("n8h4w4c64k64r3s3p1:w1a8o1:bipolar.signed", ""),
        ("resnet50.stage3@8:w1a1", ""),
    ],
)
def test_compile_says_what_is_faster_than_bit_planes(layer: str, words: str) -> None:
    reason = subbyte.compile(layer).reason
    assert (words in reason) if words else ("int4" not in reason and "int8" not in reason)


def test_only_codes_that_are_bytes_are_multiplied_whole() -> None:
    """Of offset and bipolar activations of 8 bits the codes are no bytes of an instruction."""
    layers = {types: subbyte.workload(f"n1h2w2c32k1r1s1p0:w2a8o1:{types}") for types in (
        "offset.signed", "offset.unsigned", "offset.bipolar", "offset.offset", "signed.signed-z5")}  # fmt: skip
    assert [types for types, one in layers.items() if multiplies_whole(one)] == ["offset.signed", "offset.unsigned"]
    layer = layers["offset.bipolar"]
    kernel = subbyte.compile(layer, output="int32")
    with pytest.raises(Unsupported, match="are not multiplied whole"):
        subbyte.build(layer, kernel.config.with_values({"whole_values": 1}), "sm_90a", output="int32")
    x, w, _ = random_operands(kernel, 1)
    np.testing.assert_array_equal(kernel.run(x, w, device="emulator"), subbyte.reference(layer, x, w))


def test_rows_that_are_padded_beyond_their_filter_do_not_run_on() -> None:
    """Between rows lie ``pad`` pixels, as many as a filter of as much more than one column reads."""
    layer = subbyte.workload("n1h2w3c32k5r3s1p1:w1a1")
    kernel = subbyte.compile(layer, output="int32")
    x, w, _ = random_operands(kernel, 1)
    np.testing.assert_array_equal(kernel.run(x, w, device="emulator"), subbyte.reference(layer, x, w))
    with pytest.raises(Unsupported, match="an output row has 5: it is padded by more"):
        subbyte.build(layer, BitsConfig(channels=32, consumers=1, run_on=1), "sm_90a", output="int32")
