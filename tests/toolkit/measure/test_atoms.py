"""Measured peaks: texts compute what they claim, the record is complete, and without a GPU there is a clear error."""

from __future__ import annotations

import importlib
import json
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from subbyte.cli.main import main
from subbyte.device import ARCHS
from subbyte.device.atom_texts import EMPTY_TEXT, INPUT_WORDS, STEPS, THREADS, TILE
from subbyte.emulator import require_clean, run_cuda
from subbyte.emulator.trace import KINDS
from subbyte.errors import InvalidInput, MissingDependency, Unsupported
from subbyte.gpu.device import CudaDevice
from subbyte.measure.atoms import Case, atom_kernel, cases, measure_atoms, text_of
from subbyte.technique import fragments, kernel_reading

module = importlib.import_module("subbyte.measure.atoms.measure")
ALL = cases()
TURNS = 2


def _run(case: Case, trace: bool) -> tuple[Any, np.ndarray, np.ndarray]:
    words = np.random.default_rng(3).integers(0, 2**32, INPUT_WORDS, np.uint32)
    words[0] = TURNS
    out = np.zeros(THREADS, np.uint32)
    run = run_cuda(case.text, case.launch(1), {"In": words, "Out": out}, trace=trace, max_steps=100_000)
    return run, words, out


@pytest.mark.sample(1)
@pytest.mark.parametrize("case", ALL, ids=lambda case: case.atom)
def test_text_makes_the_multiplications_it_claims(case: Case) -> None:
    run, _, out = _run(case, trace=True)
    require_clean(run)
    rows = run.trace[np.isin(run.trace["kind"], [KINDS.index("mma"), KINDS.index("wgmma")])]
    assert {run.instructions[i] for i in np.unique(rows["instruction"])} == {case.opcode}
    m, n, k = map(int, re.findall(r"\.m(\d+)n(\d+)k(\d+)", case.opcode)[0])
    lanes = 128 if case.opcode.startswith("wgmma") else 32
    assert 2 * m * n * k * len(rows) // lanes == case.operations(1, TURNS)
    assert len(np.unique(out)) > THREADS // 8


def test_unpacked_operands_give_the_product_of_int4() -> None:
    """Each thread's sum over its accumulators, from the values themselves: 256 times the int4 product."""
    case = next(case for case in ALL if case.atom == "s8.m16n8k32.unpacked")
    _, words, out = _run(case, trace=False)
    thread = np.arange(THREADS)
    index = [thread[:, None] * size + np.arange(size) * stride for size, stride in ((4, 3), (2 * TILE, 5))]
    left, right = (words[part % INPUT_WORDS] for part in index)
    total = np.zeros((8, 8, 4), np.int64)  # warp, group, t
    for turn in range(TURNS):
        left = left ^ np.uint32(turn * 2654435761 % 2**32)
        a, b = (_int4(part).reshape(8, 8, 4, -1, 8) for part in (left, right))  # warp, group, t, register, element
        for column in range(TILE):
            for half in range(2):  # the upper and the lower eight rows: every other register of A
                product = np.einsum("wgtke,whtke->wgh", a[:, :, :, half::2], b[:, :, :, 2 * column : 2 * column + 2])
                total += 256 * product.reshape(8, 8, 4, 2).sum(-1)
    np.testing.assert_array_equal(out, (total.reshape(-1) % 2**32).astype(np.uint32))


def _int4(words: np.ndarray) -> np.ndarray:
    fields = (words[..., None] >> (np.arange(8, dtype=np.uint32) * 4)).astype(np.int64) & 15
    return np.where(fields > 7, fields - 16, fields)


