"""Spaces: product, encoding, hash, and every rule with a case it refuses beside one it accepts."""

from __future__ import annotations

import os
import random
import subprocess
import sys
from collections import Counter
from math import prod
from typing import Any

import pytest

from subbyte.device.arch import ARCHS
from subbyte.errors import InvalidInput
from subbyte.families import space
from subbyte.families.mma.config import MmaConfig
from subbyte.families.mma.enumeration import READS, SAME
from subbyte.families.mma.plan import Plan, plan
from subbyte.families.mma.rules import HOISTED_ADDRESSES, RULES, registers_allowed, registers_needed, why_not
from subbyte.families.mma.space import Space
from subbyte.families.mma.values import KINDS, value_lists
from subbyte.workload import ConvWorkload
from subbyte.workload import workload as named

REASONS = {"operands", "grid",
    "not covered", "atom", "accumulator", "divisibility", "index", "stages", "threads", "shared memory", "registers",
    "code size",
}  # fmt: skip
STAGES = ("resnet50.stage2@8", "resnet50.stage3@8", "resnet50.stage4@8", "resnet50.stage5@8")
SMALL = ConvWorkload(8, 14, 14, 64, 64, 3, 3, 1)


@pytest.mark.parametrize("workload", [*STAGES, "n3h7w9c40k40r1s1p0", "n1h13w13c32k96r5s5p2u2"])
@pytest.mark.parametrize("arch", ["sm_75", "sm_80", "sm_90a"])
def test_valid_and_refused_add_up_to_the_product(workload: str, arch: str) -> None:
    candidates = space(workload, arch)
    assert len(candidates) == prod(len(values) for values in candidates.knobs.values()) == 1800
    assert len(candidates.valid) + sum(candidates.refused.values()) == len(candidates)
    assert 0 < len(candidates.valid) < len(candidates)
    assert list(candidates.valid) == sorted(set(candidates.valid))
    assert set(candidates.refused) <= REASONS
    valid = set(candidates.valid)
    for index in random.Random(0).sample(range(1800), 100):
        reason = candidates.check(index)
        assert (reason is None) == (index in valid)
        assert candidates.check(candidates.config(index)) == reason
        if reason is not None:
            kind, _, details = reason.partition(": ")
            assert kind in REASONS
            assert details


def test_the_papers_space_of_every_stage_is_large_enough_to_search() -> None:
    counts = [len(space(stage, "sm_80").valid) for stage in STAGES]
    assert all(count > 300 for count in counts), counts


@pytest.mark.sample(2)
@pytest.mark.parametrize(("stage", "most"), [(2, 13_000), (3, 40_000), (4, 13_000), (5, 13_500)])
def test_the_extended_space_has_ten_thousand_configurations_and_holds_the_papers(stage: int, most: int) -> None:
    paper, extended = (space(f"resnet50.stage{stage}@8", kind=kind) for kind in KINDS)
    assert 10_000 < len(extended.valid) < most
    assert len(extended.valid) + sum(extended.refused.values()) == len(extended)
    assert all(extended.check(paper.config(index)) is None for index in paper.valid)
    assert all(set(values) <= set(extended.knobs[name]) for name, values in paper.knobs.items())


@pytest.mark.deep
def test_sorting_a_large_space_takes_less_than_two_seconds() -> None:
    code = (
        "import time; from subbyte import space; s = space('resnet50.stage2@8', kind='extended');"
        "start = time.process_time(); n = len(s.valid); print(len(s), n, time.process_time() - start)"
    )
    run = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    products, valid, seconds = run.stdout.split()
    assert int(products) > 100_000 < 10 * int(valid)
    assert float(seconds) < 2


SORTED = [
    ("resnet50.stage2@8", "sm_90a", "extended", {}),
    ("resnet50.stage5@8", "sm_90a", "extended", {}),
    ("resnet50.stage3@8", "sm_75", "extended", {"duplicate_aware": "none"}),
    ("resnet50.stage4@8", "sm_86", "extended", {"register_packing": False, "layout": "nhwc"}),
    ("n3h7w9c40k40r1s1p0", "sm_80", "extended", {"duplicate_aware": "shared"}),
    ("n1h13w13c32k96r5s5p2u2", "sm_80", "extended", {"atom": "s4.m16n8k64"}),
    ("resnet50.stage5@8", "sm_86", "paper", {}),  # has configurations that were seen to spill
]


