"""``subbyte tune``: output on stdout, all else on stderr, exit codes, logs that are resumed."""

from __future__ import annotations

import json
import sys

import pytest

import subbyte
from subbyte.cli.main import main
from subbyte.cli.tune import _left_out
from subbyte.measure.fake import FakeRunner
from subbyte.tune import Landscape, read_log

WORKLOAD = "n8h7w7c64k64r3s3p1"
FAKE = ["tune", WORKLOAD, "--runner", "fake", "--trials", "12"]


@pytest.fixture(autouse=True)
def no_gpu(monkeypatch, tmp_path):
    monkeypatch.setattr("subbyte.tune.sources.has_gpu", lambda: False)
    monkeypatch.setattr("subbyte.records.landscape_file.SHIPPED", tmp_path)


def test_summary_and_json(capsys):
    assert main(FAKE) == 0
    out, err = capsys.readouterr()
    assert out.startswith(f"{WORKLOAD}  12 trials on fake\n  best    ")
    assert "config  blk_row_warps=" in out
    assert err == ""
    assert main([*FAKE, "--json", "--seed", "3", "--strategy", "exhaustive:order=descending"]) == 0
    data = json.loads(capsys.readouterr().out)
    assert (data["schema"], data["command"], data["interrupted"]) == (1, "tune", False)
    (row,) = data["workloads"]
    assert (row["trials"], row["seed"], row["strategy"]) == (12, 3, "exhaustive")
    assert row["options"] == {"order": "descending"}
    assert row["best_config"]["layout"] == "nhwcnc"


def test_a_log_is_resumed_and_not_overwritten(tmp_path, capsys):
    log = tmp_path / "a.jsonl"
    assert main([*FAKE, "--log", str(log)]) == 0
    first = read_log(log).trials
    assert main([*FAKE, "--log", str(log)]) == 2
    assert "--resume" in capsys.readouterr().err
    assert main(["tune", WORKLOAD, "--runner", "fake", "--trials", "20", "--log", str(log), "--resume"]) == 0
    assert read_log(log).trials[:12] == first
    assert len(read_log(log).trials) == 20


def test_a_damaged_log_exits_2_naming_the_line(tmp_path, capsys):
    log = tmp_path / "a.jsonl"
    main([*FAKE, "--log", str(log)])
    lines = log.read_text().splitlines(keepends=True)
    log.write_text("".join([*lines[:3], "damage\n", *lines[4:]]))
    assert main([*FAKE, "--log", str(log), "--resume"]) == 2
    assert "line 4" in capsys.readouterr().err


def test_switches_are_set_and_knobs_are_not(capsys):
    assert main([*FAKE, "--json", "--set", "layout=NHWC", "register-packing=off"]) == 0
    config = json.loads(capsys.readouterr().out)["workloads"][0]["best_config"]
    assert (config["layout"], config["register_packing"]) == ("nhwc", False)
    assert main([*FAKE, "--set", "chunk=2"]) == 2
    assert "--set chunk: a knob, which the search chooses" in capsys.readouterr().err


def test_replay_of_a_landscape_file(tmp_path, capsys):
    space = subbyte.space(WORKLOAD)
    results = FakeRunner(failures={"timeout": 0.2}).run(space.workload, [space.config(index) for index in space.valid])
    recorded = Landscape.from_results(space, dict(zip(space.valid, results, strict=True)), {"name": "some GPU"})
    file = str(recorded.save(tmp_path / "toy.json.gz"))
    arguments = ["tune", WORKLOAD, "--runner", "replay", "--landscape", file, "--trials", "all"]
    arguments += ["--strategy", "random"]
    assert main(arguments) == 0
    out = capsys.readouterr().out
    assert "on some GPU, the whole space" in out
    assert "100.0% of the optimum" in out
    assert "timeout failed)" in out


