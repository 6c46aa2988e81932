"""Loads, stores and chains by the clock: texts compute what they claim, every word is compared, records print."""

from __future__ import annotations

import json
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

from subbyte.cli.main import main
from subbyte.device.latency_texts import (
    HEAD_WORDS,
    SPACES,
    STORED,
    TILE_WORDS,
    Chain,
    chain_bytes,
    chains,
    load_text,
    store_text,
    warp_chain_text,
    warpgroup_chain_text,
)
from subbyte.device.launch import Argument, Launch
from subbyte.emulator import run_cuda
from subbyte.errors import WrongResult
from subbyte.kernel.nvrtc import compile_ptx
from subbyte.measure.latency import measure_strides, text_of
from subbyte.measure.latency.measure import LOADED, SAVED
from subbyte.measure.plane_scaling import crossing, fitted
from subbyte.measure.plane_scaling import text_of as planes_text

WARP = np.arange(32)


def _sums(text: str, turns: int, threads: int = 32, shared: int = 0) -> Any:
    """The threads' sums in the emulator, which has no clock."""
    lines = [line for line in text.splitlines() if "%%clock" not in line]
    data = np.random.default_rng(1).integers(0, 2**32, HEAD_WORDS + TILE_WORDS, np.uint32)
    data[0] = turns
    out = np.zeros(HEAD_WORDS + threads + TILE_WORDS, np.uint32)
    arguments = (Argument("In", "uint32", data.shape, "in"), Argument("Out", "uint32", out.shape, "out"))
    launch = Launch("timed_kernel", (1, 1, 1), (threads, 1, 1), shared, arguments)
    run_cuda("\n".join(lines), launch, {"In": data, "Out": out}, check=False)
    return out[HEAD_WORDS : HEAD_WORDS + threads]


@pytest.mark.deep
def test_chains_multiply_as_often_as_they_say() -> None:
    """Three products of one group, into the same accumulators or each into its own: three times one product."""
    for shape in ("m8n8k128", "m16n8k256"):
        once = _sums(warp_chain_text(shape, 1, True), 1)
        assert len(np.unique(once)) > 8
        for dependent in (True, False):
            np.testing.assert_array_equal(_sums(warp_chain_text(shape, 3, dependent), 2), 6 * once)
    once = _sums(warpgroup_chain_text(8, 1, True), 1, 128, chain_bytes(8))
    assert len(np.unique(once)) > 8
    for dependent in (True, False):
        text = warpgroup_chain_text(8, 3, dependent)
        np.testing.assert_array_equal(_sums(text, 2, 128, chain_bytes(8)), 6 * once)


def test_tiles_are_moved_by_the_instruction_of_their_space() -> None:
    wanted = {"shared": "ld.shared.u32", "L1": "ld.global.ca.u32", "L2": "ld.global.cg.u32"}
    for space in SPACES:
        assert compile_ptx(load_text(space), "sm_90a").count(wanted[space]) >= 2  # before the loop and in it
    for space in STORED:
        assert ("st.shared.v2.u32" if space == "shared" else "st.global.v2.u32") in compile_ptx(
            store_text(space), "sm_90a"
        )


