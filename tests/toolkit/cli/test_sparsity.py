"""``--sparsity 2:4`` on build, run, bench and tune: the workload becomes the 2:4 one."""

import json

import pytest

import subbyte
from subbyte.cli.main import main
from subbyte.errors import InvalidInput
from subbyte.families import config_from_key
from subbyte.families.wgmma.blocks.config import BlocksConfig
from subbyte.families.wgmma.pipeline.config import PipelineConfig
from subbyte.families.wgmma.sparse.config import SparseConfig
from subbyte.kernel.choose import best_known, best_twins
from subbyte.workload.sparsity import text_with_sparsity, with_sparsity

LAYER = "n8h6w8c64k64r3s3p1"
TYPES = "w4a4:signed-2of4.signed"


def test_a_sparse_kernel_runs_exactly_on_the_cpu(capsys):
    knobs = ["tile_width=8", "tile_rows=1", "segments=1", "stages=4", "in_flight=1", "stagger=1", "resident=0"]
    command = ["run", LAYER, "--sparsity", "2:4", "--device", "emulator", "--json", "--set", *knobs]
    assert main(command) == 0
    found = json.loads(capsys.readouterr().out)
    assert found["workload"] == f"{LAYER}:{TYPES}"
    assert found["atom"] == "s8.wgmma.sp.m64n64k64"
    assert found["check"] == {**found["check"], "ok": True, "elements": 8 * 6 * 8 * 64}


def test_searches_take_networks_and_the_space_of_2of4_kernels(capsys):
    command = ["tune", LAYER, "--sparsity", "2:4", "--runner", "fake", "--trials", "3",
               "--strategy", "random", "--json"]  # fmt: skip
    assert main(command) == 0
    (row,) = json.loads(capsys.readouterr().out)["workloads"]
    assert row["workload"] == f"{LAYER}:{TYPES}"
    assert row["best_config"]["resident"] in (0, 1)
    assert text_with_sparsity("resnet18@8", "2:4") == f"resnet18@8:{TYPES}"


def test_a_search_reaches_the_fastest_measured_2of4_kernels():
    """Two producers and weights of all kernel rows ahead, which the estimate does not look at."""
    fastest = {"resnet50.stage5@64": "wg24-tw8-tr4-cm1-sg2-cg4-st3-rr3-la1-un2-sta0-pr2-res2",
               "resnet50.stage5@256": "wg24-tw7-tr2-cm1-cr2-sg1-cg8-st3-rr3-la1-sta0-px4-ls1-res2"}  # fmt: skip
    for cell, key in fastest.items():
        space = subbyte.space(f"{cell}:{TYPES}", "sm_90a", "wgmma-2of4")
        config = config_from_key(key)
        assert space.config(space.index(config)) == config
        assert space.check(config) is None
    assert subbyte.space(f"n8h6w6c64k64r1s1p0:{TYPES}", kind="wgmma-2of4").knobs["resident"] == (0, 1)


def test_a_kernel_of_live_blocks_runs(capsys):
    assert main(["run", LAYER, "--sparsity", "blocks:0.25", "--device", "emulator", "--json"]) == 0
    found = json.loads(capsys.readouterr().out)
    assert found["workload"] == f"{LAYER}:w4a4:signed-blocks25.signed"
    assert found["check"] == {**found["check"], "ok": True, "elements": 8 * 6 * 8 * 64}


@pytest.mark.deep
def test_a_kernel_of_live_blocks_is_chosen_and_searched(capsys):
    command = ["tune", LAYER, "--sparsity", "blocks:0.25", "--runner", "fake"]
    assert main([*command, "--trials", "3", "--strategy", "random", "--json"]) == 0
    (row,) = json.loads(capsys.readouterr().out)["workloads"]
    assert row["best_config"]["live_pairs"] in (1, 2, 3, 4)
    layer = with_sparsity(subbyte.workload("resnet50.stage3@256"), "blocks:0.10")
    assert layer.label == "resnet50.stage3@256:w4a4:signed-blocks10.signed"
    first, second = best_twins(layer)
    assert (type(first), second.skips_zeros) == (BlocksConfig, False)
    dense, why = best_known(with_sparsity(layer, "blocks:1"))
    assert type(dense) is PipelineConfig
    assert "zeros" in why