@pytest.mark.sample(3)
@pytest.mark.parametrize(("workload", "arch", "kind", "fixed"), SORTED)
def test_sorting_at_once_is_the_same_as_asking_each(workload: str, arch: str, kind: str, fixed: dict[str, Any]) -> None:
    candidates = space(workload, arch, kind, **fixed)
    valid = set(candidates.valid)
    rng = random.Random(3)
    drawn = rng.sample(range(len(candidates)), 1200) + rng.sample(candidates.valid, min(200, len(valid)))
    for index in drawn:
        reason = candidates.check(index)
        assert (index in valid) == (reason is None), (index, reason)


def test_sorting_knows_every_rule_and_the_kind_of_its_reasons() -> None:
    assert tuple(READS) == RULES
    for _, request, _ in CASES:
        planned = plan(*request)
        rule = next(rule for rule in RULES if rule(planned) is not None)
        assert str(rule(planned)).partition(":")[0] == READS[rule][0]


def test_sorting_counts_the_kinds_of_reasons() -> None:
    candidates = _few(SMALL, split_channels=(1, 2, 4), chunk=(1, 2), stages=(1, 2, 3), min_blocks=(0, 1, 2, 9))
    asked = Counter((candidates.check(index) or "").partition(":")[0] for index in range(len(candidates)))
    assert asked.pop("") == len(candidates.valid)
    assert candidates.refused == dict(asked)
    assert {"same program", "stages", "divisibility"} <= set(asked)


def test_a_configuration_seen_to_spill_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    before = space("resnet50.stage5@8", kind="extended")
    index = before.valid[100]
    keys = frozenset({before.config(index).key, MmaConfig(warp_row_tiles=6).key, MmaConfig(layout="nhwc").key})
    monkeypatch.setattr("subbyte.families.mma.rules.seen_to_spill", lambda *_: keys)
    after = space("resnet50.stage5@8", kind="extended")
    assert set(before.valid) - set(after.valid) == {index}
    assert after.hash != before.hash
    assert after.index_hash == before.index_hash
    assert "seen to spill" in str(after.check(index))


def _few(workload: ConvWorkload, arch: str = "sm_90a", **knobs: tuple[int, ...]) -> Space:
    base = space(workload, arch)
    return Space(base.workload, base.arch, "few", {"blk_row_warps": (1, 2), "tile_height": (0, 1, 2, 4), **knobs},
                 base.fixed)  # fmt: skip


# ---- the same program ------------------------------------------------------------


def test_configurations_said_to_build_the_same_program_do_and_others_do_not() -> None:
    candidates = space("resnet50.stage5@8", kind="extended")
    rng, pairs, texts = random.Random(4), [], {}
    while len(pairs) < 3:
        index = rng.randrange(len(candidates))
        reason = candidates.check(index) or ""
        if reason.startswith(SAME):
            pairs.append((candidates.config(index), MmaConfig.from_key(reason.rpartition(" ")[2])))
    for config, plain in pairs:
        assert config != plain
        assert candidates.check(plain) is None
        texts[plain.key] = _text(candidates, plain)
        assert _text(candidates, config) == texts[plain.key]
    for index in rng.sample(candidates.valid, 2):
        config = candidates.config(index)
        texts[config.key] = _text(candidates, config)
        for other in _neighbours(candidates, config)[:2]:
            texts[other.key] = _text(candidates, other)
    assert len(set(texts.values())) == len(texts)


def _neighbours(candidates: Space, config: MmaConfig) -> list[MmaConfig]:
    """Valid configurations that differ in one of the knobs of which values can mean the same."""
    others = [config.with_values({name: value}) for name in ("tile_height", "stages", "unroll")
              for value in candidates.knobs.get(name, ()) if value != getattr(config, name)]  # fmt: skip
    return [other for other in others if candidates.check(other) is None]


def _text(candidates: Space, config: MmaConfig) -> str:
    from subbyte.kernel.build import generated_text

    planned = candidates.plan(config)
    return generated_text(planned)


def test_of_values_that_mean_the_same_the_first_is_kept() -> None:
    candidates = _few(SMALL, stages=(3, 2, 4), chunk=(2,), min_blocks=(1, 0, 2))
    kept = {(c.stages, c.min_blocks) for c in map(candidates.config, candidates.valid)}
    assert kept == {(3, 1), (3, 2)}  # one iteration: the number of stages means nothing
    twice = candidates.index(MmaConfig(2, 2, chunk=2, stages=2, min_blocks=0, tile_height=0))
    assert candidates.check(twice) == "same program: builds the same program as brw2-bcw2-wrt4-wct4-ch2-ri0-st3-mb1"
    assert why_not(candidates.plan(twice)) is None  # it can be built, it is only not searched


