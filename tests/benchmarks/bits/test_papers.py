"""The papers' experiments: sides exist for every point, compositions of launches give the layer, and the convolution of
values is the reference."""

from __future__ import annotations

import json
import sys
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import nullcontext
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

from benchmarks.bits import composed, direct, papers, papers_table, xnor
from benchmarks.bits.paper_kernels import FUSED_POOL, Built
from benchmarks.bits.paper_sides import EXPERIMENTS, PACKED, POOLED, QUANTIZED, SEPARATE, Side, ablation
from subbyte.device.launch import Argument, Launch
from subbyte.emulator import run_cuda
from subbyte.families.bmma.config import BmmaConfig
from subbyte.numerics import reference
from subbyte.workload import workload


@pytest.mark.parametrize(
    "spec", ["n3h7w6c40k24r3s3p1u2:w2a2", "n2h5w5c33k8r3s3p2d2:w1a1:minus", "n9h1w1c70k20r1s1p0:w1a8"]
)
def test_a_convolution_of_values_is_the_reference(spec: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(direct, "AT_ONCE", 5000)  # in several parts
    layer = workload(spec)
    one = Built("", "", "", spec, "bmma-brw1-bcw1-wrt2-wct4-ch1-ri0", "int32", "")
    x, w = one.operands()
    np.testing.assert_array_equal(direct.convolved(layer, x, w, np), reference(layer, x, w))


class Emulated:
    """Launches whose cubins are texts, in the emulator."""

    def __init__(self, steps: Any, given: Any, outputs: Any, device: Any) -> None:
        self.steps, self.outputs = steps, outputs
        self.buffers = dict(given) | {name: np.full(size // 4, 7, np.uint32) for name, size in outputs.items()}

    def run(self, dtype: type[Any]) -> Any:
        for text, launch, names in self.steps:
            pairs = zip(launch.arguments, names, strict=True)
            passed = {argument.name: self.buffers[name].view(argument.dtype) for argument, name in pairs}
            run_cuda(text.decode(), launch, passed, check=False)
        return self.buffers[list(self.outputs)[-1]].view(dtype)

    def launcher(self) -> Any:
        return lambda: None

    def close(self) -> None:
        """Nothing to do."""


class Gpu:
    """Takes 3 microseconds for anything."""

    info = SimpleNamespace(to_dict=lambda: {"name": "made up"}, uuid="made up", bus_id="made up", name="made up")

    def __init__(self, ordinal: int) -> None:
        """The first one."""

    def elapsed_us(self, work: Any) -> float:
        return 3.0


def test_a_record_of_all_that_was_built(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: Any) -> None:
    """Built, then measured on a made-up GPU: outputs are the emulator's, one of them with a wrong word."""
    layer, plain = workload("n8h4w4c64k64r1s1p0:w1a1"), workload("n8h4w4c64k64r1s1p0:w2a2:signed.unsigned")
    small = BmmaConfig().with_values({"blk_row_warps": 1, "blk_col_warps": 1, "warp_row_tiles": 2, "reorder_inner": 0})

    def sides(most: int) -> Iterator[Side]:
        yield Side("first", "one", layer, small, "bipolar1")
        yield Side("first", "one", layer, small, "int32")
        yield Side("first", "apart", plain, small, "int32", SEPARATE)
        yield Side("second", "pooled", layer, small, "bipolar1", POOLED)

    def loaded(one: Built, cubin: bytes, second: bytes | None, words: Any, device: Any) -> Emulated:
        made = Emulated(*one.steps(cubin, second, words), device)
        if one.ends == POOLED:
            made.run = lambda dtype, right=made.run: right(dtype) ^ np.eye(1, made.outputs["Out"] // 4, dtype=dtype)[0]  # type: ignore[method-assign, misc]
        return made

    timing = SimpleNamespace(microseconds=3.0, samples=(3.0,), after=SimpleNamespace(to_dict=dict))
    pool = SimpleNamespace(free_all_blocks=lambda: None)
    monkeypatch.setitem(sys.modules, "cupy", SimpleNamespace(**vars(np), get_default_memory_pool=lambda: pool))
    monkeypatch.setitem(EXPERIMENTS, "T9", sides)
    monkeypatch.setattr(papers, "compiled", str.encode)
    monkeypatch.setattr(papers, "ProcessPoolExecutor", lambda workers: ThreadPoolExecutor(1))
    monkeypatch.setattr(papers, "CudaDevice", Gpu)
    monkeypatch.setattr(papers, "hold", lambda info: nullcontext())
    monkeypatch.setattr(papers, "time_launch", lambda device, launch, how: timing)
    monkeypatch.setattr(Built, "on_gpu", loaded)
    file, out = str(tmp_path / "texts.gz"), tmp_path / "record.json"
    assert papers.main(["--build", file, "--only", "T9"]) == 0
    assert papers.main(["--measure", file, "--only", "T9", "--out", str(out)]) == 1
    record = json.loads(out.read_text())
    assert [(row["side"], row["wrong"]) for row in record["sides"]] == [
        ("one", 0), ("one", 0), ("apart", 0), ("pooled", 1)]  # fmt: skip
    assert [row["elements"] for row in record["sides"]] == [8192, 8192, 8192, 2048]
    assert "WRONG" in capsys.readouterr().out
    assert papers.main(["--measure", file, "--only", "T8", "--out", str(out)]) == 2


@pytest.mark.sample(2)
@pytest.mark.parametrize(
    ("spec", "output", "ends"),
    [
        ("n9h4w4c64k70r1s1p0:w2a2:signed.unsigned", "int32", SEPARATE),
        ("n9h4w4c64k70r1s1p0:w1a2", "uint2", QUANTIZED),
        ("n9h4w4c64k70r1s1p0:w1a1", "bipolar1", POOLED),
        ("n9h4w4c64k70r1s1p0:w1a2", "uint2", ""),
        ("gemm16x40x256:w1a1", "bipolar1", PACKED),
    ],
)
def test_launches_together_give_the_layer(spec: str, output: str, ends: str) -> None:
    one = Built("A3", "", "", spec, "bmma-brw1-bcw1-wrt2-wct4-ch1-ri0", output, ends)
    cubins = [one.kernel.cuda.encode(), one.second_text.encode()]
    x, w = one.operands()
    steps, given, outputs = one.steps(cubins[0], cubins[1] if ends else None, one.words((x, w)))
    buffers: dict[str, Any] = dict(given) | {name: np.full(size // 4, 7, np.uint32) for name, size in outputs.items()}
    for text, launch, names in steps:
        own = [argument.name for argument in launch.arguments]
        passed = {to: buffers[name].view(argument.dtype) for to, name, argument in
                  zip(own, names, launch.arguments, strict=True)}  # fmt: skip
        run_cuda(text.decode(), launch, passed, check=False)
    found = one.values(buffers[list(outputs)[-1]].view(one.written.dtype))
    np.testing.assert_array_equal(found, one.expected(reference(one.layer, x, w), np))
    assert len(np.unique(found)) > 1
    if ends == SEPARATE:
        assert len(steps) == 5


def test_a_product_by_exclusive_or_is_the_product() -> None:
    rng = np.random.default_rng(5)
    x, w = (2 * rng.integers(0, 2, (size, 96), np.int8) - 1 for size in (20, 33))
    shapes = {"Out": 20 * 33, "In0": 20 * 3, "In1": 33 * 3}
    arguments = tuple(
        Argument(name, "uint32", (size,), "out" if name == "Out" else "in") for name, size in shapes.items()
    )
    launch = Launch(composed.ENTRY, (composed.blocks(20 * 33), 1, 1), (composed.THREADS, 1, 1), 0, arguments)
    out = np.full(20 * 33, 7, np.uint32)
    run_cuda(
        composed.xnor_text(20, 33, 96),
        launch,
        {"Out": out, "In0": xnor.bits(x).reshape(-1), "In1": xnor.bits(w).T.reshape(-1)},
        check=False,
    )
    np.testing.assert_array_equal(out.view(np.int32).reshape(20, 33), x.astype(np.int32) @ w.T.astype(np.int32))


@pytest.mark.deep
def test_every_point_has_its_sides() -> None:
    """The ablation, whose switches must be there."""
    found = list(ablation(1))
    names = {(side.point, side.name) for side in found}
    for pair in ("w2a2", "w1a4"):
        for how in (
            "bits registers",
            "bmma registers",
            "bmma shared",
            "bits separate launches",
            "bmma separate launches",
        ):
            assert (f"combine {pair}", how) in names
    assert {side.output for side in found if side.point == "pool @16"} == {"bipolar1", "bipolar1" + FUSED_POOL}
    assert sum(point == "tile w1a2" for point, _ in names) >= 3


def test_a_side_counts_by_its_fastest_exact_kernel(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """A wrong one does not, however fast; the slower of two medians is the time."""

    def row(side: str, first: float, **more: Any) -> dict[str, Any]:
        return {"experiment": "A1", "point": "128", "side": side, "microseconds": first, **more}

    rows = [row("w1a1", 2.0, second=2.5, wrong=0), row("w1a1", 2.1, second=2.2, wrong=0),
            row("w1a2", 1.0, second=1.0, wrong=3), row("w1a2", 4.0, second=4.0, wrong=0), row("w1a2", 3.0, wrong=0),
            {**row("w4a4", 0.0), "reason": "no"}]  # fmt: skip
    assert papers_table.by_side(rows, "A1") == {"w1a1": {"128": 2.2}, "w1a2": {"128": 4.0}}
    path = tmp_path / "record.json"
    path.write_text(json.dumps({"sides": rows}))
    assert papers_table.main([str(path)]) == 0
    text = capsys.readouterr().out
    assert "| w1a1 | 2.20 |" in text
    assert "5 outputs compared, 1 wrong; 1 sides without a result" in text
    assert "at most 25.0%" in text


def test_tables_of_the_notes_are_those_of_the_records() -> None:
    root = Path(__file__).resolve().parents[3] / "benchmarks"
    text = (root / "notes" / "bits_papers.md").read_text(encoding="utf-8")
    found: list[str] = []
    for path in sorted((root / "results" / "bits").glob("papers-*-h?00-*.json")):
        assert path.name in text
        rows = json.loads(path.read_text(encoding="utf-8"))["sides"]
        assert not any(row["wrong"] for row in rows)
        for experiment in dict.fromkeys(row["experiment"] for row in rows):
            found.append(experiment)
            made = papers_table.table_of(papers_table.by_side(rows, experiment))
            assert f"### {experiment}\n\n{made}\n" in text, f"{path.name}: {experiment} has another table"
    for experiment in EXPERIMENTS:
        assert (f"`{experiment}`: not measured yet" in text) is (experiment not in found), experiment
    assert set(found) <= set(EXPERIMENTS)


def said_of_deep_products(packing: papers_table.Times, deep: papers_table.Times) -> list[str]:
    """What the notes say of ``T3 packing`` and ``T3 deep``, by the records' times."""
    sides = ("wgmma, bits", "mma fsb, bits")
    sizes = packing[sides[0]]
    more = {size: [packing[f"{side}, packing"][size] - packing[side][size] for side in sides] for size in sizes}
    small = [one for size in ("128", "256", "512", "1024") for one in more[size]]
    ring, fsb, int8 = packing[sides[0]], packing[sides[1]], packing["cuBLAS int8"]
    ahead = [f"{fsb[size] / ring[size]:.1f}" for size in ("2048", "4096", "8192")]
    one = {side: times["16384"] for side, times in deep.items()}
    faster = [one["cuBLAS int8"] / one[sides[0]], int8["8192"] / ring["8192"]]
    return [
        f"packing adds {min(small):.2f} to {max(small):.2f} us up to 1,024",
        f"{more['2048'][0]:.1f} and {more['2048'][1]:.1f} us at 2,048",
        f"{more['8192'][1]:.1f} and {more['8192'][0]:.1f} at 8,192",
        f"and {packing['xnor, int32']['8192'] / ring['8192']:.0f} at 8,192",
        f"{', '.join(ahead)} times, from 4,096 on",
        f"`wgmma` {one[sides[0]]:.0f} us with bits out",
        f"{one['wgmma, int32']:.0f} with int32 out",
        f"{one['mma plain, bits'] / one[sides[1]]:.2f} times FSB's time",
        f"**int8 {one['cuBLAS int8']:,.0f}, twice",
        f"`wgmma` is {faster[0]:.1f} times as fast here, and {faster[1]:.1f} times at 8,192",
    ]


def test_what_the_notes_say_of_deep_products_is_in_the_records() -> None:
    root = Path(__file__).resolve().parents[3] / "benchmarks"
    text = " ".join((root / "notes" / "bits_papers.md").read_text(encoding="utf-8").split())
    rows = []
    for path in sorted((root / "results" / "bits").glob("papers-t3-*.json")):
        record = json.loads(path.read_text(encoding="utf-8"))
        rows += record["sides"]
        assert "/" not in record["command"]
    packing, deep = (papers_table.by_side(rows, name) for name in ("T3 packing", "T3 deep"))
    assert [said for said in said_of_deep_products(packing, deep) if said not in text] == []
    packing["wgmma, bits"]["8192"] *= 1.1  # a record that the notes are not written from
    assert len([said for said in said_of_deep_products(packing, deep) if said not in text]) == 4
