"""Every element of every kernel equals the reference, on the CPU emulator with all its checks."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from itertools import cycle, product
from typing import Any

import numpy as np
import pytest

from subbyte.device.arch import ARCHS
from subbyte.device.atoms import ATOMS
from subbyte.families.mma.config import MmaConfig
from subbyte.families.mma.plan import plan
from subbyte.families.mma.rules import why_not
from subbyte.kernel import Kernel
from subbyte.kernel.execute import random_operands
from subbyte.numerics import Requantization, reference, relayout
from subbyte.workload import ConvWorkload

Exact = Callable[..., Any]
ODD = ConvWorkload(9, 7, 6, 40, 40, 3, 3, 1)
"""Two batch groups of which the second has one image, and channels that fill no block."""
CHANNELS = ConvWorkload(2, 5, 6, 256, 64, 3, 3, 1)


def make(workload: ConvWorkload, config: MmaConfig, arch: str = "sm_80", **options: Any) -> Kernel:
    """The kernel of a plan that the space must accept."""
    planned = plan(workload, config, arch, **options)
    assert why_not(planned) is None
    return Kernel(planned)


# ---- switches ------------------------------------------------------------


COMBINATIONS = list(product(("none", "shared", "full"), (True, False), ("nhwc", "nhwcnc")))
PAIRS_OF_SWITCHES = [COMBINATIONS[place] for place in (0, 3, 5, 6, 8, 11)]
"""Every pair of values of two switches is in one of them."""


@pytest.mark.parametrize("chosen", [PAIRS_OF_SWITCHES, pytest.param(COMBINATIONS, marks=pytest.mark.deep)], ids=len)
def test_all_combinations_of_switches_give_the_same_words(exact: Exact, chosen: list[tuple[str, bool, str]]) -> None:
    workload, config, found = ODD, MmaConfig(2, 1, 2, 4), {}
    for way, packing, layout in chosen:
        switched = replace(config, duplicate_aware=way, register_packing=packing, layout=layout)
        kernel = make(workload, switched)
        w, words = workload, exact(kernel)
        if layout == "nhwc":
            words = words.reshape(w.batch_groups * 8, w.p, w.q, w.filter_blocks * 4)
            words = relayout(words, "nhwc", "nhwcnc").ravel()
        found[way, packing, layout] = words
    first = found["none", True, "nhwc"]
    assert len(found) == len(chosen)
    assert len(np.unique(first)) > 1
    for switches, words in found.items():
        np.testing.assert_array_equal(words, first, err_msg=str(switches))


# ---- matrix instructions ------------------------------------------------------------

PAIRS = [
    (atom.name, arch.name)
    for atom in ATOMS.values()
    for arch in ARCHS.values()
    if int(arch.name[3:5]) >= atom.minimum_sm
]


@pytest.mark.sample("s4.m8n8k32-int4", "s4.m16n8k64-int4", "s8.m16n8k32-int4")
@pytest.mark.parametrize("output", ["int4", "int32"])
@pytest.mark.parametrize("atom", ATOMS)
def test_every_atom_on_every_architecture(exact: Exact, atom: str, output: str) -> None:
    """Architectures with the same instructions have the same text, which is run once."""
    workload = ConvWorkload(3, 5, 4, 100, 40, 3, 2, 1)
    texts = {}
    for arch in [arch for name, arch in PAIRS if name == atom] if output == "int4" else ["sm_90a"]:
        kernel = make(workload, MmaConfig(2, 1, 2, 2, chunk=2, atom=atom), arch, output=output)
        assert ATOMS[atom].ptx in kernel.cuda
        texts[kernel.cuda] = kernel
    for kernel in texts.values():
        exact(kernel)


def test_each_pair_of_switches_is_in_the_smaller_list() -> None:
    for left, right in ((0, 1), (0, 2), (1, 2)):
        pairs = {(one[left], one[right]) for one in COMBINATIONS}
        assert {(one[left], one[right]) for one in PAIRS_OF_SWITCHES} == pairs


def test_every_atom_is_tried_with_every_architecture_that_has_it() -> None:
    assert len(PAIRS) == 5 + 4 + 4 + 4


# ---- the control without unpacking --------------------------------------------------------


@pytest.mark.sample(1)
@pytest.mark.parametrize(("way", "layout"), [("none", "nhwc"), ("shared", "nhwcnc"), ("full", "nhwc")])
def test_activations_stored_as_bytes_give_the_same_words(exact: Exact, way: str, layout: str) -> None:
    config = MmaConfig(1, 2, 4, 2, chunk=2, reorder_inner=1, duplicate_aware=way, layout=layout)
    workload = ConvWorkload(9, 7, 6, 100, 32, 3, 3, 1, 2)
    packed, stored = (make(workload, config, "sm_90a", stored=stored) for stored in ("s4", "s8"))
    np.testing.assert_array_equal(exact(stored), exact(packed))
    assert stored.argument("A").nbytes == 2 * packed.argument("A").nbytes
    assert stored.plan.activation_words == 2 * packed.plan.activation_words


def test_only_an_unpacked_atom_takes_bytes() -> None:
    reason = why_not(plan(ODD, MmaConfig(atom="s4.m16n8k32"), "sm_80", stored="s8"))
    assert reason is not None
    assert "multiplies int4 values" in reason


# ---- knobs ------------------------------------------------------------

BASE = MmaConfig(2, 1, 2, 2, chunk=2)
KNOB_VALUES = {
    "blk_row_warps": (1, 4),
    "blk_col_warps": (2, 4),
    "warp_row_tiles": (1, 7, 8, 16),
    "warp_col_tiles": (1, 8),
    "chunk": (1, 8),
    "reorder_inner": (1,),
    "tile_height": (1, 4),
    "stages": (3, 4),
    "unroll": (2,),
}
"""Values that BASE has not: the ends of each range, odd numbers of pixels."""
ALONE = [("warp_row_tiles", 8), ("warp_row_tiles", 16), ("warp_col_tiles", 8), ("chunk", 8), ("tile_height", 4),
         ("stages", 3), ("unroll", 2)]  # fmt: skip
"""Those that none of KNOBS_TOGETHER has, and the largest of a knob."""


@pytest.mark.sample("stages-3")
@pytest.mark.parametrize(("knob", "value"), ALONE)
def test_knobs_one_at_a_time(exact: Exact, knob: str, value: int) -> None:
    exact(make(CHANNELS, replace(BASE, **{knob: value}), "sm_90a"))


@pytest.mark.sample(1)
@pytest.mark.parametrize("knobs", [{"blk_row_warps": 4, "reorder_inner": 1}, {"warp_row_tiles": 7, "stages": 4}])
def test_knobs_of_the_lowered_tile(exact: Exact, knobs: dict[str, int]) -> None:
    """Every duplicate has a slot of its own, so these knobs address memory in another way."""
    config = replace(BASE, chunk=1, duplicate_aware="none", atom="s4.m16n8k32")
    exact(make(CHANNELS, replace(config, **knobs), "sm_80"))


KNOBS_TOGETHER = {
    "split in two": MmaConfig(1, 1, 2, 4, chunk=2, split_channels=2),
    "split in four, two warps wide": MmaConfig(1, 2, 2, 2, chunk=4, split_channels=4),
    "split, unrolled": MmaConfig(1, 1, 4, 2, chunk=8, split_channels=2, unroll=4),
    "split, without packing in registers": MmaConfig(
        2, 1, 2, 2, chunk=2, split_channels=2, register_packing=False, duplicate_aware="shared"
    ),
    "split, two blocks per instruction": MmaConfig(1, 1, 2, 2, chunk=4, split_channels=2, atom="s4.m16n8k64"),
    "rows outermost, three stages": MmaConfig(2, 1, 4, 2, chunk=4, reorder_inner=1, stages=3),
    "rows outermost, four stages, split": MmaConfig(
        1, 1, 4, 4, chunk=2, reorder_inner=1, stages=4, split_channels=2, layout="nhwc"
    ),
    "four stages, everything staged": MmaConfig(1, 2, 4, 2, chunk=2, stages=4),
    "seven pixels, one column tile": MmaConfig(2, 1, 7, 1, chunk=2, duplicate_aware="shared"),
    "seven pixels, lowered": MmaConfig(1, 1, 7, 2, chunk=2, duplicate_aware="none", register_packing=False),
    "fourteen pixels": MmaConfig(1, 1, 14, 2, chunk=1),
    "one pixel, eight tiles": MmaConfig(1, 1, 1, 8, chunk=1, unroll=1, min_blocks=2),
    "tile of one column": MmaConfig(4, 1, 2, 2, chunk=1, tile_height=8),
    "tile of one row": MmaConfig(4, 1, 2, 2, chunk=1, tile_height=1),
    "sixteen warps": MmaConfig(4, 4, 1, 2, chunk=1),
    "more stages than iterations": MmaConfig(1, 1, 2, 4, chunk=8),
}


@pytest.mark.sample("four stages, split", "sixteen")
@pytest.mark.parametrize(("name", "arch"), list(zip(KNOBS_TOGETHER, cycle(("sm_75", "sm_90a")))))
def test_knobs_together(exact: Exact, name: str, arch: str) -> None:
    config = KNOBS_TOGETHER[name]
    exact(make(CHANNELS, config, "sm_80" if config.atom != "auto" else arch))


def test_every_value_of_a_knob_is_tried() -> None:
    together = {(name, getattr(config, name)) for config in KNOBS_TOGETHER.values() for name in KNOB_VALUES}
    assert {(name, value) for name, values in KNOB_VALUES.items() for value in values} <= together | set(ALONE)


# ---- shapes ------------------------------------------------------------

SHAPES = [
    "n8h7w7c32k32r1s1p0", "n8h7w7c32k32r1s1p3", "n1h1w1c1k1r1s1p0", "n17h3w5c33k65r1s1p0u2",
    "n2h7w7c64k32r3s3p1u2", "n2h7w7c64k32r3s3p2d2", "n2h9w9c64k32r3s3p2u2d2",
    "n1h13w9c32k40r1s7p3", "n1h13w9c32k40r7s1p3", "n1h13w9c32k40r5s2p2", "n1h13w9c32k40r2s5p1u2",
    "n1h9w8c32k32r7s7p3u2", "n1h13w14c32k32r7s7p0d2", "n1h7w7c32k32r7s7p0",
    "n1h4w4c32k32r4s4p0", "n1h6w6c32k32r6s6p3", "n1h2w3c32k32r1s1p2u2", "n1h1w1c32k32r3s3p1",
    "n1h7w3c20k20r2s2p1d2", "n1h3w7c20k20r3s1p3u2d2", "n1h8w8c64k32r4s3p0u2d2",
]  # fmt: skip


WAYS = (
    ("sm_90a", MmaConfig(2, 1, 2, 2)),
    ("sm_80", MmaConfig(1, 1, 4, 4, reorder_inner=1, layout="nhwc")),
    ("sm_75", MmaConfig(2, 1, 2, 4, duplicate_aware="shared", register_packing=False)),
    ("sm_86", MmaConfig(1, 2, 4, 1, duplicate_aware="none")),
)
EVERY_WAY = ("n1h3w7c20k20r3s1p3u2d2",)
"""No size is a whole number of tiles; stride, dilation and padding at once."""


@pytest.mark.sample("r1s1p3", "r3s3p2u2d2", "r7s7p3u2", "c33k65")
@pytest.mark.parametrize(
    ("spec", "arch", "config"),
    [(spec, *way) for spec, way in zip(SHAPES, cycle(WAYS)) if spec not in EVERY_WAY]
    + [(spec, *way) for spec, way in product(EVERY_WAY, WAYS)],
    ids=lambda given: given.key if isinstance(given, MmaConfig) else given,
)
def test_shapes(exact: Exact, spec: str, arch: str, config: MmaConfig) -> None:
    from subbyte.workload import workload

    exact(make(workload(spec), config, arch))


def test_shapes_cover_what_they_claim() -> None:
    from subbyte.workload import workload

    every = [workload(spec) for spec in SHAPES]
    assert {w.r for w in every} == {w.s for w in every} == set(range(1, 8))
    assert {(w.stride, w.dilation) for w in every} == set(product((1, 2), (1, 2)))
    assert {w.pad for w in every} == {0, 1, 2, 3}
    assert any(w.pad > max(w.r, w.s) for w in every)
    assert any((w.p, w.q) == (1, 1) for w in every)
    assert all(any(getattr(w, name) % least for w in every) for name, least in (("n", 8), ("c", 32), ("k", 32)))


# ---- outputs ------------------------------------------------------------

EPILOGUES = {
    "sm_90a": MmaConfig(1, 1, 2, 4),
    "sm_75": MmaConfig(1, 1, 3, 1),
    "sm_80": MmaConfig(1, 1, 2, 2, register_packing=False, layout="nhwc"),
}


CLIPS = ((-8, 7), (0, 7), (2, 2), (-8, 0), (-3, 5))


@pytest.mark.sample("fixed-clip1", "fixed-clip2", "fixed-clip4", "general-clip1")
@pytest.mark.parametrize(
    ("form", "clip", "arch"),
    [
        (*case, arch)
        for case, arch in zip([*product(["fixed"], CLIPS), *product(["general"], CLIPS[1::2])], cycle(EPILOGUES))
    ],
)
def test_requantization_forms_and_clips(exact: Exact, arch: str, clip: tuple[int, int], form: str) -> None:
    workload = ConvWorkload(2, 4, 3, 40, 40, 3, 3, 1)
    kernel = make(workload, EPILOGUES[arch], arch)
    x, w, _ = random_operands(kernel, 1)
    drawn = Requantization.random(workload, np.random.default_rng(1), wide=form == "general")
    requant = replace(drawn, clip=clip)
    fitting = kernel.for_requantization(requant)
    assert (fitting.plan.requant, fitting.plan.clip) == (form, clip)
    words = exact(kernel, (x, w, requant))
    values = fitting.unpack(words)
    assert (values.min(), values.max()) == clip


@pytest.mark.parametrize("arch", ["sm_80", "sm_90a"])
def test_requantization_at_its_limits(exact: Exact, arch: str) -> None:
    """Multipliers 0 and 2^31-1, shifts 1 and 62, biases at both ends of int32: the general form takes them all."""
    workload = ConvWorkload(2, 4, 4, 32, 32, 3, 3, 1)
    rng = np.random.default_rng(5)
    bias = rng.choice(np.array([-(2**31), 2**31 - 1, 0, -1000, 777]), 32).astype(np.int32)
    multiplier = rng.choice(np.array([0, 1, 2**31 - 1, 2**30, 12345]), 32).astype(np.int32)
    shift = rng.choice(np.array([1, 2, 31, 32, 33, 40, 61, 62]), 32).astype(np.int32)
    kernel = make(workload, MmaConfig(1, 1, 2, 4), arch)
    x, w, _ = random_operands(kernel, 2)
    requant = Requantization(bias, multiplier, shift)
    assert kernel.for_requantization(requant).plan.requant == "general"
    exact(kernel, (x, w, requant))


@pytest.mark.sample(2)
@pytest.mark.parametrize(
    ("config", "arch"),
    list(zip([*EPILOGUES.values(), MmaConfig(2, 1, 7, 2, chunk=2, split_channels=2)], cycle(("sm_80", "sm_90a")))),
    ids=lambda given: given.key if isinstance(given, MmaConfig) else given,
)
def test_raw_sums(exact: Exact, arch: str, config: MmaConfig) -> None:
    words = exact(make(ConvWorkload(3, 6, 5, 64, 40, 3, 3, 1), config, arch, output="int32"))
    assert words.dtype == np.int32
    assert np.abs(words).max() > 500


# ---- inputs that show what random ones hide ------------------------------------------------------------


def _borders(shape: tuple[int, ...]) -> np.ndarray:
    x = np.zeros(shape, np.int8)
    x[:, [0, -1]] = x[:, :, [0, -1]] = -8
    return x


def _alternating(shape: tuple[int, ...]) -> np.ndarray:
    parity = np.indices(shape).sum(axis=0) % 2
    return np.where(parity == 0, -8, 7).astype(np.int8)


ADVERSARIAL = {
    "all -8": lambda shape: np.full(shape, -8, np.int8),
    "all 7": lambda shape: np.full(shape, 7, np.int8),
    "alternating": _alternating,
    "borders only": _borders,
    "one value": lambda shape: np.eye(1, int(np.prod(shape)), 5, dtype=np.int8).reshape(shape) * np.int8(7),
}


@pytest.mark.sample(4)
@pytest.mark.parametrize(("name", "weights"), [*product(ADVERSARIAL, ["all -8"]), ("alternating", "alternating")])
@pytest.mark.parametrize("atom", ["s4.m16n8k32", "s8.m16n8k32"])
def test_adversarial_inputs(exact: Exact, name: str, weights: str, atom: str) -> None:
    w = ConvWorkload(2, 6, 6, 64, 32, 3, 3, 1)
    kernel = make(w, MmaConfig(2, 1, 2, 4, atom=atom), output="int32")
    x = ADVERSARIAL[name]((w.n, w.h, w.w, w.c))
    exact(kernel, (x, ADVERSARIAL[weights]((w.k, w.r, w.s, w.c)), None))


def test_largest_sums_of_an_unpacked_atom(exact: Exact) -> None:
    """R*S*C just below the limit with the largest products: the accumulators carry 16 * 16 times as much."""
    w = ConvWorkload(1, 7, 7, 2656, 8, 7, 7, 0)
    assert 130_000 < w.r * w.s * w.c < 131_072
    kernel = make(w, MmaConfig(1, 1, 1, 1, reorder_inner=1), "sm_90a", output="int32")
    x, weights = np.full((1, 7, 7, w.c), -8, np.int8), np.full((w.k, 7, 7, w.c), -8, np.int8)
    assert np.unique(exact(kernel, (x, weights, None))).tolist() == [0, 64 * 49 * w.c]
    exact(kernel, (x, np.full_like(weights, 7), None))


# ---- layers ------------------------------------------------------------


def test_packed_output_is_the_next_layers_input(exact: Exact) -> None:
    """Words of one layer go into the next as they are: the padded channels and images do no harm."""
    from subbyte.emulator import require_clean, run_cuda

    first = ConvWorkload(3, 6, 6, 40, 72, 3, 3, 1)
    second = ConvWorkload(3, 6, 6, 72, 32, 3, 3, 1, 2)
    one = make(first, MmaConfig(2, 1, 2, 4))
    x, w1, requant = random_operands(one, 3)
    assert requant is not None
    words = exact(one, (x, w1, requant))
    two = make(second, MmaConfig(1, 1, 4, 4, register_packing=False))
    _, w2, again = random_operands(two, 4)
    two = two.for_requantization(again)
    middle = requant.apply(reference(first, x, w1))
    buffers = two.pack(middle, w2, again)
    assert buffers["A"].shape == words.shape
    out = np.zeros(two.argument("Out").shape, np.uint32)
    require_clean(run_cuda(two.cuda, two.launch, {**buffers, "A": words, "Out": out}))
    assert again is not None
    np.testing.assert_array_equal(two.unpack(out), again.apply(reference(second, middle, w2)))


@pytest.mark.deep
def test_a_whole_resnet50_layer() -> None:
    """Unchecked, so that it takes seconds; every one of its 1.6 million outputs is compared."""
    from subbyte.kernel.execute import expected
    from subbyte.workload import workload

    kernel = make(workload("resnet50.stage2@8"), MmaConfig(2, 2, 4, 4, chunk=2), "sm_90a")
    x, w, requant = random_operands(kernel, 7)
    values = kernel.run(x, w, requant, device="emulator")
    np.testing.assert_array_equal(values, expected(kernel, x, w, requant))
