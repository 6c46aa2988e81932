"""Records with right checksums whose fields are of another type, and files that ask for much."""

import gzip
import hashlib
import json
import zlib
from dataclasses import replace

import pytest

from subbyte.analysis import Race
from subbyte.errors import BrokenRecord, InvalidInput
from subbyte.families import space
from subbyte.records.describe import describe_space, describe_workload
from subbyte.records.log import Entry
from subbyte.records.manifest import read_manifest
from subbyte.records.result import Measured
from subbyte.tune import Landscape
from subbyte.tune.record import read_log
from subbyte.tune.recording import measured


@pytest.fixture(scope="module")
def toy():
    return space("n8h6w6c32k32r3s3p1", "sm_80")


def sealed(lines):
    checksum, made = 0, []
    for line in lines:
        body = line.encode()[:-1]
        checksum = zlib.crc32(body, checksum)
        made.append(body + f',"crc":"{checksum:08x}"}}\n'.encode())
    return b"".join(made)


def log_lines(toy):
    header = {"format": "subbyte-log", "schema": 1, "space": describe_space(toy), "workload":
              describe_workload(toy.workload), "seed": 3, "strategy": {"name": "random", "options": {}},
              "device": {"name": "GPU"}, "created": "2026"}  # fmt: skip
    first = toy.valid[0]
    return [header, Entry(0, first, toy.config(first), Measured(5.0, (5.0, 5.5)), (0, 1, 0), "a", "b").to_dict()]


@pytest.mark.parametrize(
    ("line", "before", "after"),
    [
        (2, '"trial":0', '"trial":1e999'), (2, '"trial":0', '"trial":null'), (2, '"trial":0', '"trial":"0"'),
        (2, '"trial":0', '"trial":' + "9" * 6000), (2, '"microseconds":5.0', '"microseconds":true'),
        (2, '"microseconds":5.0', '"microseconds":-5.0'), (2, '[5.0,5.5]', '[5.0,0]'), (2, '[5.0,5.5]', '"ab"'),
        (2, '"started":"a"', '"started":null'), (2, '"ask":[0,1,0]', '"ask":[0]'),
        (2, '"ask":[0,1,0]', '"ask":' + "[" * 5000 + "]" * 5000),
        (1, '"device":{"name":"GPU"}', '"device":[]'), (1, '"seed":3', '"seed":null'),
        (1, '"strategy":{"name":"random","options":{}}', '"strategy":null'), (1, '"workload":{', '"workload":{"c":1,'),
    ],
)  # fmt: skip
def test_a_crafted_log_names_its_line(toy, tmp_path, line, before, after):
    texts = [json.dumps(fields, separators=(",", ":")) for fields in log_lines(toy)]
    path = tmp_path / "log"
    path.write_bytes(sealed(texts))
    assert len(read_log(path).trials) == 1
    assert before in texts[line - 1]
    texts[line - 1] = texts[line - 1].replace(before, after)
    path.write_bytes(sealed(texts))
    if 'c":1' in after:  # of two equal names the last one counts
        assert read_log(path)
        return
    with pytest.raises(BrokenRecord, match=rf"log, line {line}: ") as refused:
        read_log(path)
    assert len(str(refused.value)) < 700


@pytest.fixture
def landscape(toy):
    results = {index: Measured(float(index + 1)) for index in toy.valid[:3]}
    return Landscape.from_results(toy, results, {"name": "GPU"})


def written(path, landscape, **header):
    made = replace(landscape, header={**landscape.header, **header})
    made.save(path)
    return path


@pytest.mark.parametrize(
    "header",
    [{"device": {"uuids": 5}}, {"device": {"uuids": [1]}}, {"protocol": {"a": [[[[[1]]]]]}}, {"created": 5}],
)
def test_a_crafted_landscape_is_refused(landscape, tmp_path, header):
    path = tmp_path / "a.json.gz"
    for fields in (header, {"device": None}, {"workload": None}):
        lines = gzip.decompress(written(path, landscape).read_bytes()).splitlines()[:-1]
        lines[0] = json.dumps({**json.loads(lines[0]), **fields}).encode()
        content = b"".join(line + b"\n" for line in lines)
        digest = hashlib.sha256(content).hexdigest()
        path.write_bytes(gzip.compress(content + f'{{"sha256":"{digest}"}}\n'.encode()))
        with pytest.raises(BrokenRecord, match="line 1"):
            Landscape.load(path)


def test_a_space_beyond_reason_is_refused_at_once(landscape, tmp_path):
    described = {**landscape.header["space"]}
    for values in ([10**9], list(range(60_000)), [1, 1]):
        knobs = {**described["knobs"], "chunk": values, "warp_row_tiles": values}
        size = 1
        for held in knobs.values():
            size *= len(held)
        path = written(tmp_path / "a.json.gz", landscape, space={**described, "knobs": knobs, "size": size})
        with pytest.raises(BrokenRecord, match=r"line 1: (space|knob)"):
            Landscape.load(path)


def test_results_and_manifests_name_the_line_of_a_bad_byte(tmp_path):
    (tmp_path / "results.jsonl").write_bytes(b'{"format":"subbyte-measurements"}\n\xff\n')
    with pytest.raises(BrokenRecord, match=r"results.jsonl, line 1"):
        measured(tmp_path)
    for content in (b"", b"{}\n", b"\n", b"null\n", b"[1]\n"):
        (tmp_path / "manifest.jsonl").write_bytes(content)
        with pytest.raises(BrokenRecord, match=r"manifest.jsonl, line 1: "):
            read_manifest(tmp_path)


def test_a_packed_bomb_is_no_race(tmp_path):
    path = tmp_path / "race.json.gz"
    path.write_bytes(gzip.compress(bytes(65 * 2**20), 1))
    with pytest.raises(BrokenRecord, match="unpacks to more than 64 MiB"):
        Race.load(path)


@pytest.mark.parametrize("fields", [{"cold_microseconds": -3}, {"samples": (0.0,)}, {"samples": ("a",)},
                                    {"samples": (float("nan"),)}, {"cold_microseconds": "abc"}])  # fmt: skip
def test_samples_and_cold_times_are_times(fields):
    with pytest.raises(InvalidInput, match="a measured time is a positive number"):
        Measured(1.0, **fields)
