"""The kernel on 2:4 weights in spaces, searches, logs and choices, as every other kernel."""

from collections import Counter
from dataclasses import replace

import pytest

import subbyte
from subbyte.errors import InvalidInput
from subbyte.families import config_from_dict, config_from_key
from subbyte.families.wgmma.family import WGMMA
from subbyte.families.wgmma.pipeline.config import PipelineConfig
from subbyte.families.wgmma.single.config import SingleTileConfig
from subbyte.families.wgmma.sparse.config import SparseConfig
from subbyte.kernel.choose import best_known, best_twins
from subbyte.measure.fake import FakeRunner
from subbyte.records.describe import config_at, describe_space
from subbyte.tune import Study, read_log

WEIGHTS = "w4a4:signed-2of4.signed"
KIND = "wgmma-2of4"
FEW = {
    f"n8h6w14c96k128r3s3p1:{WEIGHTS}": {
        "tile_width": (14, 6), "consumers_m": (1, 2), "consumers_rows": (1, 2), "segments": (1, 6), "stages": (3, 9),
        "load_ahead": (2,), "unroll": (1, 2), "in_flight": (1, 3), "stagger": (0,),
        "resident": (0, 1),
    },
    f"n8h7w7c256k128r1s1p0:{WEIGHTS}": {
        "tile_width": (14,), "segments": (1, 4), "stages": (2, 4), "unroll": (1, 4), "in_flight": (1, 2),
        "channel_groups": (1, 4, 8), "row_reuse": (1, 0), "m_iterations": (1, 2), "producers": (1, 2),
        "stagger": (0,), "resident": (0, 1),
    },
}  # fmt: skip
"""Values of every step that a rule may be asked at."""


@pytest.mark.parametrize("spec", FEW)
def test_sorting_at_once_is_the_same_as_asking_each(spec):
    space = replace(subbyte.space(spec, kind=KIND), knobs=FEW[spec])
    reasons = {index: space.check(index) for index in range(len(space))}
    assert space.valid == tuple(index for index, reason in reasons.items() if reason is None)
    assert space.refused == Counter(reason.split(":")[0] for reason in reasons.values() if reason)
    configs = [space.config(index) for index in space.valid]
    assert {config.resident for config in configs} == {0, 1}
    for index, config in zip(space.valid, configs, strict=True):
        assert isinstance(config, SparseConfig)
        assert space.index(config) == index
    assert config_at(describe_space(space), space.valid[0]) == configs[0]
    assert config_from_key(configs[-1].key) == config_from_dict(configs[-1].to_dict()) == configs[-1]


def test_each_space_has_kernels_of_its_own():
    spec = "n8h6w8c64k64r3s3p1"
    sparse, dense = subbyte.space(f"{spec}:{WEIGHTS}", kind=KIND), subbyte.space(f"{spec}:{WEIGHTS}", kind="wgmma")
    assert sparse.index_hash != dense.index_hash
    with pytest.raises(InvalidInput, match="expected a SparseConfig"):
        sparse.index(PipelineConfig())
    with pytest.raises(InvalidInput, match="expected a PipelineConfig or a SingleTileConfig"):
        dense.index(SparseConfig())
    on_dense = subbyte.space(spec, kind=KIND)
    assert on_dense.hopeless == "operands: this kernel multiplies 2:4 sparse weights, not int4; a dense one takes them"
    assert (on_dense.valid, on_dense.refused) == ((), {"operands": len(on_dense)})


def test_a_search_goes_on_from_its_log(tmp_path):
    space = subbyte.space(f"n8h6w8c64k64r3s3p1:{WEIGHTS}", kind=KIND)
    few = replace(space, knobs={**space.knobs, "segments": (2, 6), "stages": (3, 4), "stagger": (0,)})
    path = tmp_path / "log"
    with Study(few, "genetic", seed=1, log=path) as study:
        first = study.run(FakeRunner(), 4)
    with Study(few, "genetic", seed=1, log=path, resume=True) as study:
        assert study.run(FakeRunner(), 6).trials[:4] == first.trials
    found = read_log(path)
    assert len(found.trials) == 6
    assert all(isinstance(few.config(one.index), SparseConfig) for one in found.trials)


def test_a_knob_of_one_kernel_makes_it_that_kernel():
    assert WGMMA.changed(PipelineConfig(tile_width=14), {"resident": "1"}) == SparseConfig(tile_width=14, resident=1)
    assert WGMMA.changed(SparseConfig(resident=1), {"groups_m": 2}) == SparseConfig(consumers_m=2, resident=1)
    assert isinstance(WGMMA.changed(SparseConfig(), {"multicast": 2}), SingleTileConfig)
    assert isinstance(WGMMA.changed(SingleTileConfig(), {"stages": 5}), PipelineConfig)


@pytest.mark.sample("stage4@256", "n8h6w8")
@pytest.mark.parametrize(
    ("name", "kind", "says"),
    [
        ("resnet50.stage4@256", SparseConfig, "; the best dense kernel needs "),
        ("resnet50.stage4@8", SingleTileConfig, "; the best kernel that skips zeros needs "),
        ("resnet18.stage5.down3x3@8", SingleTileConfig, "; it multiplies zeros too: 2:4 kernels are estimated at "),
        ("n256h28w28c96k128r3s3p1", SparseConfig, "chosen by estimate: not measured yet"),
        ("n8h6w8c32k64r3s3p1", PipelineConfig, "too little gain to count on"),
    ],
)
def test_sparse_kernels_are_chosen_where_they_pay(name, kind, says):
    layer = subbyte.workload(f"{name}:{WEIGHTS}")
    config, why = best_known(layer)
    first, second = best_twins(layer)  # what `subbyte bench --sparsity 2:4` measures
    assert first == config
    assert {first.skips_zeros, second.skips_zeros} == {True, False}
    assert type(config) is kind
    assert says in why
    assert "zeros" not in best_known(subbyte.workload(name))[1]
    assert best_twins(subbyte.workload(name)) == []
