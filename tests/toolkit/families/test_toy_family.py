"""A kind of kernel that the library does not know, with operands that it does not know, from build to view."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import subbyte
from subbyte.cli.main import main
from subbyte.errors import InvalidInput, Unsupported
from subbyte.families import config_from_dict, config_from_key, family_of, space
from subbyte.gpu.check import compare
from subbyte.kernel.choose import best_known
from subbyte.kernel.execute import expected, random_operands, run_words
from subbyte.measure.case import Case
from subbyte.measure.fake import FakeRunner
from subbyte.measure.gpu_worker import Built, build_candidate
from subbyte.measure.replay import ReplayRunner
from subbyte.measure.worker import WorkerPool
from subbyte.numerics import Requantization, reference
from subbyte.records.landscape import Landscape
from subbyte.records.recorded_space import space_of
from subbyte.technique import Tiling, explained
from subbyte.tune import tune
from subbyte.tune.search.features import Features
from subbyte.tune.study import Study

Json = dict[str, Any]


def said(capsys: pytest.CaptureFixture[str], *argv: str) -> Json:
    assert main([*argv, "--json"]) == 0, capsys.readouterr().err
    found: Json = json.loads(capsys.readouterr().out)
    return found


def recorded(spec: str, folder: Path) -> Path:
    """Every configuration of a layer's space with made-up times."""
    found = space(spec, kind="toy")
    runner = FakeRunner(3)
    results = dict(zip(found.valid, runner.run(found.workload, [found.config(i) for i in found.valid]), strict=True))
    path = folder / "toy.json.gz"
    Landscape.from_results(found, results, runner.device).save(path)
    return path


@pytest.mark.sample(1)
@pytest.mark.parametrize(
    ("key", "output"), [("toy-th64-wo1", "uint2"), ("toy-th32-wo2-un1-nhwc", "int32"), ("toy-th128-wo4", "uint2")]
)
def test_a_kernel_is_built_and_exact(toy: str, key: str, output: str) -> None:
    kernel = subbyte.build(toy, config_from_key(key), output=output)
    assert kernel.config.key == key
    assert kernel.cubin[:4] == b"\x7fELF"
    assert kernel.resources.spill_store_bytes == 0
    assert "conv_kernel" in kernel.cuda
    assert "@T.prim_func" in kernel.tir
    x, w, requant = random_operands(kernel, seed=1)
    assert set(np.unique(w)) == {0, 1, 2, 4}
    report = compare(kernel.run(x, w, requant, device="emulator"), expected(kernel, x, w, requant))
    assert report.ok, report


def test_general_requantization_is_exact(toy: str) -> None:
    kernel = subbyte.build(toy, config_from_key("toy-th64-wo1"), requant="general")
    x, w, _ = random_operands(kernel, seed=2)
    requant = Requantization.per_tensor(20, 3, 7, bias=11, output=kernel.workload.precision.output)
    assert compare(kernel.run(x, w, requant, device="emulator"), requant.apply(reference(kernel.workload, x, w))).ok


def test_it_is_chosen_where_it_alone_covers(toy: str) -> None:
    layer = subbyte.workload(toy)
    assert family_of(best_known(layer)[0]).name == "toy"
    kernel = subbyte.compile(layer)
    assert kernel.reason.startswith("toy family")
    assert subbyte.build(layer).config == kernel.config
    x, w, _ = random_operands(kernel, seed=3)
    sums = subbyte.conv2d(x, w, pad=1, device="emulator", precision=layer.precision)
    assert np.array_equal(sums, reference(layer, x, w))


def test_other_families_stay_as_they_were(toy: str) -> None:
    layer = subbyte.workload("resnet50.stage2@8")
    assert family_of(best_known(layer)[0]).name != "toy"
    with pytest.raises(Unsupported, match="toy kernels compute w2a2"):
        subbyte.build(layer, config_from_key("toy-th64-wo1"))
    with pytest.raises(Unsupported, match="are shown here; toy-th64-wo1 is of the toy family"):
        explained(Tiling, toy, config_from_key("toy-th64-wo1"))


