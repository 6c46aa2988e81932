"""The stem family: strings against counting by loops; its keys, spaces, choices, refusals and records."""

from __future__ import annotations

from itertools import product

import numpy as np
import pytest

import subbyte
from subbyte.cli.main import main
from subbyte.device import ARCHS
from subbyte.errors import InvalidInput, Unsupported
from subbyte.families import config_from_dict, config_from_key, family_of
from subbyte.families.stem.config import StemConfig
from subbyte.families.stem.explain.shared_k import shared_k
from subbyte.families.stem.family import STEM
from subbyte.families.stem.plan import StemPlan
from subbyte.families.stem.space import KIND
from subbyte.families.stem.strings import SCALE_LOG2, strings
from subbyte.families.stem.weights import prepare_weights
from subbyte.kernel.choose import best_known
from subbyte.numerics import reference
from subbyte.numerics.pixel_strips import StripForm

SM_90A = ARCHS["sm_90a"]
LAYER = "n8h14w20c3k64r7s7p3u2"


def plan_of(spec: str, **knobs: int) -> StemPlan:
    return StemPlan(subbyte.workload(spec), StemConfig(**knobs), SM_90A)


def test_the_stem_takes_6_instructions_and_vgg_1():
    steps = {"n8h224w224c3k64r7s7p3u2": 6, "n8h224w224c3k64r3s3p1": 1, "n8h224w224c3k64r11s11p2u4": 15}
    assert {spec: strings(subbyte.workload(spec)).steps for spec in steps} == steps


