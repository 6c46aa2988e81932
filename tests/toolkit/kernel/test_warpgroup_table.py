"""The table of what the compiler made of the wgmma family: built, joined, and refused when it should be."""

import pytest
import warpgroup_table as tool

from subbyte.device import ARCHS
from subbyte.errors import InvalidInput
from subbyte.families.registry import config_from_dict
from subbyte.families.wgmma.check import why_not
from subbyte.families.wgmma.pipeline.config import PipelineConfig
from subbyte.families.wgmma.plan import WgmmaPlan
from subbyte.families.wgmma.values import value_lists
from subbyte.kernel.choose import recorded_best
from subbyte.workload import workload

SPEC = "n8h6w6c64k64r3s3p1"
CONFIG = PipelineConfig(tile_width=6, stages=6, stagger=0)
JOB = (tool.CHOSEN, SPEC, CONFIG.to_dict())
SERIALIZED = PipelineConfig(tile_width=8, tile_rows=4, consumers_m=2, stages=6, load_ahead=1, in_flight=2, stagger=2)


@pytest.fixture(scope="module")
def row():
    return tool.build_row(JOB)


def test_a_row(row):
    assert row["igmma"] >= 9
    assert (row["local"], row["merged"], row["refused"]) == (0, 0, "")
    assert tool.violations([row], [JOB]) == []


@pytest.mark.deep
def test_a_refused_kernel_says_why():
    found = tool.build_row((tool.SAMPLED, "resnet50.stage5@256", SERIALIZED.to_dict()))
    assert found["refused"].startswith("the compiler serialized the wgmma instructions (")
    assert tool.violations([found], [(tool.SAMPLED, "resnet50.stage5@256", SERIALIZED.to_dict())]) == []


@pytest.mark.parametrize(
    ("changes", "says"),
    [
        ({"igmma": 0}, "no wgmma"),
        ({"local": 8}, "local memory"),
        ({"merged": 1}, "merged with a minimum"),
        ({"key": "wg-other"}, "not in the table"),
        ({"refused": "serialized"}, "no configuration that compile can take"),
    ],
)
def test_what_is_wrong_is_said(row, changes, says):
    (problem, *_) = tool.violations([row | changes], [JOB])
    assert says in problem


def test_tables_are_read_joined_and_refused(row, tmp_path):
    parts = [tmp_path / "1.csv.gz", tmp_path / "2.csv.gz"]
    head = {"schema": tool.SCHEMA, "generator": "abc", "nvrtc": ["13.0"]}
    tool.save(parts[0], head, [row])
    tool.save(parts[1], head | {"nvrtc": ["13.1"]}, [row, row | {"key": "wg-other"}])
    assert tool.join(parts, tmp_path / "table.csv.gz") == 2
    rows = sorted([row, row | {"key": "wg-other"}], key=lambda one: one["key"])
    assert tool.load(tmp_path / "table.csv.gz") == (head | {"nvrtc": ["13.0", "13.1"]}, rows)
    tool.save(parts[1], head | {"generator": "def"}, [row])
    with pytest.raises(InvalidInput, match="different generators"):
        tool.join(parts, tmp_path / "table.csv.gz")
    parts[0].write_bytes(parts[0].read_bytes()[:-9])
    with pytest.raises(InvalidInput, match="is no table"):
        tool.load(parts[0])
    tool.save(parts[1], head | {"schema": 9}, [row])
    assert tool.main(["--check", "--file", str(parts[1])]) == 2


STAGES = [workload(f"resnet50.stage{n}@{batch}") for n, batch in ((2, 8), (3, 64), (4, 256), (5, 8))]


def test_what_is_offered():
    listed = list(tool.offered([tool.CHOSEN], STAGES))
    assert len({(spec, tuple(values.items())) for _, spec, values in listed}) == len(listed)
    assert {one.spec for one in STAGES} <= {spec for _, spec, _ in listed}
    assert {one.spec for one in STAGES} <= {one.spec for one in tool.layers()}
    assert len({one.spec for one in tool.layers()}) > 80


@pytest.mark.deep
def test_a_sample_holds_every_value_of_every_knob():
    drawn = list(tool.sample(STAGES[:1], 30))
    assert list(tool.sample(STAGES[:1], 5)) == list(tool.sample(STAGES[:1], 5))
    assert all(why_not(WgmmaPlan(*one, ARCHS["sm_90a"])) is None for one in drawn)
    assert {one.spec for one, _ in drawn} == {STAGES[0].spec}
    names = ("tile_width", "segments", "consumers_rows", "pixels")
    listed = {(name, value) for one in STAGES[:1] for name in names for value in value_lists(one).get(name, ())}
    missing = listed - {(name, config.to_dict().get(name)) for _, config in drawn for name in names}
    assert not missing
    assert [one for one, _ in tool.sample(STAGES, 1)] == STAGES  # no layer is left out


def test_the_committed_table():
    """wgmma in every kernel, no local memory, no merged comparison, and what compile takes is in it."""
    head, rows = tool.load(tool.TABLE)
    assert head["generator"]
    assert tool.violations(rows, tool.offered([tool.CHOSEN], STAGES)) == []
    assert len(rows) > 250
    sampled = [row for row in rows if row["what"] == tool.SAMPLED]
    assert len(sampled) >= 500
    assert sum(not row["refused"] for row in sampled) >= len(sampled) // 2
    assert len({row["workload"] for row in sampled}) > 80
    recorded = {(spec, config_from_dict(best["config"]).key) for spec, best in recorded_best().items()}
    assert not [row for row in rows if row["refused"] and (row["workload"], tool.key_today(row["key"])) in recorded]
