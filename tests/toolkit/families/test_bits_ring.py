"""Kernels on one-bit products with a ring of stages: clean and exact, faults found, rules, choice, machine code."""

from __future__ import annotations

import re
from typing import Any

import pytest
from generated_bits import GeneratedBits

import subbyte
from subbyte.device.arch import arch
from subbyte.errors import InvalidInput
from subbyte.families import config_from_key, family_named
from subbyte.families.bits.ring.emit import consume, produce
from subbyte.families.bits.ring.plan import RingPlan
from subbyte.families.bits.ring_config import RingConfig
from subbyte.kernel import Kernel
from subbyte.kernel.build import generated_text, make_plan
from subbyte.workload import ConvWorkload, workload


class GeneratedRing(GeneratedBits):
    """A kernel with a ring."""

    def __init__(self, of: str | ConvWorkload, output: str | None = None, **knobs: int | str) -> None:
        made = make_plan(workload(of), RingConfig().with_values(knobs), "sm_90a", output, None, "fixed")
        assert isinstance(made, RingPlan)
        self.plan: RingPlan = made  # type: ignore[assignment]


KERNELS: dict[str, tuple[str, str | None, dict[str, int | str]]] = {
    "clusters of 2 x 2, a short last stage": (
        "gemm200x128x700:w1a1", None,
        {"channels": 32, "consumers": 1, "depth": 4, "stages": 2, "share_weights": 2, "share_pixels": 2},
    ),
    "two planes each, sums, an odd block of channels": (
        "gemm72x100x1100:w2a2", "int32", {"channels": 64, "consumers": 1, "depth": 4, "stages": 3},
    ),
    "a layer with missing images, two warpgroups, one ahead": (
        "n9h3w4c600k70r1s1p0:w1a2", None, {"channels": 64, "consumers": 2, "depth": 2, "stages": 3, "lead": 2},
    ),
    "several tiles of a block, more stages than a tile has": (
        "gemm2200x512x512:w1a1", None, {"channels": 32, "consumers": 1, "depth": 2, "stages": 3},
    ),
    "four warpgroups": (
        "gemm264x128x1024:w1a1", None, {"channels": 128, "consumers": 4, "depth": 4, "stages": 2},
    ),
    "four bits by a line": (
        "gemm64x64x512:w1a4", None, {"channels": 32, "consumers": 1, "depth": 2, "stages": 2},
    ),
}  # fmt: skip
KERNEL = GeneratedRing("gemm1040x64x1100:w1a1", channels=32, consumers=2, depth=2, stages=3, share_weights=2, lead=1)
"""Of clusters, with more stages than the ring holds."""
LONG = GeneratedRing("gemm2200x512x512:w1a1", channels=32, consumers=1, depth=2, stages=3)
"""Of several tiles for each block."""


@pytest.mark.sample("2 x 2")
@pytest.mark.parametrize("name", KERNELS)
def test_rings_are_clean_and_exact(name: str) -> None:
    of, output, knobs = KERNELS[name]
    GeneratedRing(of, output, **knobs).require_exact(1)


@pytest.mark.deep
def test_a_ring_with_clusters_is_clean_in_several_orders() -> None:
    KERNEL.require_exact(2)


FULL_PARITY = r"(try_wait_parity_shared_b64\(done_ptr_1\[0\], [^;]*?, )(parity_ptr_1\[0\])\)"
EXPECTED = r"(expect_tx_shared_b64\(.*\+ )1024\)"
WAITING = "wgmma.wait_group.sync.aligned"
TEXTS = [
    ("given back before its products are over", rf"{WAITING} 1;", f"{WAITING} 2;", {"race", "register_in_flight"}),
    ("the wrong phase of a full stage", FULL_PARITY, r"\g<1>(\g<2> ^ 1u))", {"race", "uninitialised_shared"}),
    ("fewer bytes of a stage than come", EXPECTED, r"\g<1>1008)", {"deadlock"}),
    ("one block of the cluster is not told", r"lane < 2\)", "lane < 1)", {"deadlock"}),
    ("no fence before the products", r"wgmma\.fence\.sync\.aligned;", "", {"missing_wgmma_fence"}),
    ("no wait for the launch before", r"griddepcontrol\.wait;", "", {"missing_dependency_wait"}),
    ("barriers nobody waits for", r"barrier\.cluster\.wait\.acquire\.aligned;", "", {"race", "bad_mbarrier"}),
]


@pytest.mark.sample("given back", "wrong phase")
@pytest.mark.parametrize("case", TEXTS, ids=lambda case: case[0])
def test_faults_in_texts_of_rings_are_found(case: tuple[str, str, str, set[str]]) -> None:
    _, old, new, kinds = case
    text, count = re.subn(old, new, KERNEL.text)
    assert count
    run, *_ = KERNEL.run(0, text)
    assert {finding.kind for finding in run.findings} & kinds, str(run)


def never(*_: Any) -> None: ...


def released_before_it_is_read(self: Any, *given: Any) -> None:
    self._release(self.place.slot[0])
    load(self, *given)


load = consume.Consumer._load
GENERATORS = [
    ("nothing is given back", consume.Consumer, "_release", never, "deadlock"),
    ("a stage is given back before it is read", consume.Consumer, "_load", released_before_it_is_read, "race"),
    ("the four lanes of an image do not add up", consume.Consumer, "_count_over", never, ""),
    ("the others never begin", consume.Consumer, "_lead", never, "deadlock"),
    ("weights are not copied", produce, "_copy_weights", never, "deadlock"),
]


