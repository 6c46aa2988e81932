"""Counts of memory traffic: the record reads what the program wrote, damage is refused."""

import json

import pytest

from subbyte.analysis.mechanism import FORMAT, read_mechanism
from subbyte.errors import BrokenRecord, InvalidInput

ROW = {
    "schedule": "brw1", "index": 3, "sharing": "none", "packing": False, "layout": "nhwc", "microseconds": 7.5,
    "sectors_read": 100, "lines_read": 50, "bytes_asked": 3200, "sectors_written": 10, "lines_written": 4,
    "stores": 5, "shared_bytes_read": 640, "shared_bytes_written": 320, "shuffles": 0, "mma": 12,
}  # fmt: skip
DATA = {
    "format": FORMAT, "schema": 1, "workload": "resnet50.stage2@8", "device": "Test GPU", "traced": "all",
    "rows": [ROW],
}  # fmt: skip


def test_counts_are_read(tmp_path):
    path = tmp_path / "stage2.json"
    path.write_text(json.dumps(DATA))
    found = read_mechanism(path)
    assert found.rows[0].sectors_read == 100
    assert found.to_dict()["rows"][0] == ROW
    assert found.table().columns[0] == "schedule"
    assert "resnet50.stage2@8" in found.text()


def test_damage_is_refused(tmp_path):
    path = tmp_path / "stage2.json"
    for data, message in (({**DATA, "format": "x"}, "not counts"), ({**DATA, "rows": [{"index": 1}]}, "damaged")):
        path.write_text(json.dumps(data))
        with pytest.raises(BrokenRecord, match=message):
            read_mechanism(path)
    path.write_text("text")
    with pytest.raises(BrokenRecord, match="not JSON"):
        read_mechanism(path)
    with pytest.raises(InvalidInput, match="counts"):
        read_mechanism(tmp_path / "nothing.json")
