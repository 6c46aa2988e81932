"""What importers once took for granted: each is one sentence with the file and the place."""

import gzip
import json
import math
from pathlib import Path

import pytest

from subbyte.errors import BrokenRecord, InvalidInput
from subbyte.records.exchange import import_landscape

CORPUS = json.loads((Path(__file__).parents[3] / "corpus" / "tables.json").read_text(encoding="utf-8"))


@pytest.mark.parametrize("text", CORPUS["refuse"])
def test_odd_tables_are_refused(text, tmp_path):
    path = tmp_path / "table.csv"
    path.write_bytes(text.encode())
    with pytest.raises(InvalidInput, match=r"^table.csv") as refused:
        import_landscape(path)
    assert len(str(refused.value)) < 400


@pytest.mark.parametrize("text", CORPUS["answer"])
def test_plain_tables_are_read(text, tmp_path):
    path = tmp_path / "table.csv"
    path.write_text(text)
    assert len(import_landscape(path))


def test_a_table_cell_has_a_longest_text(tmp_path):
    path = tmp_path / "table.csv"
    path.write_text(f"knob,microseconds\n{'x' * 131_073},1.0\n")
    with pytest.raises(BrokenRecord, match=r"table.csv, line 2: field larger than field limit \(131072\)"):
        import_landscape(path)


def _cache(**fields):
    entry = {"bx": 1, "time": 0.5, "times": [0.5, 0.25, 0.75], **fields}
    return {"device_name": "GPU", "kernel_name": "k", "problem_size": [8], "tune_params_keys": ["bx"],
            "tune_params": {"bx": [1]}, "cache": {"1": entry}}  # fmt: skip


def _t4(**fields):
    entry = {"configuration": {"bx": 1}, "times": {"runtimes": [1, 2, 3]}, "invalidity": "correct",
             "measurements": [{"name": "time", "value": 0.5}], **fields}  # fmt: skip
    return {"results": [entry]}


@pytest.mark.parametrize(
    "data",
    [
        _cache(times=[1, math.nan, 5, 2, math.nan]), _cache(times=[1, math.inf]), _cache(times=[1, -2]),
        _cache(times=[1, 0]), _cache(times=[1, True]), _cache(times=[1, "2"]), _cache(times="12"), _cache(time=True),
        _cache(time=math.nan), _cache(time=None), _cache(compile_time=-1), _cache(compile_time="soon"),
        _cache(time=10**400), _cache(bx=True),
        _t4(measurements=[{"name": "time"}]), _t4(measurements=[{"name": "time", "value": True}]),
        _t4(times={"runtimes": [1, math.nan]}), _t4(times=None), _t4(configuration=[]),
        _t4(measurements=[{"name": "time", "value": 1, "unit": "weeks"}]),
    ],
)  # fmt: skip
@pytest.mark.parametrize("statistic", ["time", "median"])
def test_odd_times_and_samples_are_refused(data, statistic, tmp_path):
    path = tmp_path / "a.json"
    path.write_text(json.dumps(data))
    with pytest.raises(BrokenRecord, match=r"^a.json, (entry|result)") as refused:
        import_landscape(path, statistic=statistic)
    assert len(str(refused.value)) < 500


def test_a_byte_order_mark_a_bad_byte_and_a_bomb_are_refused(tmp_path):
    path = tmp_path / "a.json"
    for content, said in (
        (b"\xef\xbb\xbf" + json.dumps(_cache()).encode(), "byte-order mark"),
        (json.dumps(_cache()).encode() + b"\n\xff", "line 2: damaged, byte .* is not UTF-8"),
        (gzip.compress(bytes(65 * 2**20), 1), "unpacks to more than 64 MiB"),
        (b'{"cache": ' + b"[" * 100_000, "nested"),
        (b'{"cache": ' + b"9" * 6000 + b"}", "4300|digits"),
    ):
        path.write_bytes(content)
        with pytest.raises(BrokenRecord, match=said):
            import_landscape(path)