def test_what_is_refused_says_so_in_one_sentence(toy: str, capsys: pytest.CaptureFixture[str]) -> None:
    for argv, words in (
        (["build", toy, "--set", "words=3"], "words: 3 of 4"),
        (["build", toy, "--family", "toy", "--set", "split_channels=2"], "split_channels is a knob of the mma family"),
        (["build", toy, "--set", "threadz=32"], "did you mean threads"),
        (["build", toy, "--family", "toi"], "toy"),
        (["explain", "threads", toy, "--block", "99"], "block 99: this kernel has"),
        (["explain", "tiling", toy, "--family", "toy"], "only kernels of"),
        (["explain", "threads", toy, "--set", "words=3"], "words: 3 of 4"),
    ):
        assert main(argv) == 2, argv
        out, err = capsys.readouterr()
        assert words in err, err
        assert (out, len(err.splitlines())) == ("", 1)


def test_the_command_line_builds_runs_and_explains(
    toy: str, capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    assert said(capsys, "build", toy, "--set", "threads=32")["config"]["threads"] == 32
    ran = said(capsys, "run", toy, "--device", "emulator", "--save", str(tmp_path / "run.npz"))
    assert ran["check"]["ok"]
    threads = said(capsys, "explain", "threads", toy, "--set", "words=2", "--block", "1")
    assert (threads["topic"], threads["block"], threads["channels"], len(threads["threads"])) == ("threads", 1, 32, 64)
    assert main(["explain", "threads", toy]) == 0
    assert "first channel" in capsys.readouterr().out
    assert main(["explain", "--help"]) == 0
    assert "threads" in capsys.readouterr().out
    row = said(capsys, "workloads", toy)["workloads"][0]
    assert (row["covered"], row["operands"]) == (True, "pow2 x uint2")


def test_a_search_is_logged_and_resumed(toy: str, capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    log = tmp_path / "toy.jsonl"
    first = tune(toy, "fake", "random", 4, log=log, kind="toy")
    assert first.records[0].trials[0].config.key.startswith("toy-")
    again = tune(toy, "fake", "random", 9, log=log, resume=True, kind="toy")
    assert len(again.records[0].trials) == 9
    assert again.records[0].trials[:4] == first.records[0].trials
    command = [
        "tune",
        toy,
        "--runner",
        "fake",
        "--space",
        "toy",
        "--strategy",
        "autotvm",
        "--trials",
        "12",
        "--seed",
        "0",
    ]
    assert said(capsys, *command)["command"] == "tune"


def test_a_recorded_landscape_is_replayed(toy: str, capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    path = recorded(toy, tmp_path)
    held = Landscape.load(path)
    assert (held.kind, len(held.results), held.name) == ("toy", 12, "toy")
    best, result = held.best
    study = Study(space_of(held), "random", 0)
    record = study.run(ReplayRunner(held), None)
    assert record.best is not None
    assert record.best.config == held.config(best)
    assert record.best.result.microseconds == result.microseconds
    found = said(capsys, "tune", toy, "--runner", "replay", "--landscape", str(path), "--space", "toy", "--trials", "5")
    assert found["command"] == "tune"
    assert said(capsys, "landscape", "info", str(path))["kind"] == "toy"


def test_configurations_are_read_back(toy: str) -> None:
    for index in range(len(space(toy, kind="toy"))):
        config = space(toy, kind="toy").config(index)
        assert config_from_key(config.key) == config_from_dict(config.to_dict()) == config
        assert space(toy, kind="toy").index(config) == index
    with pytest.raises(InvalidInput, match="cannot be fixed in a toy space"):
        space(toy, kind="toy", threads=32)
    with pytest.raises(InvalidInput, match="did you mean"):
        space(toy, kind="toi")


def test_a_cost_model_sees_it(toy: str) -> None:
    found = space(toy, kind="toy")
    features = Features(found, "plan")
    assert features.names[-2:] == ("estimate", "threads")
    assert features(found.valid).shape == (12, 5)


def test_views_show_it(toy: str, tmp_path: Path) -> None:
    import subbyte_widgets
    from subbyte_widgets.workbench_view.following import following_views

    choice = subbyte_widgets.Selection(toy, config_from_key("toy-th32-wo2"))
    view = following_views()["Threads"](selection=choice)
    choice.settle()
    assert "threads of block 0" in view.alternative
    assert view.to_svg().count("<text") == 32
    assert "toy-th32-wo2" in view.to_html(tmp_path / "view.html")


@pytest.mark.deep
def test_the_workbench_shows_it(toy: str, tmp_path: Path) -> None:
    import subbyte_widgets

    config = config_from_key("toy-th32-wo2")
    choice = subbyte_widgets.Selection(toy, config)
    bench = subbyte_widgets.Workbench(toy, landscape=recorded(toy, tmp_path), selection=choice)
    assert "toy-th32-wo2" in bench.controls.status.value
    choice.settle()
    shown = {name: one for name, one in bench.following.items() if not one.error}
    assert set(shown) >= {"Threads", "Kernel", "Duplicates"}, {name: one.error for name, one in bench.following.items()}
    assert shown["Kernel"].view.configs == [config.key]
    assert {*shown["Kernel"].switches} == {"layout"}
    assert bench.choosing["Space"].config is None or bench.choosing["Space"].config.key.startswith("toy-")
    assert "only kernels of" in bench.following["Tiling"].error
    choice.configuration = ""
    choice.settle()
    assert "threads of block 0" in bench.following["Threads"].alternative
    bench.close()


def test_processes_that_build_know_it(toy: str) -> None:
    layer, config = subbyte.workload(toy), config_from_key("toy-th64-wo1")
    with WorkerPool(1, "building", 120) as pool:
        built = pool.submit(build_candidate, None, layer, config, "sm_90a").result()
    assert isinstance(built, Built), built
    assert built.cubin == subbyte.build(layer, config).cubin


def test_what_a_gpu_would_be_given_and_asked_is_right(toy: str) -> None:
    for key in ("toy-th64-wo1", "toy-th32-wo2-un1-nhwc"):
        kernel = subbyte.build(toy, config_from_key(key))
        case = Case(kernel.workload, seed=5)
        kernel = kernel.for_requantization(case.requant)
        words = {one.name: case.operand(one) for one in kernel.launch.arguments if one.role == "in"}
        given = kernel.pack(case.x, case.w, case.requant)
        assert all(np.array_equal(words[name], given[name]) for name in given)
        out = run_words(kernel, words, "emulator")
        assert case.check(out, kernel.argument("Out")).ok
        out.flat[0] ^= 1
        assert not case.check(out, kernel.argument("Out")).ok


def test_another_kind_of_space_is_named_in_the_refusal(toy: str) -> None:
    with pytest.raises(Unsupported, match="the toy family covers it: kind='toy'"):
        tune(toy, "fake", trials=1, kind="paper")
    assert tune(toy, "fake", trials=1).records[0].header["space"]["kind"] == "toy"


def test_it_is_exported(toy: str, capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    files = said(capsys, "build", toy, "--set", "threads=32", "--export", str(tmp_path))["files"]
    assert sorted(Path(file).suffix for file in files) == [".cubin", ".h", ".json"]
    described = json.loads(next(tmp_path.glob("*.json")).read_text())
    assert described["operands"]["w"]["device"]["shape"] == [64, 3, 3, 4]


def test_nothing_of_it_stays(toy: str) -> None:
    import toy_family

    with toy_family.registered():
        pass
    with pytest.raises(InvalidInput):
        config_from_key("toy-th64-wo1")
