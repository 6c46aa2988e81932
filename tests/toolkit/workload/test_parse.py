"""Every text that names a workload, and the ones that do not."""

import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

import subbyte
from subbyte.errors import InvalidInput
from subbyte.workload import LAYERS, ConvWorkload, workload, workloads

number = st.integers(1, 40)


@given(st.tuples(*[number] * 7), st.integers(0, 9), st.integers(1, 4), st.integers(1, 4))
def test_specs_parse_back(sizes, pad, stride, dilation):
    _, h, w, _, _, r, s = sizes
    assume((r - 1) * dilation < h + 2 * pad and (s - 1) * dilation < w + 2 * pad)
    wl = ConvWorkload(*sizes, pad, stride, dilation)
    assert workload(wl.spec) == wl
    assert workload(f" {wl.spec.upper()} ") == wl


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("n1h9w8c3k5r3s2", ConvWorkload(1, 9, 8, 3, 5, 3, 2)),
        ("n1h9w8c3k5r3s2u2", ConvWorkload(1, 9, 8, 3, 5, 3, 2, stride=2)),
        ("n1h9w8c3k5r3s2p1d2", ConvWorkload(1, 9, 8, 3, 5, 3, 2, 1, dilation=2)),
        ("resnet50.stage2", LAYERS["resnet50.stage2"].workload(8)),
        ("ResNet50.Stage2@3", LAYERS["resnet50.stage2"].workload(3)),
    ],
)
def test_texts(text, expected):
    assert workload(text) == expected


def test_names_carry_their_batch_and_objects_pass():
    wl = workload("vgg16.conv5_1")
    assert wl.name == "vgg16.conv5_1@8"
    assert workload(wl) is wl


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("resnet50.stag2@8", "resnet50.stage2"),
        ("resnet50.stage9", "did you mean resnet50.stage"),
        ("resnt50", "did you mean resnet50"),
        ("", "unknown workload ''"),
        ("resnet50@8", "is a network of 23 distinct convolutions"),
        ("resnet50.stage2@", "positive integer"),
        ("resnet50.stage2@0", "positive integer"),
        ("resnet50.stage2@-1", "positive integer"),
        ("resnet50.stage2@8@8", "positive integer"),
        ("n8h56c64", "expected the order n h w c k r s"),
        ("n8h56w56c64k64s3r3", "expected the order n h w c k r s"),
        ("n8h56w56c64k64r3s3d1u1", "expected the order"),
        ("n8h56w56c64k64r3s3p1@8", "gives the batch as n"),
        ("n0h56w56c64k64r3s3", "workload n=0"),
        ("n1h2w2c1k1r3s3", "does not fit"),
        (8, "workload is a int"),
        (None, "workload is a NoneType"),
    ],
)
def test_refused_texts_say_what_is_expected(text, words):
    with pytest.raises(InvalidInput) as error:
        workload(text)
    assert words in str(error.value)


def test_workloads_of_a_network_and_of_a_list():
    both = workloads(["resnet50@2", "resnet50.stage3@2", "n2h28w28c128k128r3s3p1", workload("resnet50.conv1@2")])
    assert both == workloads("resnet50@2")
    assert len(both) == 23
    assert workloads("resnet50.stage2") == [workload("resnet50.stage2@8")]
    assert workloads(workload("resnet50.stage2")) == [workload("resnet50.stage2@8")]
    assert workloads([]) == []
    with pytest.raises(InvalidInput, match="did you mean"):
        workloads(["resnet50", "resnet51"])


def test_they_show_themselves_in_a_notebook():
    odd = ConvWorkload(1, 1, 1, 1, 1, 1, 1, name="<b>")
    assert "&lt;b&gt;" in odd._repr_html_()
    assert "&lt;b&gt;" in workloads([odd])._repr_html_()
    assert "1,849,688,064" in workload("resnet50.stage2")._repr_html_()


def test_the_package_and_the_function_share_a_name():
    for _ in range(2):
        assert subbyte.workload("resnet50.stage2@8") == workload("resnet50.stage2@8")