def test_every_index_is_one_configuration() -> None:
    candidates = space(SMALL)
    configs = [candidates.config(index) for index in range(len(candidates))]
    assert len(set(configs)) == len(candidates)
    assert [candidates.index(config) for config in configs] == list(range(len(candidates)))
    first = next(iter(candidates.knobs))
    assert [getattr(config, first) for config in configs[:3]] == list(candidates.knobs[first])
    assert {(c.duplicate_aware, c.register_packing, c.layout, c.atom) for c in configs} == {
        ("full", True, "nhwcnc", "auto")
    }


def test_round_trip_of_the_extended_space() -> None:
    candidates = space(SMALL, "sm_80", kind="extended", layout="nhwc")
    for index in random.Random(2).sample(range(len(candidates)), 3000):
        config = candidates.config(index)
        assert candidates.index(config) == index
        assert all(getattr(config, name) in values for name, values in candidates.knobs.items())
        assert config.layout == "nhwc"


@pytest.mark.parametrize("index", [-1, 1800, 10**9, 1.0, "3", None, True])
def test_index_out_of_range(index: Any) -> None:
    with pytest.raises(InvalidInput, match="allowed: integers from 0 to 1799"):
        space(SMALL).config(index)


@pytest.mark.parametrize(
    ("config", "message"),
    [
        (MmaConfig(warp_row_tiles=7), "warp_row_tiles=7: not in the paper space; allowed: 1, 2, 4, 8, 16"),
        (MmaConfig(layout="nhwc"), r"layout=nhwc \(here nhwcnc\)"),
        (MmaConfig(stages=3), r"stages=3 \(here 2\)"),
        (7, "expected an MmaConfig"),
    ],
)
def test_configuration_of_another_space(config: Any, message: str) -> None:
    with pytest.raises(InvalidInput, match=message):
        space(SMALL).index(config)


# ---- identity ------------------------------------------------------------


def test_hash_changes_with_every_ingredient() -> None:
    from dataclasses import replace

    base = space(SMALL, "sm_80")
    others = [
        space(SMALL, "sm_86"),
        space(SMALL, "sm_80", kind="extended"),
        space(SMALL, "sm_80", layout="nhwc"),
        space(SMALL, "sm_80", duplicate_aware="shared"),
        space(SMALL, "sm_80", register_packing=False),
        space(SMALL, "sm_80", atom="s4.m8n8k32"),
        replace(base, knobs={**base.knobs, "chunk": (1, 2, 4)}),
        replace(base, knobs={**base.knobs, "chunk": (2, 1, 4, 8)}),
        replace(base, knobs=dict(reversed(base.knobs.items()))),
        *(space(replace(SMALL, **{name: getattr(SMALL, name) + 1}), "sm_80") for name in SMALL_FIELDS),
        *(space(f"{SMALL.spec}:{types}", "sm_80") for types in ("w1a2", "w1a1", "w1a1:plus", "w4a4")),
    ]
    hashes = [base.hash, *(other.hash for other in others)]
    assert len(set(hashes)) == len(hashes)


SMALL_FIELDS = ("n", "h", "w", "c", "k", "r", "s", "pad", "stride", "dilation")


def test_hash_ignores_the_workloads_name_and_the_process() -> None:
    by_name, by_spec = space("resnet50.stage2@8"), space(named("resnet50.stage2@8").spec)
    assert by_name.hash == by_spec.hash
    code = "from subbyte import space; print(space('resnet50.stage2@8').hash)"
    for seed in ("0", "1"):
        environment = {**os.environ, "PYTHONHASHSEED": seed}
        run = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, env=environment)
        assert run.stdout.strip() == by_name.hash, run.stderr


# ---- rules ------------------------------------------------------------

WIDE = ConvWorkload(8, 14, 14, 256, 256, 3, 3, 1)
DEEP_OK = ConvWorkload(1, 7, 7, 2656, 32, 7, 7, 0)
DEEP = ConvWorkload(1, 7, 7, 2688, 32, 7, 7, 0)
C = MmaConfig
W = ConvWorkload
Request = tuple[ConvWorkload, MmaConfig, str]
Case = tuple[str, Request, Request]

