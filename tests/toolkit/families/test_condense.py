"""What kernels that find zeros keep, against counting by loops; their keys, spaces, choices and refusals."""

from __future__ import annotations

import ctypes
import subprocess

import numpy as np
import pytest

import subbyte
from subbyte.device import ARCHS
from subbyte.errors import InvalidInput, Unsupported
from subbyte.families import config_from_dict, config_from_key, family_of
from subbyte.families.condense import dense
from subbyte.families.condense.config import CondenseConfig
from subbyte.families.condense.estimate import kept, steps
from subbyte.families.condense.explain.kept import kept_products
from subbyte.families.condense.family import CONDENSE
from subbyte.families.condense.live import kept_of, live_columns, live_rows, steps_of
from subbyte.families.condense.plan import CondensePlan
from subbyte.families.condense.weights import prepare_weights
from subbyte.families.registry import newest_first
from subbyte.kernel import Kernel
from subbyte.kernel.choose import best_known
from subbyte.kernel.default import finding_configs
from subbyte.measure.densities import strewn
from subbyte.numerics.int4 import unpack_words

SM_90A = ARCHS["sm_90a"]


def plan_of(spec: str, **knobs: int) -> CondensePlan:
    return CondensePlan(subbyte.workload(spec), CondenseConfig(**knobs), SM_90A)