class Buffer:
    def __init__(self, nbytes: int) -> None:
        self.nbytes, self.words = nbytes, np.zeros(nbytes // 4, np.uint32)
        self.pointer = self

    def upload(self, array: Any) -> None:
        self.words[:] = array

    def fill(self, byte: int) -> None:
        self.words[:] = byte

    def download(self, shape: Any, dtype: Any) -> Any:
        return self.words.copy()

    def free(self) -> None:
        """Nothing to do."""


class Gpu:
    """Does in numpy what the texts do, by which text it was given; a turn takes 30 cycles, over the clock's wrap."""

    spoiled = False
    info = SimpleNamespace(arch="sm_90a", bus_id="", to_dict=lambda: {"name": "made up", "arch": "sm_90a", "sms": 1})

    def alloc(self, nbytes: int) -> Buffer:
        return Buffer(nbytes)

    def load(self, cubin: bytes, entry: str) -> Any:
        text = cubin.decode()

        def launch(grid: Any, block: Any, shared: int, pointers: list[Buffer]) -> None:
            given, out = (buffer.words for buffer in pointers)
            turns, distance = int(given[0]), int(given[1])
            own = out[HEAD_WORDS:]
            if "[%1]" in text:
                own[:32] = turns * given[HEAD_WORDS:][WARP // 4 * distance + WARP % 4]
            elif "st." in text:
                for column in (0, 1):
                    own[32:][WARP // 4 * distance + WARP % 4 * 2 + column] = turns - 1 + WARP
            else:
                own[: block[0]] = turns * (1 + np.arange(block[0]))
            own[3] += int(self.spoiled)
            for group in range(max(1, block[0] // 128)):
                out[2 * group : 2 * group + 2] = 2**32 - 5, (2**32 - 5 + 30 * turns) % 2**32

        return SimpleNamespace(allow_shared=lambda nbytes: None, launch=launch, unload=lambda: None)

    def synchronize(self) -> None:
        """Nothing to do."""


def _record(gpu: Gpu) -> dict[str, Any]:
    return measure_strides(gpu, build=lambda text, arch: text.encode())  # type: ignore[arg-type]


def test_a_record_has_every_distance_beside_the_model(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    record = _record(Gpu())
    assert [row["ldm"] for row in record["loads"]] == [32 * distance for distance in LOADED] * len(SPACES)
    shared = [row["wavefronts"] for row in record["loads"] if row["space"] == "shared"]
    assert shared == [1, 2, 1, 4, 1, 2, 1, 8]
    reached = [(row["sectors"], row["lines"]) for row in record["loads"] if row["space"] == "L2"]
    assert reached[0] == (4, 1)
    assert {sectors for sectors, _ in reached[1:]} == {8}
    assert [lines for _, lines in reached] == [1, 2, 3, 4, 5, 6, 7, 8]
    assert len(record["stores"]) == len(STORED) * len(SAVED)
    assert len(record["chains"]) == len(list(chains("sm_90a"))) == 64
    assert all(row["cycles"] == 30.0 for kind in ("loads", "stores", "chains") for row in record[kind])
    path = tmp_path / "strides.json"
    path.write_text(json.dumps(record))
    assert main(["bench", "--from", str(path)]) == 0
    assert capsys.readouterr().out.strip() == text_of(record)
    path.write_text(json.dumps({**record, "loads": [{"space": 1}]}))
    assert main(["bench", "--from", str(path)]) == 2
    assert "no record of `subbyte bench`" in capsys.readouterr().err


def test_a_wrong_word_is_noticed() -> None:
    gpu = Gpu()
    gpu.spoiled = True
    with pytest.raises(WrongResult, match="a load from shared, 4 words from row to row: 1 of 32 words"):
        _record(gpu)


def test_the_line_through_pairs_of_planes() -> None:
    rows: list[dict[str, Any]] = [
        {"precision": name, "planes": planes, "microseconds": 2.0 + planes / 2, "config": "bits"}
        for name, planes in (("w1a1", 1), ("w1a2", 2), ("w2a2", 4), ("w2a4", 8))
    ]
    assert fitted(rows) == pytest.approx((2.0, 0.5))
    assert crossing(rows, 5.0) == pytest.approx(6.0)
    assert fitted(rows[:1]) is None
    assert crossing(rows[:1], 5.0) is None
    int4 = {"precision": "int4", "planes": 16, "microseconds": 5.0, "config": "c"}
    missing = {"precision": "w4a4", "planes": 16, "reason": "not covered: no"}
    record = {"workload": "gemm8x8x8", "device": {"name": "made up", "arch": "sm_90a"}, "date": "today",
              "rows": [*rows, missing, int4]}  # fmt: skip
    text = planes_text(record)
    assert "2.00 us + 0.500 us for each pair" in text
    assert "the line reaches int4 (5.00 us) at p*q = 6.0" in text
    assert "not covered: no" in text


def test_only_what_an_architecture_has() -> None:
    assert {one.instruction.partition(".")[0] for one in chains("sm_80")} == {"mma"}
    assert not list(chains("sm_75"))
    assert isinstance(next(chains("sm_90a")), Chain)
