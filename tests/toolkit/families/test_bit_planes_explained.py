"""What is shown of kernels on bit planes, against what their runs do; and that messages name commands that work."""

from __future__ import annotations

import json
import re
import shlex
from typing import Any

import numpy as np
import pytest
from generated_bits import GeneratedBits
from generated_planes import GeneratedPlanes

from subbyte.cli.main import main
from subbyte.emulator.trace import of_kind
from subbyte.errors import InvalidInput
from subbyte.families import families, family_named
from subbyte.families.bits.explain import bits_tiling
from subbyte.families.shared.planes.explain import fragment_composition, plane_tiling
from subbyte.kernel import Kernel
from subbyte.kernel.execute import expected, random_operands
from subbyte.workload.precision import SUMS

Knobs = dict[str, Any]
SPLIT = {"combine": "shared", "warp_row_tiles": 2}
COMPOSED: list[tuple[str, str, str, Knobs, int]] = [
    ("bmma", "sm_80", "n9h3w4c130k70r3s3p1:w2a2", {"warp_row_tiles": 2, "operation": "and"}, 3),
    ("bmma", "sm_75", "n8h3w5c200k64r3s3p1:w2a2:signed.signed.unsigned", {"blk_col_warps": 1, "warp_row_tiles": 2}, 2),
    ("bmma", "sm_90a", "n9h3w4c200k70r3s3p1:w1a1", {"correction": "double", "warp_row_tiles": 2}, 0),
    ("bmma", "sm_80", "n9h3w4c130k70r3s3p1:w2a2", SPLIT, 1),
    ("popc", "sm_90a", "n9h4w6c200k70r3s3p1u2:w3a2", {"warp_row_tiles": 2}, 3),
]


@pytest.mark.sample("bmma-sm_75", "bmma-sm_90a", "popc")
@pytest.mark.parametrize(("family", "arch", "spec", "knobs", "pixel"), COMPOSED)
def test_a_lane_has_what_the_record_says(family: str, arch: str, spec: str, knobs: Knobs, pixel: int) -> None:
    plan = GeneratedPlanes(family, arch, spec, SUMS, **knobs).plan
    kernel = Kernel(plan)
    x, w, _ = random_operands(kernel, 0)
    stores, values, wl = of_kind(kernel.trace().trace, "global_store"), expected(kernel, x, w, None), plan.workload
    for image in (0, 5):
        record = fragment_composition(plan, image, pixel, x=x, w=w)
        assert len(record.outputs) == 32
        for one in record.outputs:
            block = wl.precision.output.block
            place = (record.at[0] * wl.q + record.at[1]) * wl.filter_blocks + one.channel // block
            at = 4 * ((place * 8 + image) * block + one.channel % block)
            (store,) = stores[stores["offset"] == at]
            assert (store["warp"] % plan.config.blk_row_warps, store["lane"]) == (record.warp, one.lane)
            assert int(np.uint32(store["value"]).view(np.int32)) == one.total == values[image, *record.at, one.channel]
        factors = {(term.weight_plane, term.plane): term.factor for term in record.outputs[0].terms}
        assert len(factors) == len(record.outputs[0].terms), "each pair of planes once"
    assert str(record.outputs[0].total * record.scale) in fragment_composition(plan, 5, pixel, x=x, w=w).text()


@pytest.mark.deep
@pytest.mark.parametrize(
    ("family", "arch", "spec", "knobs"),
    [
        ("bits", "sm_90a", "n8h5w9c70k64r3s3p1:w1a2", {"tile_rows": 4, "turn_rows": 2, "doubled": 1}),
        ("bmma", "sm_75", "n8h3w5c256k64r3s3p1:w1a2", {"blk_col_warps": 1, "warp_row_tiles": 2, "operation": "xor"}),
        ("bmma", "sm_80", "n8h4w4c200k64r3s3p1:w2a2", {"blk_col_warps": 1, "operation": "and"}),
    ],
)
def test_a_block_issues_what_the_record_says(family: str, arch: str, spec: str, knobs: Knobs) -> None:
    made = GeneratedBits(spec, **knobs) if family == "bits" else GeneratedPlanes(family, arch, spec, **knobs)
    record = (bits_tiling if family == "bits" else plane_tiling)(made.plan)  # type: ignore[operator]
    kernel = Kernel(made.plan)
    rows = kernel.trace().trace
    first = rows[rows["block"] == 0]
    kind, lanes = ("wgmma", 128) if family == "bits" else ("mma", 32)
    assert len(of_kind(first, kind)) // lanes == record.instructions + record.ones
    assert record.levels[1].count == np.prod(kernel.launch.grid)
    assert (record.threads, record.shared_bytes) == (kernel.launch.block[0], kernel.launch.shared_bytes)
    assert record.levels[1].pairs == record.planes * record.weight_planes
    assert f"{record.instructions:,} instructions in a block" in record.text()


def test_a_pixel_that_is_not_there_is_refused() -> None:
    plan = GeneratedPlanes("bmma", "sm_80", "n9h3w4c130k70r3s3p1:w2a2", SUMS, operation="and").plan
    for image, pixel, words in ((8, 0, "a group has images 0 to 7"), (0, 8, "has pixels 0 to 7")):
        with pytest.raises(InvalidInput, match=words):
            fragment_composition(plan, image, pixel)


@pytest.mark.parametrize(
    ("layer", "arch", "key"),
    [
        ("n8h6w8c128k64r3s3p1:w1a1", "sm_90a", "bits-"),
        ("n8h6w8c128k64r3s3p1:w1a1", "sm_80", "bmma-"),
        ("n8h6w8c128k64r3s3p1", "sm_90a", ""),
    ],
)
def test_a_layer_is_explained_by_a_family_that_computes_it(
    layer: str, arch: str, key: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["explain", "tiling", layer, "--arch", arch, "--json"]) == 0
    found = json.loads(capsys.readouterr().out)
    assert str(found["config"]).startswith(key)
    assert ("levels" in found) == bool(key)


def _named(text: str) -> list[list[str]]:
    return [shlex.split(command)[1:] for command in re.findall(r"`(subbyte [^`]*)`", text)]


@pytest.mark.sample("argv0", "argv3")
@pytest.mark.parametrize(
    "argv",
    [
        ["layout", "n8h6w8c128k64r3s3p1:w1a1"],
        ["taps", "n8h6w8c128k64r3s3p1:w1a1", "--arch", "sm_80"],
        ["tiling", "n8h6w8c128k64r3s3p1:w1a1", "--family", "wgmma"],
        ["composition", "n8h6w8c128k64r3s3p1"],
        ["loads", "--family", "popc"],
        ["layout", "--family", "wgmma"],
    ],
)
def test_commands_that_messages_name_work(argv: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["explain", *argv]) == 2
    commands = _named(capsys.readouterr().err)
    assert commands
    for command in commands:
        if "loads" not in command:  # runs a kernel
            assert main([*command, "--json"]) == 0, command


def test_examples_of_topics_work(capsys: pytest.CaptureFixture[str]) -> None:
    for name in ("bits", "bmma", "popc"):
        topics = family_named(name).topics
        assert set(topics) == {"tiling", "composition"}
        for topic in topics.values():
            assert main([*shlex.split(topic.example)[1:], "--json"]) == 0
    assert {family.name for family in families().values() if "tiling" in family.topics} == set(families())