@pytest.mark.parametrize(("sharing", "column_tiles"), [(1, 1), (2, 2), (1, 4)])
def test_kept_shares_and_steps_are_what_loops_count(sharing, column_tiles):
    plan = plan_of("gemm72x70x100", chunk=2, sharing=sharing, column_tiles=column_tiles)
    x, w = strewn(plan.workload, 0.08, 3)
    rows, columns = live_rows(plan, x), live_columns(plan, w)
    left = np.zeros((96, 128), bool)
    left[:72, :100] = np.concatenate([x[:, 0, pixel] for pixel in range(9)])  # of a panel: four pixels of 8 images
    right = np.zeros((96, 128), bool)
    right[:70, :100] = w[:, 0, 0] != 0
    order = [8 * (e // 2) + 2 * t + e % 2 for t in range(4) for e in range(8)]  # columns of the four 8-column tiles
    right = np.concatenate([right[32 * panel + np.array(order)] for panel in range(3)])
    shares, taken = [], []
    for a in left.reshape(3, 32, 128):
        for b in right.reshape(-1, 8 * column_tiles, 128):
            live = a.any(0) & b.any(0)
            shares.append(live[:100].mean())
            total = 0
            for chunk in live.reshape(2, 64):
                of_lane = [0] * 32
                for k in np.flatnonzero(chunk):
                    of_lane[(8 * (k % 4) + k % 32 // 4) % (32 // sharing)] += 1
                total += -(-max(of_lane) // sharing)
            taken.append(total)
    assert kept_of(rows, columns) == pytest.approx(np.mean(shares))
    assert steps_of(plan, rows, columns) == pytest.approx(np.mean(taken))


def test_the_expectation_is_that_of_the_specification():
    wanted = {0.5: 0.996, 0.3: 0.94, 0.2: 0.81, 0.1: 0.46, 0.05: 0.19, 0.02: 0.04}
    assert {density: round(kept(density, density, 8, 16), 3 if density == 0.5 else 2) for density in wanted} == wanted
    assert steps(1.0, 16) == steps(1.0, 16, 2) == 16
    assert steps(0.0, 16) == 0
    draw = np.random.default_rng(0)
    for sharing in (1, 2):
        counts = draw.binomial(16 * sharing, 0.3, (4000, 32 // sharing)).max(axis=1)
        assert steps(0.3, 16, sharing) == pytest.approx(np.ceil(counts / sharing).mean(), rel=0.01)


def test_the_record_has_both_beside_each_other():
    found = kept_products(plan_of("gemm4096x256x1024"), "0.05", 1)
    assert [(one.rows, one.columns, one.own) for one in found.tiles] == [
        (32, 8, False),
        (32, 16, True),
        (32, 32, False),
    ]
    for one in found.tiles:
        assert one.counted == pytest.approx(one.expected, rel=0.03)
        assert one.steps == pytest.approx(one.steps_expected, rel=0.03)
        assert one.least <= one.counted <= one.most
    assert "gemm4096x256x1024" in found.text()
    assert found.to_dict()["blocks"] == 32


def test_weights_have_the_filters_of_a_position_together():
    rng = np.random.default_rng(0)
    w = rng.integers(-8, 8, (40, 1, 1, 70)).astype(np.int8)
    values = unpack_words(prepare_weights(w))  # [panels, blocks, positions, 4 words of 8]
    assert values.shape == (2, 3, 32, 32)
    for f, c in ((0, 0), (13, 37), (31, 64), (39, 69), (38, 5)):
        word, half, tile = f % 32 // 8, f % 2, f % 8 // 2
        assert values[f // 32, c // 32, 8 * (c % 4) + c % 32 // 4, 8 * word + 4 * half + tile] == w[f, 0, 0, c]
    assert np.count_nonzero(values) == np.count_nonzero(w)


def test_keys_spaces_and_choices():
    space = subbyte.space("gemm512", kind="condense")
    assert space.valid
    assert space.hopeless is None
    config = space.config(space.valid[-1])
    assert space.index(config) == space.valid[-1]
    assert config_from_key(config.key) == config_from_dict(config.to_dict()) == config
    assert family_of(config) is CONDENSE
    workload = subbyte.workload("gemm512")
    assert newest_first()[-1] is CONDENSE  # nobody gets it who does not ask for it
    assert family_of(best_known(workload, family="condense")[0]) is CONDENSE
    assert family_of(next(finding_configs(workload, "sm_90a"))) is CONDENSE
    with pytest.raises(Unsupported, match="in the condense family: not covered"):
        subbyte.build("resnet50.stage2@8", sparsity="condense")
    for density in (1.5, -0.1, float("nan")):
        with pytest.raises(InvalidInput, match="density="):
            subbyte.compile("gemm512", sparsity="condense", density=density)


def test_dense_is_taken_where_finding_zeros_did_not_pay(monkeypatch):
    found = {"gpu": "some GPU", "products": {"gemm512x512x512": 0.01, "gemm64x64x64": 0.0}}
    monkeypatch.setattr(dense, "measured", lambda: found)
    workload = subbyte.workload("gemm512")
    assert CONDENSE.dense_at(workload, 0.009) is None
    assert "only below density 0.01 on this product" in str(CONDENSE.dense_at(workload, 0.01))
    assert "at no density on this product" in str(CONDENSE.dense_at(subbyte.workload("gemm64"), 0.0))
    assert "on all products measured (2)" in str(CONDENSE.dense_at(subbyte.workload("gemm128"), 0.5))
    assert CONDENSE.dense_at(subbyte.workload("gemm128"), 0.005) is None
    with pytest.raises(InvalidInput, match="it applies to sparsity='condense' only"):
        subbyte.compile(workload, density=0.5)


def test_the_c_header_packs_weights_like_python(tmp_path):
    kernel = Kernel(CONDENSE.plan(subbyte.workload("gemm40x70x100"), CondenseConfig(1, 1, 1, 2, ahead=0), SM_90A))
    parts = CONDENSE.export(kernel.plan)
    text = parts.sections["weights"]
    words = int(np.prod(parts.weight_shape))
    for name, value in {"w_words": f"[{words}]", "k": 70, "c": 100, "stem": "x", "NAME": "X"}.items():
        text = text.replace(f"@{name}@", str(value))
    (tmp_path / "x.c").write_text(
        "#include <stddef.h>\n#include <stdint.h>\nenum { X_OK, X_BAD_VALUE };\n"
        f"#define X_WEIGHT_WORDS {words}\n"
        "static uint32_t x_at(int8_t v, size_t c) { return (uint32_t)(v & 15) << (4 * (c % 8)); }\n"
        f"{text}\nint pack(const int8_t *w, uint32_t *o) {{ return x_prepare_weights(w, o); }}\n"
    )
    made = tmp_path / "x.so"
    subprocess.run(["cc", "-Wall", "-Werror", "-shared", "-fPIC", "-o", made, tmp_path / "x.c"], check=True)
    w = np.random.default_rng(0).integers(-8, 8, (70, 1, 1, 100)).astype(np.int8)
    found = np.zeros(words, np.uint32)
    pack = ctypes.CDLL(str(made)).pack
    assert pack(w.ctypes.data_as(ctypes.c_void_p), found.ctypes.data_as(ctypes.c_void_p)) == 0
    assert np.array_equal(found, prepare_weights(w).ravel())
    w[69, 0, 0, 99] = 8
    assert pack(w.ctypes.data_as(ctypes.c_void_p), found.ctypes.data_as(ctypes.c_void_p)) == 1


@pytest.mark.parametrize(("spec", "knobs", "reason"), [
    ("gemm512", {"column_tiles": 3}, "column_tiles is 1, 2 or 4"),
    ("gemm512", {"chunk": 32, "ahead": 0, "sharing": 1}, "divisibility"),
    ("gemm2048", {"chunk": 20, "sharing": 2}, "do not fit a word of 32 bits"),
    ("gemm512", {"chunk": 16}, "same program"),
    ("gemm4096", {"row_warps": 8, "col_warps": 8}, "threads"),
    ("gemm4096", {"chunk": 32, "sharing": 1}, "shared memory"),
    ("n8h6w8c64k64r3s3p1", {}, "1x1 layers of stride 1"),
    ("n8h6w8c64k64r1s1u2", {}, "1x1 layers of stride 1"),
    ("gemm512:w1a1", {}, "operands"),
    ("gemm512:w4a4:signed-2of4.signed", {}, "operands"),
])  # fmt: skip
def test_what_cannot_be_built_has_a_reason(spec, knobs, reason):
    plan = plan_of(spec, **knobs)
    assert reason in str(CONDENSE.check(plan))
    with pytest.raises(Unsupported):
        subbyte.build(spec, CondenseConfig(**knobs))


def test_older_gpus_and_wrong_densities_are_refused():
    assert "sm_80" in str(CONDENSE.hopeless(subbyte.workload("gemm512"), ARCHS["sm_75"]))
    with pytest.raises(InvalidInput, match=r"density '2': expected a share"):
        kept_products(plan_of("gemm2048"), "2")
