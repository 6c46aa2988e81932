"""Kernels on fragments of bit planes (bmma, popc), built and run: clean, and every element what the reference says."""

from __future__ import annotations

import re
from typing import Any

import pytest
from generated_planes import GeneratedPlanes

import subbyte
from subbyte.cli.main import main
from subbyte.device.arch import ARCHS
from subbyte.errors import InvalidInput, Unsupported
from subbyte.families import config_from_dict, config_from_key, family_named, space
from subbyte.families.bmma.config import BmmaConfig
from subbyte.families.bmma.rules import BMMA_RULES
from subbyte.families.popc.config import PopcConfig
from subbyte.families.shared.planes.config import PlaneConfig
from subbyte.families.shared.planes.family import PlaneFamily
from subbyte.kernel import Kernel
from subbyte.kernel.choose import best_known
from subbyte.kernel.disassemble import sass
from subbyte.workload import ConvWorkload, workload

Case = tuple[str, str, str | ConvWorkload, str | None, dict[str, Any]]
KERNELS: dict[str, Case] = {
    "differing bits, zeros beyond the border": (
        "bmma", "sm_80", "n8h4w8c128k64r3s3p1:w1a1", None, {"blk_col_warps": 1},
    ),
    "common bits, minus beyond it": (
        "bmma", "sm_89", "n9h3w4c200k70r3s3p1:w1a1:minus", None, {"operation": "and", "chunk": 2},
    ),
    "plus, 5x5, all rows staged": (
        "bmma", "sm_80", "n3h7w6c70k40r5s5p2u2:w1a1:plus", None, {"blk_col_warps": 1, "reorder_inner": 0},
    ),
    "512 channels": (
        "bmma", "sm_90a", "n8h2w3c512k128r3s3p1:w1a1", None, {"chunk": 4, "warp_col_tiles": 8, "blk_row_warps": 1},
    ),
    "a matrix product of 1024": ("bmma", "sm_80", subbyte.gemm(72, 96, 1024, "w1a2"), None, {"reorder_inner": 0}),
    "sm_75, one stage, three pixels": (
        "bmma", "sm_75", "n8h3w5c256k64r3s3p1:w1a2", None, {"warp_row_tiles": 3, "blk_col_warps": 1, "stages": 1},
    ),
    "sm_75, halves": (
        "bmma", "sm_75", "n8h3w5c200k64r3s3p1:w2a2:signed.signed.unsigned", None,
        {"warp_row_tiles": 2, "blk_col_warps": 1},
    ),
    "three planes and two, integer units count ones": (
        "bmma", "sm_80", "n9h4w6c200k70r3s3p1u2:w3a2", None, {"warp_row_tiles": 2, "correction": "popcount"},
    ),
    "11x11, stride 4": ("bmma", "sm_80", "n3h15w12c3k40r11s11p2u4:w1a2", None, {"blk_col_warps": 1}),
    "direct, plain layout": (
        "bmma", "sm_80", "n9h3w4c130k70r3s3p1:w1a1:minus", None,
        {"staging": "direct", "layout": "nhwc", "operation": "and"},
    ),
    "sums of doubled counts, plain layout": (
        "bmma", "sm_75", "n9h2w4c130k70r3s3p1:w2a3", "int32", {"layout": "nhwc", "warp_row_tiles": 1},
    ),
    "more bits out than in, two words of a warp": (
        "bmma", "sm_80", "n9h3w4c130k70r3s3p1:w1a1o2", None, {"warp_col_tiles": 8, "blk_col_warps": 1},
    ),
    "a pair of planes for each warp": (
        "bmma", "sm_80", "n9h3w4c130k70r3s3p1:w2a2", None, {"combine": "shared", "warp_row_tiles": 2},
    ),
    "equal bits by two products": (
        "bmma", "sm_90a", "n9h3w4c200k70r3s3p1:w1a1", None, {"correction": "double", "warp_row_tiles": 2},
    ),
    "popcounts": ("popc", "sm_80", "n8h4w5c512k40r3s3p1:w1a1", None, {"blk_col_warps": 1}),
    "popcounts, three planes and two": ("popc", "sm_90a", "n9h4w6c200k70r3s3p1u2:w3a2", None, {"warp_row_tiles": 2}),
    "popcounts of each word, sums, direct": (
        "popc", "sm_75", "n9h2w4c256k70r3s3p1:w2a2:offset.bipolar:minus", "int32",
        {"staging": "direct", "carry_save": 0, "chunk": 2, "reorder_inner": 0},
    ),
}  # fmt: skip


