"""``subbyte workloads``."""

import json

import pytest

from subbyte.cli.main import main
from subbyte.workload import LAYERS


def test_all_networks_by_default(capsys):
    assert main(["workloads"]) == 0
    lines = capsys.readouterr().out.splitlines()
    assert lines[0].split() == ["workload", "spec", "layers", "operations", "bytes", "kernels"]
    assert [line.split()[0] for line in lines[1:]] == [f"{name}@8" for name in LAYERS]


def test_a_refused_layer_says_why(capsys):
    assert main(["workloads", "alexnet.conv1"]) == 0
    assert "kernel size 11x11" in capsys.readouterr().out


def test_types_of_operands_are_shown_where_they_are_not_int4(capsys):
    assert (
        main(["workloads", "resnet18@8", "resnet50.stage2@8:w1a2", "n1h4w4c128k64r1s1p0:w6a6", "gemm64x1024x512"]) == 0
    )
    head, *lines = capsys.readouterr().out.splitlines()
    assert head.split() == ["workload", "spec", "operands", "layers", "operations", "bytes", "kernels"]
    found = {line.split()[0]: line for line in lines}
    assert "bipolar1 x uint2" in found["resnet50.stage2@8:w1a2"]
    assert (
        "yes (the bmma family on sm_75, sm_80, sm_86, sm_89, the bits family on sm_90a;"
        in found["resnet50.stage2@8:w1a2"]
    )
    assert "yes (the popc family on sm_75" in found["n1h4w4c128k64r1s1p0:w6a6"]
    assert found["gemm64x1024x512"].split()[1:5] == ["gemm64x1024x512", "int4", "x", "int4"]
    assert found["gemm64x1024x512"].endswith("yes")


@pytest.mark.parametrize(
    ("command", "why"),
    [
        ("build", "output: uint6 has 63 thresholds; at most 15"),
        ("run", "output: uint6 has 63 thresholds; at most 15"),
        ("tune --runner fake", "output: uint6 has 63 thresholds; at most 15"),
    ],
)
def test_operands_that_no_kernel_computes_are_refused_in_one_sentence(command, why, capsys):
    assert main([*command.split(), "n1h4w4c128k64r1s1p0:w6a6"]) == 2
    out, err = capsys.readouterr()
    assert out == ""
    assert len(err.splitlines()) == 1
    assert "w6a6" in err
    assert why in err


def test_json(capsys):
    assert main(["workloads", "resnet50.stage2@8", "n1h9w9c3k5r3s3u2", "--json"]) == 0
    out, err = capsys.readouterr()
    assert err == ""
    found = json.loads(out)
    assert (found["schema"], found["command"]) == (1, "workloads")
    first, second = found["workloads"]
    assert first == {
        "name": "resnet50.stage2@8", "spec": "n8h56w56c64k64r3s3p1", "kind": "conv", "operands": "int4 x int4",
        "count": 3, "input": [8, 56, 56, 64],
        "weights": [64, 3, 3, 64], "output": [8, 56, 56, 64], "pad": 1, "stride": 1, "dilation": 1,
        "operations": 1849688064, "bytes": 1624064, "covered": True, "reason": None,
    }  # fmt: skip
    assert (second["name"], second["output"], second["count"]) == ("n1h9w9c3k5r3s3p0u2", [1, 4, 4, 5], 1)


def test_networks_keep_their_shared_shapes(capsys):
    assert main(["workloads", "resnet18", "resnet50", "--json"]) == 0
    names = [row["name"] for row in json.loads(capsys.readouterr().out)["workloads"]]
    assert {"resnet18.stage2@8", "resnet50.stage2@8"} <= set(names)
    assert len(names) == len(set(names)) == 34