@pytest.mark.deep
@pytest.mark.parametrize("case", GENERATORS, ids=lambda case: case[0])
def test_faults_in_generators_of_rings_are_found(
    case: tuple[str, Any, str, Any, str], monkeypatch: pytest.MonkeyPatch
) -> None:
    _, where, name, fault, kind = case
    monkeypatch.setattr(where, name, fault)
    run, wrong, _ = KERNEL.run(0, generated_text(KERNEL.plan))
    assert kind in {finding.kind for finding in run.findings} if kind else wrong, str(run)


def test_more_registers_than_a_launch_has_are_found(monkeypatch: pytest.MonkeyPatch) -> None:
    """On a GPU such a kernel never ends."""
    of, _, knobs = KERNELS["four warpgroups"]
    plan = GeneratedRing(of, **knobs).plan
    monkeypatch.setattr(RingPlan, "granted", plan.granted + 8)
    made = GeneratedRing(of, **knobs)
    run, *_ = made.run(0, generated_text(made.plan))
    assert "deadlock" in {finding.kind for finding in run.findings}


@pytest.mark.deep
def test_a_table_that_the_next_tile_overwrites_is_found(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(RingPlan, "tables", 1)
    run, *_ = LONG.run(0, generated_text(LONG.plan))
    assert "race" in {finding.kind for finding in run.findings}


REASONS = [
    ("n8h4w4c512k64r3s3p1:w1a1", {}, "not covered: a ring goes through"),
    ("gemm64x64x64:w1a1", {"channels": 64, "consumers": 1}, "stages: 4 blocks of channels"),
    ("gemm512x64x1024:w1a1", {"channels": 256}, "tiles: 256 output channels"),
    ("gemm512x96x1024:w5a1", {"channels": 64}, "columns: 320"),
    (
        "gemm512x96x1024:w1a1",
        {"channels": 32, "stages": 2, "share_pixels": 2},
        "cluster: 2 blocks that share activations",
    ),
    (
        "gemm64x96x1024:w1a1",
        {"channels": 32, "consumers": 1, "stages": 2, "share_weights": 2},
        "cluster: 2 blocks of 8 pixels",
    ),
    ("gemm4096:w1a1", {"share_weights": 4, "share_pixels": 4}, "cluster: 4 x 4"),
    ("gemm4096:w1a1", {"consumers": 1, "lead": 1}, "stages: 1 ahead"),
    ("gemm64x64x512:w1a1", {"channels": 32, "consumers": 1, "stages": 8}, "stages: a ring of 8"),
    ("gemm4096:w1a2", {"channels": 256}, "registers: "),
    ("gemm4096:w1a1", {"channels": 256, "depth": 8, "stages": 6}, "shared: "),
]


def test_what_cannot_be_built_has_a_reason() -> None:
    family = family_named("bits")
    for of, knobs, begins in REASONS:
        found = workload(of)
        plan = family.plan(found, RingConfig().with_values(knobs), arch("sm_90a"), found.precision.output.name)
        assert str(family.check(plan)).startswith(begins), (of, knobs, family.check(plan))


def test_rings_have_a_space_and_keys_of_their_own() -> None:
    space = subbyte.space("gemm512x512x1024:w1a1", kind="bits-ring")
    config = space.config(space.valid[-1])
    assert isinstance(config, RingConfig)
    assert config_from_key(config.key) == config
    assert space.index(config) == space.valid[-1]
    family = family_named("bits")
    assert family.changed(family.plain, {"depth": 8}) == RingConfig(depth=8)
    assert family.changed(config, {"tile_rows": 2}) == family.plain.with_values({"tile_rows": 2})
    assert subbyte.space("resnet50.stage2@8:w1a1", kind="bits-ring").hopeless
    with pytest.raises(InvalidInput, match="no such knob"):
        subbyte.space("gemm512x512x1024:w1a1", kind="bits-ring", stagger=1)


def test_deep_products_get_a_ring_and_small_ones_do_not() -> None:
    for of, ring in (("gemm8192:w1a1", True), ("gemm64x128x128:w1a1", False)):
        first = next(iter(family_named("bits").candidates(workload(of), arch("sm_90a"))))
        assert isinstance(first, RingConfig) == ring


@pytest.mark.deep
def test_the_machine_code_of_a_ring_multiplies_from_registers() -> None:
    """Beside the products a bit count for each word of activations, once, and no local memory."""
    knobs: dict[str, int | str] = {"channels": 256, "depth": 8, "stages": 4, "share_weights": 2, "lead": 1}
    kernel = Kernel(GeneratedRing("gemm8192:w1a1", **knobs).plan)
    found = kernel.instructions
    bodies = 4  # the first stage, two in turn, the last one
    assert found["BGMMA.64x256x256.AND.POPC"] == 4 * bodies
    assert found["POPC"] == 4 * 4 * bodies
    assert kernel.resources.local_bytes == 0
    assert len(re.findall(r"BGMMA\.64x256x256\.AND\.POPC R\d+, R\d+, gdesc", kernel.sass)) == 4 * bodies