@pytest.mark.sample("common", "halves", "more bits", "popcounts, three")
@pytest.mark.parametrize("name", KERNELS)
def test_kernels_are_clean_and_exact(name: str) -> None:
    family, arch, spec, output, knobs = KERNELS[name]
    GeneratedPlanes(family, arch, spec, output, **knobs).require_exact(1)


LAYER = "n8h3w5c256k64r3s3p1:w2a2"
MACHINE_CODE = [
    ("bmma", "sm_75", {"blk_col_warps": 1, "warp_row_tiles": 2}, {"BMMA.88128.XOR.POPC"}),
    ("bmma", "sm_80", {"correction": "popcount"}, {"BMMA.168128.AND.POPC", "BMMA.168256.AND.POPC"}),
    ("bmma", "sm_90a", {"chunk": 2}, {"BMMA.168256.AND.POPC"}),
    ("popc", "sm_90a", {}, set()),
]


@pytest.mark.deep
@pytest.mark.parametrize(("family", "arch", "knobs", "instructions"), MACHINE_CODE)
def test_machine_code_holds_products_and_no_emulation(
    family: str, arch: str, knobs: dict[str, Any], instructions: set[str]
) -> None:
    kernel = Kernel(GeneratedPlanes(family, arch, LAYER, **knobs).plan)
    text = sass(kernel.cubin)
    assert set(re.findall(r"BMMA\S*", text)) == instructions
    by_integer_units = family == "popc" or "correction" in knobs
    assert bool(re.search(r"\sPOPC\s", text)) == by_integer_units
    assert not re.search(r"\sCALL", text)
    assert kernel.resources.local_bytes == kernel.resources.spill_store_bytes == 0


SMALL = "n8h3w4c64k64r3s3p1:w1a1"
REFUSED = [
    ("operation", "sm_90a", SMALL, {"operation": "xor"}, "operation: xor is emulated on sm_90a"),
    ("operation", "sm_75", SMALL, {"operation": "and"}, "operation: one-bit products of sm_75 are xor"),
    ("operation", "sm_80", SMALL, {"operation": "xor", "correction": "double"}, "operation: correction=double counts"),
    ("same_program", "sm_80", SMALL, {"combine": "shared"}, "same program: one pair of planes"),
    ("output", "sm_80", "n8h4w4c64k64r1s1p0:w1a5", {}, "output: uint5 has 31 thresholds; at most 15"),
    ("sums", "sm_90a", "n8h1w8c20000k64r1s1p0:w8a8o1:bipolar.bipolar.bipolar", {}, "range: what is compared goes from"),
    ("sizes", "sm_80", SMALL, {"blk_row_warps": 64}, "threads: 4096 of a block; at most 1024"),
    ("sizes", "sm_80", SMALL, {"warp_col_tiles": 6}, "divisibility: warp_col_tiles 6 is no multiple of 4"),
    ("sizes", "sm_80", SMALL, {"blk_col_warps": 4}, "tiles: 128 output channels of a block, of a layer with 64"),
    ("sizes", "sm_80", "n8h3w4c384k64r3s3p1:w1a1", {"chunk": 2}, "divisibility: chunk 2 does not divide 3 blocks"),
    ("sizes", "sm_80", SMALL, {"warp_row_tiles": 3}, "divisibility: warp_row_tiles 3 is odd"),
    ("sizes", "sm_80", SMALL, {"tile_height": 3}, "divisibility: tile_height 3 does not divide 8 pixels"),
    ("sizes", "sm_80", SMALL, {"warp_row_tiles": 6, "tile_height": 3}, "divisibility: 6 pixels of a warp are no"),
    ("same_program", "sm_80", "n8h4w4c64k64r1s1p0:w1a1", {}, "same program: with one kernel row"),
    ("same_program", "sm_80", SMALL, {"staging": "direct", "stages": 3}, "same program: without stages in shared"),
    ("same_program", "sm_80", SMALL, {"correction": "popcount"}, "same program: activations' bits are not needed"),
    ("written", "sm_80", "n8h15w15c1024k64r11s11p5:w3a2", {"chunk": 8}, "unrolling: 2112 products are written out"),
    ("registers", "sm_80", "n8h4w4c64k64r3s3p1:w4a4:signed.unsigned", {"blk_col_warps": 1}, "registers: about"),
    ("shared_memory", "sm_75", "n8h15w15c512k64r11s11p5:w1a1", {"chunk": 4, "reorder_inner": 0}, "shared: "),
    ("index", "sm_80", "n40000h56w56c2048k64r3s3p1:w1a2", {}, "index: a tensor of"),
]  # fmt: skip