def test_an_unknown_space_is_not_said_to_lack_a_gpu(capsys):
    assert main(["tune", WORKLOAD, "--space", "papr"]) == 2
    assert "did you mean paper" in capsys.readouterr().err


def test_nothing_that_can_measure_exits_3(capsys):
    (empty := capsys).readouterr()
    assert main(["tune", "n8h9w9c64k64r3s3p1"]) == 3
    assert "no GPU and no landscape" in empty.readouterr().err


@pytest.mark.parametrize(
    ("arguments", "says"),
    [
        (["--trials", "0"], "positive integer"),
        (["--trials", "many"], "positive integer"),
        (["--strategy", "anneal"], "unknown strategy"),
        (["--runner", "gpu"], "unknown runner"),
        (["--resume"], "log=FILE"),
        (["--space", "papr"], "did you mean paper"),
    ],
)
def test_odd_arguments_exit_2(arguments, says, capsys):
    assert main([*FAKE, *arguments]) == 2
    assert says in capsys.readouterr().err


def test_the_wgmma_space_of_another_architecture_is_refused_in_a_sentence(capsys):
    command = ["tune", "n24h3w6c64k64r3s3p0", "--space", "wgmma", "--runner", "fake", "--trials", "3"]
    assert main([*command, "--arch", "sm_80"]) == 2
    assert "wgmma exists only on sm_90a, not on sm_80" in capsys.readouterr().err
    assert main(command) == 0
    assert "tile_width=" in capsys.readouterr().out


def test_without_a_working_configuration_it_falls_short(monkeypatch, capsys):
    monkeypatch.setattr("subbyte.tune.sources._open", lambda *_: FakeRunner(failures={"launch": 1.0}))
    assert main(FAKE) == 1
    assert "(12 launch failed)" in capsys.readouterr().out


def test_ctrl_c_prints_the_best_so_far(monkeypatch, capsys):
    class Interrupted(FakeRunner):
        def run(self, workload, configs):
            if self.device.get("used"):
                raise KeyboardInterrupt
            self.device = {**self.device, "used": True}
            return super().run(workload, configs)

    monkeypatch.setattr("subbyte.tune.sources._open", lambda *_: Interrupted())
    assert main(FAKE) == 130
    out = capsys.readouterr().out
    assert "1 trial on fake, interrupted" in out
    assert "best" in out


def test_the_bar_is_drawn_on_a_terminal(monkeypatch, capsys):
    monkeypatch.setattr(sys.stderr, "isatty", lambda: True, raising=False)
    assert main([*FAKE, "--json"]) == 0
    out, err = capsys.readouterr()
    assert json.loads(out)["workloads"][0]["trials"] == 12
    assert WORKLOAD in err


def test_a_network_is_tuned_with_one_budget_and_a_page(tmp_path, capsys, monkeypatch):
    page = tmp_path / "report.html"
    arguments = ["tune", "alexnet@8", "--runner", "fake", "--trials", "24", "--report", str(page)]
    assert main([*arguments, "--json"]) == 0
    out, err = capsys.readouterr()
    data = json.loads(out)
    assert sum(row["trials"] for row in data["workloads"]) == 24
    assert (data["network"], data["budget"]) == ("alexnet@8", 24)
    assert str(page) in err
    assert "<svg" in page.read_text()
    monkeypatch.setattr(sys.stderr, "isatty", lambda: True, raising=False)
    assert main(arguments) == 0
    out, err = capsys.readouterr()
    assert "alexnet@8  " in out
    assert "tuned layers, as often as they occur" in out
    assert "24/24" in err


@pytest.mark.parametrize(
    ("arguments", "says"),
    [
        (["--device", "gpu0"], "must be a GPU number"),
        (["--timeout", "0"], "seconds above 0"),
        (["--timeout", "soon"], "seconds above 0"),
    ],
)
def test_odd_devices_and_limits_exit_2(arguments, says, capsys):
    assert main([*FAKE, *arguments]) == 2
    assert says in capsys.readouterr().err