CASES: list[Case] = [
    (
        "operands: these kernels compute int4 x int4, or with uint4 activations or outputs, not w2a2 (offset2 x uint2)",
        (named("n8h14w14c64k64r3s3p1:w2a2"), C(1, 1), "sm_80"),
        (named("n8h14w14c64k64r3s3p1:w4a4:signed.unsigned"), C(1, 1), "sm_80"),
    ),
    (
        "not covered: kernel size",
        (W(1, 12, 12, 32, 32, 8, 3), C(1, 1), "sm_80"),
        (W(1, 12, 12, 32, 32, 7, 3), C(1, 1), "sm_80"),
    ),
    (
        "not covered: stride",
        (W(1, 12, 12, 32, 32, 3, 3, 0, 3), C(1, 1), "sm_80"),
        (W(1, 12, 12, 32, 32, 3, 3, 0, 2), C(1, 1), "sm_80"),
    ),
    (
        "not covered: dilation",
        (W(1, 12, 12, 32, 32, 3, 3, 0, 1, 3), C(1, 1), "sm_80"),
        (W(1, 12, 12, 32, 32, 3, 3, 0, 1, 2), C(1, 1), "sm_80"),
    ),
    (
        "grid: 131072",
        (W(1, 1, 1, 32, 1 << 20, 1, 1), C(1, 1, 4, 1), "sm_80"),
        (W(1, 1, 1, 32, 1 << 20, 1, 1), C(1, 1, 4, 4), "sm_80"),
    ),
    (
        "divisibility: warp_col_tiles 6",
        (W(8, 4, 4, 32, 96, 3, 3, 1), C(1, 1, 4, 6), "sm_80"),
        (W(8, 4, 4, 32, 96, 3, 3, 1), C(1, 1, 4, 12), "sm_80"),
    ),
    (
        "divisibility: without register_packing",
        (W(8, 4, 4, 32, 96, 3, 3, 1), C(1, 3, 4, 2, register_packing=False), "sm_80"),
        (W(8, 4, 4, 32, 96, 3, 3, 1), C(1, 3, 4, 2), "sm_80"),
    ),
    (
        "accumulator: ",
        (W(1, 1, 1, 1 << 25, 32, 1, 1), C(1, 1), "sm_80"),
        (W(1, 1, 1, 1 << 24, 32, 1, 1), C(1, 1), "sm_80"),
    ),
    ("atom: ", (WIDE, C(atom="s4.m16n8k32"), "sm_75"), (WIDE, C(atom="s4.m8n8k32"), "sm_75")),
    ("atom: ", (WIDE, C(atom="s8.m16n8k32"), "sm_75"), (WIDE, C(atom="s8.m16n8k32"), "sm_80")),
    (
        "accumulator: ",
        (DEEP, C(1, 1, 1, 1, reorder_inner=1), "sm_90a"),
        (DEEP_OK, C(1, 1, 1, 1, reorder_inner=1), "sm_90a"),
    ),
    (
        "accumulator: ",
        (DEEP, C(1, 1, 1, 1, reorder_inner=1), "sm_90a"),
        (DEEP, C(1, 1, 1, 1, reorder_inner=1), "sm_80"),
    ),
    (
        "divisibility: blocks of 64",
        (W(8, 14, 14, 64, 96, 3, 3, 1), C(1, 2, 1, 4), "sm_80"),
        (W(8, 14, 14, 64, 96, 3, 3, 1), C(1, 1, 1, 4), "sm_80"),
    ),
    ("divisibility: chunk 4 does not divide 2", (SMALL, C(chunk=4), "sm_80"), (SMALL, C(chunk=2), "sm_80")),
    (
        "divisibility: chunk 1 is no multiple",
        (SMALL, C(atom="s4.m16n8k64"), "sm_80"),
        (SMALL, C(chunk=2, atom="s4.m16n8k64"), "sm_80"),
    ),
    (
        "divisibility: chunk 2 is no multiple",
        (WIDE, C(chunk=2, split_channels=2, unroll=2), "sm_80"),
        (WIDE, C(chunk=4, split_channels=2, unroll=2), "sm_80"),
    ),
    (
        "divisibility: tile_height 8",
        (SMALL, C(1, 1, 4, 4, tile_height=8), "sm_80"),
        (SMALL, C(1, 1, 4, 4, tile_height=4), "sm_80"),
    ),
    (
        "divisibility: 4 pixels of a warp are no rectangle",
        (SMALL, C(3, 1, 4, 4, tile_height=2), "sm_80"),
        (SMALL, C(3, 1, 4, 4, tile_height=3), "sm_80"),
    ),
    ("index: ", (W(65536, 56, 56, 96, 32, 1, 1), C(1, 1), "sm_80"), (W(32768, 56, 56, 96, 32, 1, 1), C(1, 1), "sm_80")),
    ("stages: 1", (SMALL, C(stages=1), "sm_80"), (SMALL, C(stages=2), "sm_80")),
    (
        "threads: 2048",
        (WIDE, C(4, 4, 1, 1, chunk=4, split_channels=4), "sm_80"),
        (WIDE, C(4, 4, 1, 1, chunk=4, split_channels=2), "sm_80"),
    ),
    (
        "shared memory: ",
        (WIDE, C(2, 4, 4, 4, chunk=4), "sm_86"),
        (WIDE, C(2, 4, 4, 4, chunk=4, reorder_inner=1), "sm_86"),
    ),
    ("shared memory: ", (WIDE, C(2, 2, 4, 4, chunk=4), "sm_75"), (WIDE, C(2, 2, 4, 4, chunk=4), "sm_80")),
    ("registers: ", (WIDE, C(1, 1, 16, 16), "sm_80"), (WIDE, C(1, 1, 8, 8), "sm_80")),
    (
        "registers: ",
        (WIDE, C(4, 4, 4, 8, reorder_inner=1, min_blocks=2), "sm_80"),
        (WIDE, C(4, 4, 4, 8, reorder_inner=1, min_blocks=0), "sm_80"),
    ),
    (
        "code size: ",
        (W(8, 14, 14, 32, 64, 7, 7, 3), C(1, 1, 8, 8, duplicate_aware="shared"), "sm_75"),
        (W(8, 14, 14, 32, 64, 7, 7, 3), C(1, 1, 4, 4, duplicate_aware="shared"), "sm_80"),
    ),
]