@pytest.mark.parametrize(("rule", "arch", "spec", "knobs", "words"), REFUSED)
def test_every_rule_refuses_in_one_sentence(rule: str, arch: str, spec: str, knobs: dict[str, Any], words: str) -> None:
    family = family_named("bmma")
    layer, config = workload(spec), BmmaConfig().with_values(knobs)
    reason = family.check(family.plan(layer, config, ARCHS[arch], layer.precision.output.name))
    assert reason is not None
    assert reason.startswith(words)
    assert "\n" not in reason
    with pytest.raises(Unsupported, match="cannot be built"):
        subbyte.build(layer, config, arch)


def test_every_rule_has_a_case() -> None:
    assert {rule for rule, *_ in REFUSED} == {rule.__name__ for rule in BMMA_RULES}


def test_doubled_sums_that_do_not_fit_are_refused() -> None:
    layer = "n8h1w8c20000k32r1s1p0:w8a8:signed.unsigned"
    with pytest.raises(Unsupported, match="doubled sums, up to 2601000000, beyond"):
        subbyte.build(layer, BmmaConfig(reorder_inner=0, blk_col_warps=1), "sm_75", output="int32")


@pytest.mark.parametrize(
    ("arch", "spec", "family", "config"),
    [
        ("sm_75", SMALL, "auto", BmmaConfig),
        ("sm_80", "n8h3w4c64k64r3s3p1:w2a2", "auto", BmmaConfig),
        ("sm_89", SMALL, "popc", PopcConfig),
        ("sm_90a", "n8h15w15c512k32r11s11p5:w1a2", "auto", BmmaConfig),
    ],
)
def test_the_newest_instruction_there_is_is_taken(arch: str, spec: str, family: str, config: type[PlaneConfig]) -> None:
    found, reason = best_known(workload(spec), arch, family)
    assert isinstance(found, config)
    assert "chosen by estimate" in reason


def test_int4_has_kernels_of_its_own() -> None:
    for name in ("bmma", "popc"):
        with pytest.raises(Unsupported, match=f"{name} kernels compute bit planes, such as w1a2; int4 has the mma"):
            subbyte.compile("n8h3w4c64k64r3s3p1", arch="sm_80", family=name)


@pytest.mark.parametrize(
    "spec", [SMALL, "n8h4w4c64k64r1s1p0:w8a8", "n8h15w15c4096k64r11s11p5:w4a4", "n8h4w4c9k9r2s2p0:w3a5"]
)
@pytest.mark.sample("w1a1", "w3a5")
@pytest.mark.parametrize("name", ["bmma", "popc"])
def test_a_layer_is_covered_where_its_space_or_that_of_sums_holds_something(name: str, spec: str) -> None:
    family, layer = family_named(name), workload(spec)
    for arch in (ARCHS["sm_75"], ARCHS["sm_90a"]):
        assert (family.covers(layer, arch) is None) == bool(family.candidates(layer, arch))


@pytest.mark.parametrize("name", ["bmma", "popc"])
def test_configurations_are_read_back(name: str) -> None:
    found, family = space("n8h3w4c256k64r3s3p1:w1a2", "sm_80", name), family_named(name)
    assert isinstance(family, PlaneFamily)
    for index in found.valid[:: max(1, len(found.valid) // 9)]:
        config = found.config(index)
        assert config_from_key(config.key) == config_from_dict(config.to_dict()) == config
        assert found.index(config) == index
        assert len(family.feature_row(found.plan(index))) == len(family.features)
        assert 0 < family.made_up_share(found.workload, config) < 1
    with pytest.raises(InvalidInput, match=f"cannot be fixed in a {family.name} space"):
        space(SMALL, "sm_80", name, chunk=2)
    with pytest.raises(InvalidInput, match=f"not in the {name} space"):
        found.index(family.usual.with_values({"warp_row_tiles": 6}))
    with pytest.raises(InvalidInput, match="fixed at shared in this space"):
        found.index(family.usual.with_values({"staging": "direct"}))


def test_the_command_line(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["run", SMALL, "--arch", "sm_80", "--device", "emulator"]) == 0
    shown = capsys.readouterr().out
    assert "b1.m16n8k256.xor" in shown
    assert "equal the reference" in shown
    for argv, words in (
        (["build", SMALL, "--family", "bmma", "--set", "carry_save=0"], "carry_save is a knob of the popc family"),
        (["build", SMALL, "--family", "bits", "--set", "chunk=2"], "unknown knob 'chunk'"),
        (["build", SMALL, "--arch", "sm_80", "--set", "chunk=3", "staging=direct"], "chunk 3 does not divide 1 blocks"),
    ):
        assert main(argv) in (1, 2), argv
        out, err = capsys.readouterr()
        assert words in err, err
        assert (out, len(err.splitlines())) == ("", 1)