@pytest.mark.parametrize(("setting", "message"), [("chunk=1", "--set chunk: a knob"), ("layout=nhwc", "layout")])
def test_settings_that_a_landscape_cannot_follow_are_refused(capsys, repository, setting, message):
    file = repository / "toolkit" / "subbyte" / "landscapes" / "resnet50.stage2@8.paper.sm_90a.json.gz"
    arguments = ["tune", "resnet50.stage2@8", "--landscape", str(file), "--trials", "3"]
    assert main(arguments) == 0
    assert main([*arguments, "--set", setting]) == 2
    assert message in capsys.readouterr().err


@pytest.mark.parametrize("content", [b"my only notes, no newline", b"\0" * 300])
def test_resuming_in_somebody_elses_file_leaves_it_alone(tmp_path, capsys, content):
    notes = tmp_path / "notes.txt"
    notes.write_bytes(content)
    arguments = ["tune", "resnet50.stage2@8", "--runner", "fake", "--trials", "3", "--log", str(notes), "--resume"]
    assert main(arguments) == 2
    assert "not a record log" in capsys.readouterr().err
    assert notes.read_bytes() == content


def test_layers_left_out_for_one_reason_share_a_line():
    told = _left_out({"a@8": "nothing measures a@8", "b@8": "nothing measures b@8", "c@8": "too small"})
    assert told == ["2 layers were not tuned (a@8, b@8): nothing measures them", "c@8 was not tuned: too small"]


def test_a_cut_log_is_one_message(tmp_path, capsys):
    log = tmp_path / "a.jsonl"
    arguments = ["tune", "n8h7w7c64k64r3s3p1", "--runner", "fake", "--strategy", "random", "--log", str(log)]
    assert main([*arguments, "--trials", "5"]) == 0
    log.write_bytes(log.read_bytes()[:-20])
    capsys.readouterr()
    assert main([*arguments, "--trials", "6", "--resume"]) == 0
    told = capsys.readouterr().err.splitlines()
    assert len(told) == 1
    assert told[0].startswith(f"subbyte: {log}, line 6: cut short by a crash")


@pytest.mark.parametrize(
    ("space", "setting", "switches"),
    [
        ("wgmma", "tile_width=8", "duplicate_aware, register_packing, layout"),
        ("wgmma", "multicast=2", "duplicate_aware, register_packing, layout"),
        ("warpgroup", "ring=2", "duplicate_aware, register_packing, layout"),
        ("paper", "chunk=2", "atom"),
    ],
)
def test_a_knob_cannot_be_held(capsys, space, setting, switches):
    assert main(["tune", "n8h6w6c32k32r3s3p1", "--runner", "fake", "--space", space, "--set", setting]) == 2
    said = capsys.readouterr().err
    assert f"--set {setting.partition('=')[0]}: a knob, which the search chooses" in said
    assert switches in said


def test_the_space_is_named_where_it_is_not_the_papers(capsys):
    assert main(["tune", "n24h3w6c64k64r3s3p0", "--runner", "fake", "--trials", "2", "--space", "wgmma"]) == 0
    assert "2 trials on fake, wgmma space" in capsys.readouterr().out


def test_a_layer_of_bits_chooses_its_space_and_its_switches(capsys):
    bits = "n8h6w6c64k64r3s3p1:w1a1"
    assert main(["tune", bits, "--runner", "fake", "--trials", "2", "--set", "counted=1"]) == 0
    assert "2 trials on fake, bits space" in capsys.readouterr().out
    assert main(["tune", bits, "--runner", "fake", "--set", "channels=64"]) == 2
    assert "--set channels: a knob, which the search chooses" in capsys.readouterr().err
    assert main(["tune", bits, "n8h6w6c32k32r3s3p1", "--runner", "fake", "--set", "counted=1"]) == 2
    assert "have spaces of several kinds, bits and paper: give --space" in capsys.readouterr().err
