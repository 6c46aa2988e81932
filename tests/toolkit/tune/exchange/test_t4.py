"""T4: Kernel Tuner's and ours, checked against the published schema."""

from __future__ import annotations

import json

import pytest

from subbyte.errors import BrokenRecord
from subbyte.records.exchange import export_landscape, from_kernel_tuner, from_t4, import_landscape, to_t4


def test_t4_holds_what_the_cache_held(cache, t4):
    one, other = from_kernel_tuner(cache), from_t4(t4, "stencil", "Some GPU")
    knobs = one.header["space"]["knobs"]
    assert other.header["space"]["knobs"] == knobs
    assert {i: r.to_dict().get("microseconds") for i, r in one.results.items()} == {
        i: r.to_dict().get("microseconds") for i, r in other.results.items()
    }
    assert other.info().failed == one.info().failed
    assert (other.workload.name, other.device["name"]) == ("stencil", "Some GPU")


def test_a_convolution_comes_back_as_it_was(recorded, tmp_path):
    again = import_landscape(export_landscape(recorded, tmp_path / "x.json.gz", "t4"))
    assert {**recorded.header, "entries": len(recorded)} == again.header
    assert dict(recorded.results) == dict(again.results)


def test_the_export_follows_the_schema(recorded):
    jsonschema = pytest.importorskip("jsonschema")
    kernel_tuner = pytest.importorskip("kernel_tuner")
    from importlib.resources import files

    schema = json.loads((files(kernel_tuner) / "schema/T4/1.0.0/results-schema.json").read_text())
    data = json.loads(json.dumps(to_t4(recorded)))
    jsonschema.validate(data, schema)
    data["results"][0]["invalidity"] = "odd"
    with pytest.raises(jsonschema.ValidationError):
        jsonschema.validate(data, schema)


@pytest.mark.parametrize(("unit", "factor"), [("seconds", 1e6), ("milliseconds", 1e3), ("microseconds", 1.0)])
def test_units(t4, unit, factor):
    t4["metadata"]["timeunit"] = unit
    assert from_t4(t4, "stencil").best[1].microseconds == pytest.approx(7.6 * factor)
    t4["results"][0]["measurements"][0]["unit"] = "us"
    assert 7.6 in [r.to_dict().get("microseconds") for r in from_t4(t4, "stencil").results.values()]


def test_a_configuration_that_was_visited_twice_counts_once(t4):
    t4["results"].append(t4["results"][0])
    found = from_t4(t4, "stencil")
    assert len(found) == 20
    assert found.header["protocol"]["repeated"] == 1


@pytest.mark.parametrize(
    ("spoil", "message"),
    [
        (lambda t4: t4.update(schema_version="2.0.0"), "schema 2.0.0"),
        (lambda t4: t4["metadata"].update(timeunit="fortnights"), "fortnights"),
        (lambda t4: t4.update(results=[]), "no configuration"),
        (lambda t4: t4.pop("results"), "results"),
        (lambda t4: t4["results"][2].pop("times"), "result 2: .*missing required field times"),
        (lambda t4: t4["results"][2].update(invalidity="sleepy"), "result 2: unknown invalidity 'sleepy'"),
        (lambda t4: t4["results"][2]["configuration"].pop("block"), "differ in block"),
        (lambda t4: t4["results"][2].update(measurements=[]), "result 2: .*no measurement of time"),
        (lambda t4: t4["results"][2]["measurements"][0].update(value="soon"), "not a positive number"),
        (lambda t4: t4["results"][2]["times"].update(runtimes=["x"]), "result 2"),
    ],
)
def test_a_damaged_file_is_refused_by_result(t4, spoil, message):
    spoil(t4)
    with pytest.raises(BrokenRecord, match=message):
        from_t4(t4, "stencil", source="file.json")
