"""The trace of a small pipeline is exactly the accesses that its text makes."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from subbyte.device.launch import Argument, Launch
from subbyte.emulator import EmulatorRun, run_cuda
from subbyte.emulator import run as run_module
from subbyte.emulator import trace as tr
from subbyte.errors import InvalidInput

TEXT = (Path(__file__).parent / "pipeline.cu").read_text()
ARGUMENTS = (Argument("A", "uint32", (2048,), "in"), Argument("Out", "uint32", (128,), "out"))
LAUNCH = Launch("pipeline_kernel", (2, 1, 1), (64, 1, 1), 2048, ARGUMENTS)
A = np.arange(2048, dtype=np.uint32)


@pytest.fixture(scope="module")
def traced() -> EmulatorRun:
    return run_cuda(TEXT, LAUNCH, {"A": A, "Out": np.zeros(128, np.uint32)}, trace=True)


def test_counts_by_kind(traced: EmulatorRun) -> None:
    assert traced.trace is not None
    assert tr.counts(traced.trace) == {
        "global_load": 0,
        "global_store": 128,
        "shared_load": 128 * 5,
        "shared_store": 128,
        "copy": 128 * 4,
        "shuffle": 128,
        "mma": 0,
        "barrier": 128 * 5,
        **dict.fromkeys(("wgmma", "bulk_copy", "bulk_store", "mbarrier", "fence"), 0),
    }


def test_lines_behind_a_blank_one_are_counted_right() -> None:
    """A blank line, or one of the preprocessor, that begins a loop's body belongs to the numbering."""
    lines = [
        'extern "C" __global__ void __launch_bounds__(32) numbered(unsigned int* __restrict__ Out_ptr) {',
        "#pragma unroll", "for (int i = 0; i < 2; ++i) {", "", "#pragma unroll", "for (int j = 0; j < 2; ++j) {",
        "#pragma unroll", "", "Out_ptr[(i * 2 + j) * 32 + threadIdx.x] = 7u;", "}", "}", "}",
    ]  # fmt: skip
    launch = Launch("numbered", (1, 1, 1), (32, 1, 1), 0, (Argument("Out", "uint32", (128,), "out"),))
    run = run_cuda("\n".join(lines), launch, {"Out": np.zeros(128, np.uint32)}, trace=True)
    assert run.trace is not None
    (line,) = set(tr.of_kind(run.trace, "global_store")["line"].tolist())
    assert lines[line - 1].strip().startswith("Out_ptr[")
    assert run.text.split("\n") == lines


def test_copies_name_both_addresses(traced: EmulatorRun) -> None:
    copies = tr.of_kind(traced.trace, "copy")
    thread = copies["warp"].astype(int) * 32 + copies["lane"]
    chunk = (copies["offset"] - copies["block"].astype(int) * 4096) // 1024
    np.testing.assert_array_equal(copies["offset"] % 1024, thread * 16)
    np.testing.assert_array_equal(copies["shared"], 256 + chunk % 2 * 1024 + thread * 16)  # after 64 static words
    assert set(copies["size"]) == set(copies["valid"]) == {16}
    assert {traced.arguments[i] for i in copies["buffer"]} == {"A"}
    assert {traced.instructions[i] for i in copies["instruction"]} == {"cp.async.cg.shared.global"}
    np.testing.assert_array_equal(copies["value"] & 0xFFFFFFFF, copies["offset"] // 4)


def test_unique_and_total_bytes_per_block(traced: EmulatorRun) -> None:
    assert tr.unique_global_bytes(traced.trace) == {0: 4096, 1: 4096}
    assert tr.global_bytes_read(traced.trace, 0) == {0: 4096, 1: 4096}
    assert tr.unique_global_bytes(traced.trace, 1) == {0: 0, 1: 0}


def test_shuffles_name_source_and_value(traced: EmulatorRun) -> None:
    rows = tr.of_kind(traced.trace, "shuffle")
    np.testing.assert_array_equal(rows["source_lane"], rows["lane"] ^ 4)
    assert {tr.SHUFFLE_MODES[mode] for mode in rows["mode"]} == {"bfly"}


@pytest.mark.parametrize(("kind", "groups"), [("copy", 16), ("shared_load", 20), ("shuffle", 4), ("mma", 0)])
def test_lanes_of_a_warp_access_are_grouped(traced: EmulatorRun, kind: str, groups: int) -> None:
    table = tr.warp_groups(traced.trace, kind)
    assert table.shape == (groups, 32)
    assert (table >= 0).all()
    rows = traced.trace[table]
    assert (rows["lane"] == np.arange(32)).all()
    assert (rows["warp"] == rows["warp"][:, :1]).all()
    if kind == "copy":
        assert (np.diff(rows["offset"], axis=1) == 16).all()


def test_inactive_lanes_stay_empty() -> None:
    text = TEXT.replace("  Out_ptr[", "  if (((int)threadIdx.x) % 3 == 0) Out_ptr[")
    run = run_cuda(text, LAUNCH, {"A": A, "Out": np.zeros(128, np.uint32)}, trace=True, blocks=[1])
    table = tr.warp_groups(run.trace, "global_store")
    np.testing.assert_array_equal(table[0] >= 0, np.arange(32) % 3 == 0)
    assert set(run.trace["block"]) == {1}


def test_neighbouring_repeated_loads_are_one() -> None:
    text = TEXT.replace("acc_ptr[0] = (uint)0;", "acc_ptr[0] = ((A_ptr[0] << 4) & (uint)0) + (A_ptr[0] & (uint)0);")
    run = run_cuda(text, LAUNCH, {"A": A, "Out": np.zeros(128, np.uint32)}, trace=True)
    assert tr.counts(run.trace)["global_load"] == 256
    assert tr.counts(tr.without_repeated_loads(run.trace)) == {**tr.counts(run.trace), "global_load": 128}


def test_trace_beyond_the_limit_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(run_module, "TRACE_LIMIT", 1000)
    with pytest.raises(InvalidInput, match=r"exceeds 1,000 rows.*blocks=\[0\]"):
        run_cuda(TEXT, LAUNCH, {"A": A, "Out": np.zeros(128, np.uint32)}, trace=True)


def test_unknown_kind_is_refused(traced: EmulatorRun) -> None:
    with pytest.raises(InvalidInput, match=r"'shared_lod'.*shared_load"):
        tr.of_kind(traced.trace, "shared_lod")
    with pytest.raises(InvalidInput, match="'stores'"):
        tr.warp_groups(traced.trace, "stores")
