"""Workloads that differ in the types of their operands alone, or in being a matrix product, are never mistaken for one
another: not by caches of kernels, spaces, logs, landscapes, replay, nor by what is recommended."""

import gzip
import hashlib
import json
from dataclasses import replace

import pytest

from subbyte.device.arch import arch
from subbyte.errors import BrokenRecord, InvalidInput, Unsupported
from subbyte.families.registry import families
from subbyte.families.search import space, usual_kind
from subbyte.kernel.build import _plan_key
from subbyte.kernel.coverage import covered
from subbyte.kernel.recommended import recommendation
from subbyte.measure.fake import FakeRunner
from subbyte.measure.replay import ReplayRunner
from subbyte.records.describe import describe_workload, workload_from_dict
from subbyte.records.landscape import find_landscape
from subbyte.tune import Landscape, Study, read_log, tune
from subbyte.workload import gemm, workload

SPEC = "n8h14w14c64k64r3s3p1"
INT4 = workload(SPEC)
SPARSE = "w4a4:signed-2of4.signed"
OTHERS = [workload(f"{SPEC}:{types}") for types in ("w1a2", "w1a1", "w1a1:plus", "w4a4", SPARSE,
                                                     "w4a4o2:signed.signed.signed")]  # fmt: skip
PRODUCTS = [gemm(64, 96, 128), gemm(64, 96, 128).convolution, gemm(64, 96, 128, "w1a2")]
DIFFERENT = [INT4, *OTHERS, *PRODUCTS]


def test_headers_say_the_types_and_the_kind():
    described = [describe_workload(one) for one in DIFFERENT]
    assert [workload_from_dict(json.loads(json.dumps(one))) for one in described] == DIFFERENT
    assert len({json.dumps(one) for one in described}) == len({one["spec"] for one in described}) == len(DIFFERENT)
    sizes = {"n": 8, "h": 14, "w": 14, "c": 64, "k": 64, "r": 3, "s": 3, "pad": 1, "stride": 1, "dilation": 1}
    assert described[0] == {"spec": SPEC, **sizes, "name": ""}  # as before there were types
    assert described[1] == {"spec": f"{SPEC}:w1a2", **sizes, "name": "", "precision": "w1a2"}
    assert described[-1]["kind"] == "matmul"


@pytest.mark.parametrize(
    ("fields", "says"),
    [
        ({"precision": "w1"}, "operand types 'w1'"),
        ({"precision": 4}, "operand types 4"),
        ({"kind": "mat"}, "workload kind='mat': did you mean matmul"),
        ({"kind": ["conv"]}, "workload kind"),
        ({"kind": "matmul"}, "not a matrix product"),
    ],
)
def test_headers_with_impossible_types_are_refused(fields, says):
    with pytest.raises(InvalidInput, match=says):
        workload_from_dict({**describe_workload(INT4), **fields})


@pytest.mark.parametrize("family", families().values(), ids=lambda one: one.name)
def test_spaces_and_cached_texts_differ(family):
    target, kind = arch("sm_90a"), next(iter(family.kinds))
    spaces = [family.space(one, target, kind, {}) for one in DIFFERENT]
    assert len({one.index_hash for one in spaces}) == len(DIFFERENT)
    config = family.configurations[0]()
    plans = [family.plan(one, config, target) for one in DIFFERENT]
    assert len({_plan_key(plan) for plan in plans}) == len(DIFFERENT)
    if family.covers(INT4, target) is not None or family.special:  # other operands; some layers
        return
    reasons = [(family.hopeless(one, target), family.covers(one, target), family.check(plan))
               for one, plan in zip(DIFFERENT, plans, strict=True)]  # fmt: skip
    taken = {"", SPARSE}  # zeros are multiplied like any other value
    for one, found in zip(DIFFERENT, reasons, strict=True):
        kinds = ("int4 x int4", "int4 x int4, or with uint4 activations or outputs")
        said = [f"operands: these kernels compute {kind}, not {one.precision.text} ({one.precision})" for kind in kinds]
        assert (found in [(text,) * 3 for text in said]) == (one.precision.text not in taken)
        assert (found[:2] == (None, None)) == (one.precision.text in taken)
    assert reasons[DIFFERENT.index(OTHERS[4])] == reasons[0]
    assert covered(OTHERS[0], target, family.name) == reasons[1][0]
    assert {one.hopeless for one in spaces} == {None, *(reason[0] for reason in reasons)}


def test_bit_planes_are_covered_by_their_family_alone():
    found = {one.spec: covered(one, "sm_90a", "bits") for one in DIFFERENT}
    planes = {one.spec for one in (*OTHERS[:3], PRODUCTS[2])}
    assert planes <= {spec for spec, reason in found.items() if reason is None}
    for spec in (SPEC, PRODUCTS[0].spec):
        assert found[spec].startswith("operands: bits kernels compute bit planes")
    assert "is sparse" in found[OTHERS[4].spec]
    assert all(reason is None or len(reason.splitlines()) == 1 for reason in found.values())