@pytest.mark.parametrize("ending", ["", ".shared", ".streamed"])
def test_sparse_operands_give_the_product_with_their_metadata(ending: str) -> None:
    """The sum of all accumulators, from the bytes that were multiplied, the places of the kept ones put back."""
    case = next(case for case in ALL if case.atom == f"s8.wgmma.sp.m64n64k64{ending}")
    run, words, out = _run(case, trace=False)
    require_clean(run)
    shared = words[np.arange(case.shared_bytes // 4) % INPUT_WORDS]
    columns = shared[: STEPS * 64 * 16].view(np.int8).reshape(STEPS, 8, 4, 8, 16).astype(np.int64)  # group, piece, row
    sums = columns.sum((1, 3)).reshape(STEPS, 64)  # of each k over all columns
    thread, own = np.arange(THREADS), shared[STEPS * 64 * 16 :].reshape(2, -1)
    row = 16 * (thread % 128 // 32) + thread % 32 // 4
    total = 0
    for turn in range(TURNS):
        for step in range(STEPS):
            kept = np.zeros((2, 64, 32), np.int64)
            places = np.zeros((2, 64, 32), np.int64)
            slot = own.reshape(2, -1)[:, (2 * turn + step // 2) % 4 * 768 :] if ending == ".streamed" else own
            if ending == ".shared":
                tile = own.reshape(2, STEPS, -1)[:, step].copy().view(np.int8).reshape(2, 8, 2, 8, 16)
                kept[:] = tile.transpose(0, 1, 3, 2, 4).reshape(2, 64, 32)
            for i in range(4):
                if ending == ".shared":
                    break
                fragment = words[(16 * thread + 3 * (4 * step + i)) % INPUT_WORDS]
                if ending:
                    packed = slot[thread // 128, thread % 128 * 4 + i]
                    fragment = (packed << (4 if step % 2 == 0 else 0)) & np.uint32(0xF0F0F0F0)
                four = fragment.astype(np.uint32).view(np.int8).reshape(-1, 4)
                for j in range(4):
                    kept[thread // 128, row + 8 * (i % 2), 16 * (i // 2) + 4 * (thread % 4) + j] = four[:, j]
            metadata = words[(4 * thread + 7 * step) % INPUT_WORDS]
            if ending == ".streamed":
                metadata = slot[thread // 128, 512 + thread % 128 * 2 + step % 2]
            metadata = (metadata & np.uint32(0x55555555)) | np.uint32(0x88888888)
            for j in range(16):
                found = metadata >> np.uint32(2 * j) & np.uint32(3)
                places[thread // 128, row + 8 * (thread % 4 % 2), 16 * (thread % 4 // 2) + j] = found
            total += int((kept * sums[step][places + np.arange(32) // 2 * 4]).sum())
    assert int(out.astype(np.uint64).sum()) % 2**32 == total % 2**32


def test_every_architecture_has_cases_and_the_support_is_that_of_the_fragments() -> None:
    for arch in ARCHS:
        names = [case.atom for case in cases(arch)]
        assert {"s4.m8n8k32"} <= set(names)
        assert len(names) == len(set(names))
    for case in ALL:
        if not case.opcode.startswith("mma") or case.atom.startswith(("s8.m8n8k16", "b1.m8n8")):
            continue
        kind, shape, *special = case.atom.split(".")
        operation = f"{special[0]}.popc" if kind == "b1" else "mma"
        known = {s.arch: s.status for s in fragments(f"{shape}.{kind}").support if s.operation == operation}
        assert {arch for arch, status in known.items() if status != "absent"} == set(case.archs)
        assert {arch for arch, status in known.items() if status == "native"} == set(case.native)


@pytest.mark.deep
def test_texts_compile_without_local_memory() -> None:
    nvrtc = pytest.importorskip("subbyte.kernel.nvrtc")
    try:
        nvrtc.version()
    except MissingDependency as error:
        pytest.skip(str(error))
    for case in cases("sm_90a"):
        _, log = nvrtc.compile_cubin(case.text, "sm_90a")
        assert "0 bytes stack frame, 0 bytes spill stores" in log, case.atom
        assert "serializ" not in log


@pytest.fixture
def device(fake: Any, monkeypatch: pytest.MonkeyPatch) -> CudaDevice:
    """A GPU that takes 0.01 us for a turn of any loop."""
    monkeypatch.setattr(module, "_COPY_BYTES", 1 << 27)

    class Driver(fake.Driver):  # type: ignore[misc]
        def cuModuleGetFunction(self, loaded: Any, name: bytes) -> tuple[Any, Any]:
            return fake.Driver.cuModuleGetFunction(self, loaded, b"conv_kernel" if name == b"atom_kernel" else name)

        def cuMemcpyDtoDAsync(self, *_: Any) -> Any:
            def copy() -> None:
                self.clock += 10.0

            return self._enqueue(copy)

    @fake.kernel(2)
    def loop(arrays: list[np.ndarray]) -> None:
        driver.clock += 0.01 * int(arrays[0][0])
        arrays[1][:] = 1

    @fake.kernel(0)
    def empty(_: list[np.ndarray]) -> None:
        driver.clock += 4.0

    driver = Driver({b"loop": loop, b"empty": empty})
    driver.kernel_us = driver.cold_us = 0.0
    return CudaDevice(0, driver)


def _build(text: str, arch: str) -> bytes:
    assert arch == "sm_90a"
    return b"empty" if text == EMPTY_TEXT else b"loop"


def test_record_holds_every_case_and_goes_to_json_and_text(device: CudaDevice) -> None:
    said: list[str] = []
    record = measure_atoms(device, _build, said.append)
    json.dumps(record, allow_nan=False)
    assert [row["atom"] for row in record["atoms"]] == [case.atom for case in cases("sm_90a")]
    assert len(said) == len(record["atoms"])
    for row, case in zip(record["atoms"], cases("sm_90a"), strict=True):
        assert row["operations"] == case.operations(row["blocks"], row["turns"])
        assert row["tops"] == pytest.approx(row["operations"] / row["microseconds"] / 1e6, rel=1e-3)
        assert 500 < row["microseconds"] < 4000
    assert record["copy"]["terabytes_per_second"] == pytest.approx(2 * (1 << 27) / 10 / 1e6)
    assert record["launch"]["graph_microseconds"] == pytest.approx(4.0)
    assert {row["native"] for row in record["atoms"]} == {True, False}
    text = text_of(record)
    for expected in ("s4.m8n8k32", "emulated", "native", "TB/s", "CUDA graph"):
        assert expected in text


def test_unknown_architecture_is_refused(device: CudaDevice) -> None:
    object.__setattr__(device.info, "arch", "sm_60")
    with pytest.raises(InvalidInput, match=r"sm_60.*sm_75"):
        measure_atoms(device, _build)


def test_instructions_are_chosen_by_a_part_of_their_name(
    device: CudaDevice, capsys: pytest.CaptureFixture[str]
) -> None:
    record = measure_atoms(device, _build, only="wgmma.sp")
    assert [row["atom"] for row in record["atoms"]] == [one.atom for one in cases("sm_90a") if "wgmma.sp" in one.atom]
    assert 0 < len(record["atoms"]) < len(cases("sm_90a"))
    with pytest.raises(InvalidInput, match=r"no instruction of sm_90a has 'wgmma\.ps'"):
        measure_atoms(device, _build, only="wgmma.ps")
    assert main(["bench", "atoms", "wgmma", "sp"]) == 2
    assert "one TEXT at most" in capsys.readouterr().err


def test_command_without_a_gpu_says_so(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> None:
    def missing() -> None:
        raise MissingDependency("no NVIDIA GPU is visible to the driver")

    monkeypatch.setattr("subbyte.gpu.device.load_api", missing)
    assert main(["bench", "atoms"]) == 3
    said = capsys.readouterr().err
    assert "no NVIDIA GPU" in said
    assert "`subbyte bench --from FILE`" in said


def test_a_recorded_run_is_printed_without_a_gpu(capsys: pytest.CaptureFixture[str], tmp_path: Any) -> None:
    record = Path(__file__).parents[3] / "benchmarks/results/atoms-h200-2026-11-20.json"
    assert main(["bench", "atoms", "--from", str(record)]) == 0
    lines = {line.split()[0]: line for line in capsys.readouterr().out.splitlines() if line}
    assert "emulated" in lines["s4.m16n8k64"]
    assert "native" in lines["s8.wgmma.m64n128k32"]
    assert "emulated" in lines["b1.m16n8k256.xor"]
    damaged = tmp_path / "damaged.json"
    for text in ("{", "[]", '{"kind": "atoms"}'):
        damaged.write_text(text)
        assert main(["bench", "--from", str(damaged)]) == 2
        assert "no record of `subbyte bench`" in capsys.readouterr().err
    assert main(["bench", "--from", str(tmp_path / "absent.json")]) == 2
    assert main(["bench", "atoms", "--out", "/proc/none/atoms.json"]) == 2
    assert "cannot write /proc/none/atoms.json" in capsys.readouterr().err
    assert main(["bench", "resnet50.stage2@8", "--from", str(record)]) == 2
    assert "leave out WORKLOADs" in capsys.readouterr().err


def test_command_prints_and_writes(
    device: CudaDevice, tmp_path: Any, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    measure: Callable[..., dict[str, Any]] = measure_atoms
    monkeypatch.setattr("subbyte.gpu.device.CudaDevice", lambda _: device)
    monkeypatch.setattr(
        "subbyte.measure.atoms.measure_atoms", lambda used, say, only: measure(used, _build, say, only=only)
    )
    target = tmp_path / "new" / "atoms.json"
    assert main(["bench", "atoms", "wgmma.sp", "--json", "--out", str(target)]) == 0
    printed = json.loads(capsys.readouterr().out)
    assert printed["command"] == "bench"
    assert printed["kind"] == "atoms"
    assert {"wgmma.sp" in row["atom"] for row in printed["atoms"]} == {True}
    assert json.loads(target.read_text())["schema"] == 1


def test_steps_share_no_operand() -> None:
    case = next(case for case in ALL if case.atom.endswith("k32.shared"))
    run, *_ = _run(case, trace=True)
    rows = run.trace[run.trace["kind"] == KINDS.index("wgmma")]
    assert len(np.unique(rows["shared"])) == STEPS


@pytest.mark.sample("b1.m16")
@pytest.mark.parametrize(
    ("name", "opcode"),
    [("b1.m16n8k256.and", "BMMA"), ("b1.wgmma.m64n128k256", "BGMMA"), ("s8.wgmma.m64n128k32.unpacked", "IGMMA")],
)
def test_the_program_of_an_instruction_can_be_read(name: str, opcode: str) -> None:
    program = atom_kernel(name)
    reading = kernel_reading(program)
    assert any(one.startswith(opcode) for one in reading.counts["matrix"])
    assert reading.rows["tir"] == ()
    assert reading.title().startswith(f"Kernel of the measured peak of {name} on sm_90a")
    assert program.resources.local_bytes == 0
    with pytest.raises(Unsupported, match="subbyte bench atoms"):
        program.run()


def test_native_and_emulated_programs_are_compared() -> None:
    reading = kernel_reading(atom_kernel("b1.m16n8k256.and"), atom_kernel("b1.m16n8k256.xor"))
    assert reading.config == "b1, and (native)"
    assert reading.other == "b1, xor (emulated)"
    counts = {fact.name: (fact.value, fact.other) for fact in reading.facts}
    native, emulated = counts["instructions in all"]
    assert emulated is not None
    assert emulated > 3 * native


def test_programs_that_do_not_exist_are_refused() -> None:
    with pytest.raises(InvalidInput, match="did you mean"):
        atom_kernel("s8.m16n8k64")
    with pytest.raises(InvalidInput, match="is not measured on sm_80"):
        atom_kernel("s8.wgmma.m64n128k32", "sm_80")