@pytest.mark.deep
def test_between_measured_shares_the_next_larger_ones_kernel_is_taken():
    layer = subbyte.workload("resnet50.stage4@256")
    measured = best_known(with_sparsity(layer, "blocks:0.5"))[0]
    config, why = best_known(with_sparsity(layer, "blocks:0.3"))
    assert config == measured
    assert "us measured at 25 % and " in why
    assert "us measured at 50 % live blocks" in why


@pytest.mark.deep
def test_a_layer_with_shares_between_the_measured_ones_may_stay_dense():
    small = subbyte.workload("resnet50.stage5@8")
    dense, why = best_known(with_sparsity(small, "blocks:0.4"))
    assert not dense.skips_zeros
    assert "it multiplies zeros too: " in why
    assert best_known(with_sparsity(small, "blocks:0.05"))[0] == best_known(with_sparsity(small, "blocks:0.1"))[0]


def test_workloads_keep_their_names():
    named = with_sparsity(subbyte.workload("resnet50.stage2@8"), "2:4")
    assert named == subbyte.workload(f"resnet50.stage2@8:{TYPES}")
    assert named.label == f"resnet50.stage2@8:{TYPES}"
    assert with_sparsity(named, "2:4") == named
    assert with_sparsity(subbyte.workload(LAYER), "dense").spec == LAYER
    assert with_sparsity(subbyte.gemm(64, 96, 128), "2:4") == subbyte.gemm(64, 96, 128, TYPES)
    assert subbyte.build(LAYER, SparseConfig(tile_width=8), sparsity="2:4").workload.spec == f"{LAYER}:{TYPES}"


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["run", LAYER, "--sparsity", "3:4"], "sparsity='3:4': did you mean 2:4?"),
        (["build", f"{LAYER}:w1a1", "--sparsity", "2:4"], "bipolar values are never 0"),
        (["tune", "resnet99", "--sparsity", "2:4", "--runner", "fake"], "unknown workload"),
        (["run", LAYER, "--sparsity", "blocks"], "the share of live blocks from 0 to 1 in whole hundredths"),
        (["build", LAYER, "--set", "live_pairs=2"], "this kernel multiplies weights with blocks of zeros, not int4"),
        (["bench", "atoms", "--sparsity", "2:4"], "--sparsity applies to WORKLOADs"),
        (["build", LAYER, "--set", "resident=1"], "this kernel multiplies 2:4 sparse weights, not int4"),
    ],
)
def test_wrong_requests_end_in_one_sentence(arguments, message, capsys):
    assert main(arguments) == 2
    said = capsys.readouterr().err
    assert message in said
    assert len(said.strip().splitlines()) == 1


def test_weights_that_are_not_2of4_are_refused_with_their_index():
    kernel = subbyte.compile(LAYER, sparsity="2:4")
    x, w, requant = subbyte.kernel.execute.random_operands(kernel, 0)
    w[5, 1, 2, 8:12] = [1, 0, 2, 3]
    with pytest.raises(InvalidInput, match=r"w\[5, 1, 2, 8:12\] has 3 values other than 0: expected at most 2 of 4"):
        kernel.run(x, w, requant, "emulator")


@pytest.mark.parametrize("pattern", ["2:4", "blocks:0.25"])
def test_densities_do_not_go_with_patterns(pattern, capsys):
    assert main(["run", LAYER, "--sparsity", pattern, "--density", "0.1", "--device", "emulator"]) == 2
    assert f"--density 0.1: does not apply to weights of {pattern}; leave it out" in capsys.readouterr().err