def test_a_space_of_other_operands_holds_nothing():
    for kind in ("paper", "extended", "warpgroup"):
        made = space(OTHERS[0], "sm_90a", kind)
        assert "operands: these kernels" in made.hopeless
        assert len(made.valid) == 0
        assert set(made.refused) == {"operands"}


@pytest.mark.parametrize(
    ("layer", "target", "kind"),
    [
        (SPEC, "sm_90a", "paper"),
        (SPEC, "sm_75", "paper"),
        (f"{SPEC}:w1a1", "sm_90a", "bits"),
        (f"{SPEC}:w2a3", "sm_90a", "bits"),
        (f"{SPEC}:w1a2", "sm_80", "bmma"),
        (f"{SPEC}:{SPARSE}", "sm_90a", "wgmma-2of4"),
        ("gemm8192:w1a1", "sm_90a", "bits-ring"),
        ("n8h2w2c3k8r1s1:w1a1", "sm_90a", "bits"),
    ],
)
def test_a_layer_is_searched_in_a_space_of_its_own_operands(layer, target, kind):
    one = workload(layer)
    assert usual_kind(one, arch(target)) == kind
    assert space(one, target).kind == kind


def test_a_tuning_takes_each_layers_own_space():
    report = tune([INT4, OTHERS[1]], "fake", trials=2)
    assert [record.header["space"]["kind"] for record in report.records] == ["paper", "bits"]
    with pytest.raises(Unsupported, match=r"the bits family covers it: kind='bits' \(--space bits\)"):
        tune(OTHERS[1], "fake", trials=2, kind="paper")


def test_a_log_is_not_resumed_for_other_types(make_space, tmp_path):
    path = tmp_path / "log"
    with Study(make_space(OTHERS[0]), seed=3, log=path) as study:
        study.run(FakeRunner(), 3)
    assert read_log(path).workload == OTHERS[0]
    for other in (INT4, OTHERS[1]):
        with pytest.raises(InvalidInput, match=f"its workload is {SPEC}:w1a2, this study's is {other.spec};"):
            Study(make_space(other), seed=3, log=path, resume=True)
    with Study(make_space(OTHERS[0]), seed=3, log=path, resume=True) as study:
        assert len(study.run(FakeRunner(), 5).trials) == 5


def landscape_of(made):
    indices = list(range(0, len(made), 9))
    results = FakeRunner().run(made.workload, [made.config(index) for index in indices])
    return Landscape.from_results(made, dict(zip(indices, results, strict=True)), {"name": "GPU"}, {}, "record")


def test_landscapes_are_kept_apart(make_space, tmp_path, monkeypatch):
    monkeypatch.setattr("subbyte.records.landscape_file.SHIPPED", tmp_path)
    named = replace(INT4, name="toy@8")
    other = replace(OTHERS[0], name="toy@8:w1a2")
    made = [landscape_of(make_space(one)) for one in (named, other)]
    for one in made:
        one.save(tmp_path / f"{one.name}.json.gz")
    assert [one.name for one in made] == ["toy@8.paper.sm_90a", "toy@8-w1a2.paper.sm_90a"]
    assert [Landscape.load(one.name).workload for one in made] == [named, other]
    assert (find_landscape(INT4), find_landscape(OTHERS[0])) == tuple(one.name for one in made)
    assert find_landscape(OTHERS[1]) is None
    assert made[0].best[1].microseconds != made[1].best[1].microseconds  # made up from the spec
    runner = ReplayRunner(made[0])
    with pytest.raises(InvalidInput, match=f"is of {SPEC}, not of {SPEC}:w1a2"):
        runner.run(other, [made[0].config(made[0].best[0])])


@pytest.mark.parametrize(
    ("workload_fields", "says"),
    [
        ({"precision": "w1a2"}, f"the spec of its sizes, {SPEC}:w1a2"),
        ({"spec": f"{SPEC}:w1a2"}, f"the spec of its sizes, {SPEC}"),
        ({"precision": "w1a2", "spec": f"{SPEC}:w1a1"}, f"the spec of its sizes, {SPEC}:w1a2"),
        ({"precision": 3}, "operand types 3"),
        ({"kind": "matmul"}, "not a matrix product"),
    ],
)
def test_a_landscape_whose_types_and_spec_disagree_is_refused(make_space, tmp_path, workload_fields, says):
    path = landscape_of(make_space(INT4)).save(tmp_path / "toy.json.gz")
    lines = gzip.decompress(path.read_bytes()).splitlines(keepends=True)
    header = json.loads(lines[0])
    header["workload"] |= workload_fields
    content = b"".join([json.dumps(header).encode() + b"\n", *lines[1:-1]])
    content += json.dumps({"sha256": hashlib.sha256(content).hexdigest()}).encode() + b"\n"
    path.write_bytes(gzip.compress(content))
    with pytest.raises(BrokenRecord) as error:
        Landscape.load(path)
    assert says in str(error.value)


def test_what_is_recommended_for_int4_is_for_int4_alone():
    stage = workload("resnet50.stage2@8")
    assert recommendation(stage.spec, "sm_90a") is not None
    assert recommendation(f"{stage.spec}:w1a2", "sm_90a") is None
    assert find_landscape(stage) is not None
    assert find_landscape(workload("resnet50.stage2@8:w1a2")) is None