def window_of(words: np.ndarray, workload: subbyte.ConvWorkload, p: int, q: int) -> np.ndarray:
    """The window of output pixel (p, q) as its strings say, int8 [8][bytes], from words uint32 [rows][words][8]."""
    lay = strings(workload)
    found = []
    for string in range(lay.window_strings):
        first = q * lay.advance // 8 + string
        for part in lay.parts[q % lay.phases % lay.kinds]:
            for one in part:
                if isinstance(one, int):
                    found.append(np.full(8, one, np.uint8))
                else:
                    word = words[p * workload.stride + one[0], first + one[1] // 8]
                    found.append(((word >> (4 * (one[1] % 8)) & 15) << 4).astype(np.uint8))
    return np.stack(found, axis=1).view(np.int8)


@pytest.mark.parametrize("channels", [1, 3, 5, 8])
def test_strings_and_weights_multiply_to_the_convolution(channels):
    """Outputs from neighbouring strings, by the bytes of weights that the instruction reads."""
    rng, filters = np.random.default_rng(channels), 32
    for stride, size in product((1, 2, 3), (1, 3, 4, 11)):
        w = subbyte.workload(f"n3h{size + 2}w{size + 9}c{channels}k40r{size}s{size}p{size // 2}u{stride}")
        x = rng.integers(-8, 8, (w.n, w.h, w.w, w.c)).astype(np.int8)
        weights = rng.integers(-8, 8, (w.k, w.r, w.s, w.c)).astype(np.int8)
        wanted, lay = reference(w, x, weights), strings(w)
        words = lay.form.apply(x)[0].astype(np.uint32)
        made = prepare_weights(weights, w, filters).view(np.int8).astype(int)
        made = made.reshape(2, lay.phases, lay.steps, filters // 8, 2, 8, 16)
        for (p, q), k in product({(0, 0), (w.p - 1, w.q - 1), (w.p // 2, min(1, w.q - 1))}, (0, 17, 39)):
            window = window_of(words, w, p, q).astype(int)
            column = made[k // 32, q % lay.phases, :, k % 32 % 8 // 2, :, 2 * (k % 32 // 8) + k % 2].reshape(-1)
            total = window @ column[: window.shape[1]]
            assert not column[window.shape[1] :].any()
            assert (total[: w.n] >> SCALE_LOG2).tolist() == wanted[:, p, q, k].tolist(), (w.spec, p, q, k)


def test_constants_are_enough_for_what_no_sum_is_negative_with():
    for spec in (LAYER, "n8h14w20c3k64r3s3p1", "n8h30w30c8k64r11s11p2", "n8h9w9c1k32r1s1p0", "n8h9w19c5k32r1s11p0"):
        lay = strings(subbyte.workload(spec))
        assert lay.begins_with >= 1.25 * lay.largest_sum
        assert {len(parts) % 4 for parts in lay.parts} == {0}
        assert len({len(lay.constants(phase)) for phase in range(lay.phases)}) == 1


def test_a_form_is_read_from_its_text():
    form = strings(subbyte.workload(LAYER)).form
    assert StripForm.of(form.text) == form
    assert StripForm.of("nhwcnc") is None


def test_keys_fields_and_indices_lead_back():
    space = STEM.space(subbyte.workload(LAYER), SM_90A, KIND, {})
    assert 0 < len(space.valid) < len(space)
    assert sum(space.refused.values()) + len(space.valid) == len(space)
    for index in space.valid[:: len(space.valid) // 7]:
        config = space.config(index)
        assert space.index(config) == index
        assert config_from_key(config.key) == config == config_from_dict(config.to_dict())
        assert STEM.check(STEM.plan(space.workload, config, SM_90A)) is None
    with pytest.raises(InvalidInput, match="cannot be fixed in a stem space"):
        STEM.space(subbyte.workload(LAYER), SM_90A, KIND, {"consumers": 2})


@pytest.mark.sample("h30")
@pytest.mark.parametrize("spec", ["n3h30w30c1k32r5s5p2", "n8h56w56c3k64r3s3p1", "n8h224w224c4k64r7s7p3u2"])
def test_compile_takes_it_where_nothing_else_was_measured(spec):
    config, reason = best_known(subbyte.workload(spec), SM_90A)
    assert family_of(config).name == "stem"
    assert "chosen by estimate" in reason
    assert family_of(best_known(subbyte.workload(spec), SM_90A, reads="nhwcnc")[0]).name != "stem"


@pytest.mark.sample("h8")
@pytest.mark.parametrize("spec", ["n8h8w8c9k32r3s3p1", "n8h56w56c9k64r3s3p1", "n8h56w56c3k64r3s3p1d2"])
def test_compile_leaves_layers_of_other_kinds_to_others(spec):
    assert family_of(best_known(subbyte.workload(spec), SM_90A)[0]).name != "stem"


@pytest.mark.parametrize(("spec", "knobs", "reason"), [
    ("n8h14w20c9k64r7s7p3u2", {}, "9 input channels; stem kernels take 1 to 8"),
    ("n8h14w20c3k64r12s3p3", {}, "12x3: stem kernels have at most 11"),
    ("n8h14w20c3k64r3s3p1d2", {}, "dilation 2"),
    ("n8h14w20c3k64r3s3p1:w1a1", {}, "operands"),
    ("n8h14w20c3k64r3s3p1:w4a4:signed-2of4.signed", {}, "zeros to skip"),
    (LAYER, {"turn_rows": 3}, "turn_rows is 1, 2, 4 or 8"),
    ("n8h19w20c3k64r7s7p3u2", {"turn_rows": 8}, "turns of 8 rows reach beyond the rows that are stored"),
    (LAYER, {"wide": 1}, "instructions of 16 pixels need held_weights and segments of an even number"),
    (LAYER, {"wide": 1, "held_weights": 1, "segments": 2}, "segments of an even number"),
    (LAYER, {"held_weights": 1, "filters": 32}, "rows are 64 output channels, not 32"),
    (LAYER, {"streamed": 1}, "results of kernels with held_weights"),
    (LAYER, {"turn_rows": 2, "together": 4}, "4 rows together do not divide the 2 of a turn"),
    (LAYER, {"turns": 1, "buffers": 2}, "buffers and reading ahead are for several turns"),
    (LAYER, {"segments": 2, "behind": 1, "turn_rows": 1}, "1 tiles of a turn one behind the other"),
    ("n8h3w20c3k64r3s3", {"turn_rows": 2}, "tiles of 2 rows are twice the 1 there are"),
    (LAYER, {"filters": 48}, "48 output channels of a block; allowed"),
    (LAYER, {"filters": 128}, "do not divide 64"),
    (LAYER, {"turns": 5}, "5 turns of the 4 there are"),
    (LAYER, {"segments": 3}, "3 segments leave one without any of 2 units"),
    (LAYER, {"consumers": 5}, "5 warpgroups leave one without any of 4 turns"),
    ("n8h224w224c3k128r7s7p3u2", {"filters": 128, "turn_rows": 4, "together": 4}, "registers: about"),
    ("n8h224w224c3k64r7s7p3u2", {"consumers": 4, "min_blocks": 5}, "threads: 2560"),
    ("n8h224w224c3k64r7s7p3u2", {"consumers": 4, "segments": 2, "turns": 2, "buffers": 2}, "shared memory"),
    ("n8h999999w999999c3k64r7s7p3u2", {}, "split the batch"),
])  # fmt: skip
def test_what_cannot_be_built_has_a_reason(spec, knobs, reason):
    plan = plan_of(spec, **{"consumers": 2, **knobs})
    assert reason in str(STEM.check(plan))
    with pytest.raises(Unsupported):
        subbyte.build(spec, plan.config)


def test_older_gpus_are_refused():
    assert "only on sm_90a" in str(STEM.hopeless(subbyte.workload(LAYER), ARCHS["sm_80"]))


def first(workload):
    return STEM.plan(workload, next(iter(STEM.candidates(workload, SM_90A))), SM_90A)


def plain(workload):
    return STEM.plan(workload, StemConfig(consumers=2), SM_90A)


@pytest.mark.sample("plain")
@pytest.mark.parametrize(("choose", "times_more"), [(plain, 4), (first, 8)])
def test_more_work_is_estimated_to_take_longer(choose, times_more):
    def least(spec: str) -> float:
        return STEM.estimate(choose(subbyte.workload(spec)))

    times = [least(f"n{n}h224w224c3k64r7s7p3u2") for n in (8, 64, 256)]
    assert times == sorted(times)
    assert times[0] < times[2] / times_more
    assert times[2] < least("n256h224w224c3k128r7s7p3u2")


def test_the_record_has_every_tap_once():
    for spec in (LAYER, "n8h14w20c3k64r3s3p1", "n8h14w20c1k64r5s5p2"):
        plan = plan_of(spec, consumers=1, turn_rows=1)
        for phase in range(plan.strings.phases):
            found = shared_k(plan, phase)
            taps = [value for one in found.words for value in one.bytes if isinstance(value, tuple)]
            w = plan.workload
            assert sorted(taps) == sorted(product(range(w.r), range(w.s), range(w.c)))
            assert found.used == w.r * w.s * w.c
        with pytest.raises(InvalidInput, match="phase"):
            shared_k(plan, plan.strings.phases)


def test_the_command_shows_it(capsys):
    assert main(["explain", "sharedk", LAYER, "--family", "stem"]) == 0
    assert "6 instructions in place of 49: 147 of 192 values count" in capsys.readouterr().out
