"""What was recorded with spaces of version 2: each combination of its four knobs is one configuration of today."""

import gzip
import json
import warnings
from itertools import product
from pathlib import Path

import pytest

import subbyte
from subbyte.device.arch import arch
from subbyte.errors import InvalidInput, Unsupported
from subbyte.families.registry import config_from_dict, config_from_key, family_named
from subbyte.families.wgmma import second
from subbyte.families.wgmma.blocks.config import BlocksConfig
from subbyte.families.wgmma.former import FormerPipelineConfig
from subbyte.families.wgmma.former_space import SecondSpace
from subbyte.families.wgmma.pipeline.config import PIXELS, PipelineConfig
from subbyte.families.wgmma.single.config import SingleTileConfig
from subbyte.families.wgmma.sparse.config import SparseConfig
from subbyte.measure.fake import FakeRunner
from subbyte.records.describe import config_at
from subbyte.records.landscape_space import fit, space_today
from subbyte.records.result import Measured
from subbyte.tune import read_log
from subbyte.tune.study import Study
from subbyte.workload import workload

FAMILY, H200 = family_named("wgmma"), arch("sm_90a")
DATA = Path(__file__).resolve().parent.parent / "data"
ROWS, POINTWISE = "n8h7w7c64k64r3s3p1", "n16h8w8c64k64r1s1p0u2"
USUAL = {PipelineConfig: "", SparseConfig: "-res0", BlocksConfig: "-lp2"}


def key_of(kind: type[PipelineConfig], launch: int, flatten: int, groups: int, half: int) -> str:
    """As version 2 wrote it, but for producers, which stood between."""
    parts = [f"{name}{value}" for name, value, usual in (
        ("pdl", launch, 1), ("fl", flatten, 0), ("ig", groups, 1), ("hr", half, 0)) if value != usual]  # fmt: skip
    return "-".join([f"{kind.prefix}tw8-tr1-cm1-sg1-st4", *parts]) + USUAL[kind]


@pytest.mark.parametrize("kind", USUAL)
def test_each_combination_is_one_configuration_of_today_and_back(kind):
    """Or has a name, and one sentence for whoever wants to build it."""
    there, gone, never = {}, [], []
    for launch, flatten, groups, half in product((1, 0), (0, 1, 2), (1, 2, 3, 4), (0, 1)):
        key = key_of(kind, launch, flatten, groups, half)
        found = config_from_key(key)
        fields = {"dependent_launch": launch, "flatten": flatten, "image_groups": groups, "half_rows": half}
        then = {**second.BEFORE[kind].from_key(key).to_dict(), **fields}
        assert config_from_dict(then) == found
        if type(found) is kind:
            assert second.before(found).key == key
            assert second.before(found).to_dict() == then
            there[found] = (flatten, groups, half)
            continue
        assert isinstance(found, FormerPipelineConfig)
        assert (found.key, found.to_dict(), FAMILY.owns(found)) == (key, then, True)
        assert type(FAMILY.stand_in(found)) is kind
        with pytest.raises(Unsupported, match=r"cannot be built: (retired: \w+=\d is of a|tile: flatten goes)") as said:
            subbyte.build(ROWS, found)
        (gone if "retired" in str(said.value) else never).append(found)
    assert sorted(there.values()) == sorted(PIXELS.values())
    assert [found.pixels for found in sorted(there, key=lambda one: one.pixels)] == list(range(len(PIXELS)))
    assert len(gone) == 24 + 2  # without a dependent launch, and three groups of images
    assert len(never) == 2 * 7  # flattened with groups or half rows


def test_schedules_are_what_they_were():
    """So are the texts: geometry, memory and emitter ask the schedule alone."""
    for (flatten, groups, half), pixels in zip(PIXELS.values(), range(len(PIXELS)), strict=True):
        made = PipelineConfig(pixels=pixels).schedule
        was = made.flatten, made.flat_batch, made.image_groups, made.half_rows, made.dependent_launch
        assert was == (int(flatten == 1), int(flatten == 2), groups, half, 1)


def test_values_may_be_named_and_given_by_their_names_of_then():
    base = PipelineConfig(tile_width=8, segments=7, stages=3)
    joined = base.with_values({"pixels": "Flat_Batch"})
    assert joined.key == "wgp-tw8-tr1-cm1-sg7-st3-px2"
    assert FAMILY.changed(base, {"flatten": "2"}) == FAMILY.changed(base, {"joined": 1}) == joined
    changed = FAMILY.changed(base, {"image_groups": 2, "half_rows": 1, "stages": 6})
    assert changed == PipelineConfig(tile_width=8, segments=7, stages=6, pixels=5)
    assert FAMILY.changed(base, {"dependent_launch": 1}) == base
    assert FAMILY.changed(base, {"dependent_launch": 0, "stages": 6}).key == "wgp-tw8-tr1-cm1-sg7-st6-pdl0"
    single = SingleTileConfig(tile_width=8, segments=7, multicast=2, dependent_launch=0)
    assert FAMILY.changed(base, {"dependent_launch": 0, "multicast": 2}) == single
    assert config_from_dict(single.to_dict()) == config_from_key(single.key) == single
    sparse = SparseConfig(tile_width=8, resident=1)
    assert FAMILY.changed(sparse, {"image_groups": 4}) == SparseConfig(tile_width=8, resident=1, pixels=6)
    with pytest.warns(DeprecationWarning, match="flatten: a field of earlier versions"):
        assert joined.flatten == 2
    with pytest.warns(DeprecationWarning, match="image_groups: a field of earlier versions"):
        assert changed.image_groups == 2
    with pytest.warns(DeprecationWarning, match="dependent_launch: a field of earlier versions"):
        assert base.dependent_launch == 1
    with pytest.raises(InvalidInput, match="pixels='flatbatch': did you mean flat_batch"):
        base.with_values({"pixels": "flatbatch"})
    with pytest.raises(InvalidInput, match="pixels=8: allowed: 0 = rows, 1 = flat, 2 = flat_batch"):
        PipelineConfig(pixels=8)
    with pytest.raises(InvalidInput, match="flatten=3"):
        FAMILY.changed(base, {"flatten": 3})