@pytest.mark.parametrize("case", CASES, ids=lambda case: case[0])
def test_rule_refuses_one_and_accepts_its_neighbour(case: Case) -> None:
    reason, request, neighbour = case
    refused = why_not(plan(*request))
    assert refused is not None
    assert refused.startswith(reason), refused
    assert why_not(plan(*neighbour)) is None


def test_every_rule_has_a_case() -> None:
    """Each rule, alone, refuses one of the cases above; and every kind of reason is shown."""
    plans = [plan(*request) for _, request, _ in CASES]
    plans.append(plan(W(24_000, 56, 56, 32, 32, 1, 1), C(1, 1), "sm_80", output="int32"))  # its sums
    for rule in RULES:
        assert any(_first(planned) is rule for planned in plans), rule.__name__
    assert {str(why_not(planned)).partition(":")[0] for planned in plans} == REASONS


def _first(planned: Plan) -> object:
    return next((rule for rule in RULES if rule(planned) is not None), None)


def test_registers_allowed_fall_with_threads_and_resident_blocks() -> None:
    small, large = (plan(WIDE, C(rows, 4, 1, 1), "sm_80") for rows in (1, 4))
    assert registers_allowed(small) == 255 - HOISTED_ADDRESSES
    assert registers_allowed(large) == 128
    assert registers_allowed(plan(WIDE, C(4, 4, 1, 1, min_blocks=2), "sm_80")) == 64
    assert registers_needed(large) == registers_needed(small)


def test_first_layer_of_alexnet_is_refused_with_the_reason() -> None:
    candidates = space("alexnet.conv1@1")
    assert candidates.valid == ()
    assert candidates.refused == {"not covered": 1800}
    assert str(candidates.check(0)) == "not covered: kernel size 11x11: kernels cover 1 to 7 in each direction"


# ---- broken requests ------------------------------------------------------------


@pytest.mark.parametrize(
    ("arguments", "fixed", "message"),
    [
        (("resnet50.stag2@8",), {}, "did you mean"),
        ((SMALL, "sm_81"), {}, "unknown architecture 'sm_81': did you mean"),
        ((SMALL, "sm_80", "papers"), {}, "unknown kind of space 'papers': did you mean paper"),
        ((5,), {}, "workload 5"),
        ((SMALL, 80), {}, "architecture 80"),
        ((SMALL,), {"chunk": 2}, "'chunk' cannot be fixed in a space"),
        ((SMALL,), {"layouts": "nhwc"}, "'layouts' cannot be fixed in a space: did you mean layout"),
        ((SMALL,), {"layout": "nchw"}, "layout='nchw'"),
    ],
)
def test_unknown_names(arguments: tuple[Any, ...], fixed: dict[str, Any], message: str) -> None:
    with pytest.raises(InvalidInput) as refused:
        space(*arguments, **fixed)
    assert message in str(refused.value)


def test_notebook_view_names_knobs_and_size() -> None:
    shown = space(SMALL, "sm_80")._repr_html_()
    assert "1,800" in shown
    assert all(name in shown for name in value_lists("paper", SMALL))
    assert set(ARCHS) >= {"sm_75", "sm_80", "sm_86", "sm_89", "sm_90a"}