KNOBS = {"tile_width": (8,), "segments": (4, 7), "stages": (3, 4), "load_ahead": (2, 1), "stagger": (0,),
         "dependent_launch": (1, 0), "multicast": (0, 1), "weights_ahead": (0, 3)}  # fmt: skip
PAIRED = {"tile_width": (7,), "consumers_rows": (1, 2), "segments": (4, 7), "stages": (3, 4), "load_ahead": (1,),
          "stagger": (0,), "image_groups": (1, 2), "half_rows": (0, 1)}  # fmt: skip


@pytest.mark.parametrize(("layer", "lists"), [(ROWS, KNOBS), ("n16h7w7c64k64r3s3p1", PAIRED)])
def test_an_index_of_a_recorded_space_means_what_it_meant(layer, lists):
    made = FAMILY.recorded_space(workload(layer), H200, "wgmma", lists, FAMILY.held({}), "recorded")
    assert isinstance(made, SecondSpace)
    assert made.hash == "recorded"
    valid = [made.config(index) for index in made.valid]
    assert len(set(valid)) == len(valid) >= 4
    for index in range(len(made)):
        values, config = made.values_at(index), made.config(index)
        own = SingleTileConfig if values.get("multicast") else FormerPipelineConfig
        then = own(**{name: value for name, value in values.items() if name in own.rows}, **made.fixed)
        assert config == (then if own is SingleTileConfig else config_from_key(then.key))
        reason = made.check(index)
        if not (reason or "").startswith("same program"):
            assert made.index(config) == index
        if isinstance(config, FormerPipelineConfig) and not reason.startswith("same program"):
            assert reason == "retired: dependent_launch=0 is of a knob that is no more"
            with pytest.raises(Unsupported, match="retired"):
                made.plan(index)
    assert sum(made.refused.values()) + len(made.valid) == len(made)
    with pytest.raises(InvalidInput, match="stages=9: not in the wgmma space"):
        made.index(PipelineConfig(tile_width=lists["tile_width"][0], segments=4, stages=9, load_ahead=1, stagger=0))


def test_todays_spaces_are_none_of_version_2():
    for layer in (ROWS, POINTWISE, "resnet50.stage5@256", "resnet50.stage4@64"):
        space = subbyte.space(layer, kind="wgmma")
        assert not FAMILY.earlier(space.kind, space.knobs)
    for kind, types in (("wgmma-2of4", "signed-2of4"), ("wgmma-blocks", "signed-blocks50")):
        space = subbyte.space(f"{ROWS}:w4a4:{types}.signed", kind=kind)
        assert not FAMILY.earlier(kind, space.knobs)
        assert FAMILY.earlier(kind, {**space.knobs, "dependent_launch": (1, 0)})


def unpacked(spec: str, folder: Path) -> Path:
    """A log that version 2 wrote."""
    path = folder / f"{spec}.jsonl"
    path.write_bytes(gzip.decompress((DATA / f"wgmma-version2-{spec}.jsonl.gz").read_bytes()))
    return path


@pytest.mark.parametrize("spec", [ROWS, POINTWISE])
def test_a_log_of_then_is_read(spec, tmp_path):
    path = unpacked(spec, tmp_path)
    header, *lines = map(json.loads, path.read_text().splitlines())
    log = read_log(path)
    assert len(log.trials) == len(lines) == 14
    for line, trial in zip(lines, log.trials, strict=True):
        assert trial.config == config_at(header["space"], trial.index) == config_from_dict(line["config"])
        if isinstance(trial.config, FormerPipelineConfig):
            assert trial.config.to_dict() == line["config"]
            assert line["config"]["dependent_launch"] == 0
        else:
            made = trial.config
            then = second.before(made) if isinstance(made, PipelineConfig) else made
            assert then.to_dict() == line["config"]
    retired = {trial.index for trial in log.trials if isinstance(trial.config, FormerPipelineConfig)}
    assert retired
    space = space_today(header)
    assert isinstance(space, SecondSpace)
    assert space.index_hash == header["space"]["index_hash"]
    assert [space.index(trial.config) for trial in log.trials] == [trial.index for trial in log.trials]
    results = {trial.index: Measured(trial.microseconds, (trial.microseconds,)) for trial in log.trials}
    _, kept, dropped = fit(header, results)
    assert (set(kept), dropped) == (set(results), {})


def test_a_log_of_then_is_gone_on_with(tmp_path):
    """Its space stays the log's, whatever the space of today is."""
    path = tmp_path / "then.jsonl"
    then = FAMILY.recorded_space(workload(ROWS), H200, "wgmma", KNOBS, FAMILY.held({}), "recorded")
    with Study(then, "random", 3, path) as study:
        study.run(FakeRunner(), 4)
    before = [trial.index for trial in read_log(path).trials]
    assert json.loads(path.read_text().splitlines()[0])["space"]["base"]["image_groups"] == 1
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        with Study(subbyte.space(ROWS, kind="wgmma"), "random", 3, path, resume=True) as study:
            assert study.space == then
            study.run(FakeRunner(), 7)
    trials = read_log(path).trials
    assert [trial.index for trial in trials[:4]] == before
    assert {trial.index for trial in trials} < set(then.valid)
    assert len({trial.index for trial in trials}) == len(trials) == 7
