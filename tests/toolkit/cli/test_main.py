"""The command line as a whole: exit codes, messages, lazy imports."""

import json
import os
import subprocess
import sys
from importlib import import_module

import pytest

from subbyte import __version__, errors
from subbyte.cli import main as cli
from subbyte.cli import workloads


def spawn(*argv, code=None):
    command = [sys.executable, "-c", code] if code else [sys.executable, "-m", "subbyte", *argv]
    return subprocess.run(command, capture_output=True, text=True, timeout=60, env={**os.environ}, check=False)


@pytest.mark.parametrize("command", cli.COMMANDS)
def test_every_command_has_a_module_and_a_help_with_an_example(command, capsys):
    module = import_module(f"subbyte.cli.{command}")
    assert callable(module.add_parser)
    assert callable(module.run)
    assert cli.main([command, "--help"]) == 0
    shown = capsys.readouterr().out
    assert f"subbyte {command}" in shown.partition("example")[2]


def test_version_and_help(capsys):
    assert cli.main(["--version"]) == 0
    assert capsys.readouterr().out == f"subbyte {__version__}\n"
    assert cli.main(["--help"]) == 0
    shown = capsys.readouterr().out
    assert all(command in shown for command in cli.COMMANDS)


def test_no_command_prints_help_on_stderr(capsys):
    assert cli.main([]) == 2
    out, err = capsys.readouterr()
    assert out == ""
    assert "COMMAND" in err


@pytest.mark.parametrize(
    ("argv", "words"),
    [
        (["wrkloads"], "unknown command 'wrkloads': did you mean workloads or records?"),
        (["workloads", "--jsno"], "unknown argument '--jsno': did you mean --json"),
        (["--verbose"], "unknown argument '--verbose'"),
        (["--tile", "explain", "duplicates"], "put it after the command, `subbyte explain duplicates --tile`"),
        (["build", "resnet50.stage2@8", "--set", "chunk=2", "CHUNK=4"], "--set CHUNK=4: chunk is set twice"),
        (["tune", "resnet50.stage2@8", "--set", "layout=nhwc", "--set", "layout=nhwcnc"], "layout is set twice"),
        (["tune", "resnet50.stage2@8", "--trials", "some"], "'some': expected a positive integer, or all"),
        (["tune", "resnet50.stage2@8", "--resume"], "give log=FILE (--log FILE)"),
        (["bench", "--bundle", "none"], "none holds no bundle"),
        (["explain", "duplicates", "--warp", "3/2"], "warp 3: 2 of them share the tile, counted from 0"),
        (
            ["explain", "duplicates", "--tiel=1x4"],
            "did you mean --tile or --help?; see `subbyte explain duplicates --help`",
        ),
        (
            ["explain", "fragments", "--family", "warpgroup"],
            "unknown argument '--family': allowed: --help, --instruction, --json, --version; see",
        ),
        (["workloads", "resnet5"], "unknown workload 'resnet5': did you mean resnet50"),
    ],
)
def test_bad_input_is_one_message_and_2(argv, words, capsys):
    assert cli.main(argv) == 2
    out, err = capsys.readouterr()
    assert out == ""
    assert err.startswith("subbyte: ")
    assert err.count("\n") == 1
    assert words in err


@pytest.mark.parametrize(
    ("error", "code"),
    [
        (errors.WrongResult("wrong"), 1),
        (errors.BuildFailed("wrong"), 1),
        (errors.InvalidInput("wrong"), 2),
        (errors.MissingDependency("wrong"), 3),
        (KeyboardInterrupt(), 130),
    ],
)
def test_errors_become_exit_codes(error, code, monkeypatch, capsys):
    def run(args):
        raise error

    monkeypatch.setattr(workloads, "run", run)
    assert cli.main(["workloads"]) == code
    err = capsys.readouterr().err
    assert err == ("subbyte: interrupted\n" if code == 130 else "subbyte: wrong\n")


@pytest.mark.parametrize(
    ("argv", "command", "kind", "code"),
    [
        (["workloads", "resnet5", "--json"], "workloads", "InvalidInput", 2),
        (["workloads", "--json", "--jsno"], "workloads", "InvalidInput", 2),
        (["tune", "--json"], "tune", "InvalidInput", 2),
        (["wrkloads", "--json"], "wrkloads", "InvalidInput", 2),
        (["--json"], None, "InvalidInput", 2),
        (["--json", "workloads", "alexnet"], "workloads", "InvalidInput", 2),
    ],
)
def test_with_json_a_failure_is_one_object_on_stdout_too(argv, command, kind, code, capsys):
    assert cli.main(argv) == code
    out, err = capsys.readouterr()
    told = json.loads(out)  # one object and nothing else
    assert (told["schema"], told["command"]) == (1, command)
    assert told["error"] == {"kind": kind, "message": err.removeprefix("subbyte: ").rstrip("\n"), "exit_code": code}


@pytest.mark.parametrize(
    ("error", "kind", "code"),
    [(errors.WrongResult("wrong"), "WrongResult", 1), (KeyboardInterrupt(), "Interrupted", 130)],
)
def test_the_object_names_what_was_raised(error, kind, code, monkeypatch, capsys):
    def run(args):
        raise error

    monkeypatch.setattr(workloads, "run", run)
    assert cli.main(["workloads", "--json"]) == code
    told = json.loads(capsys.readouterr().out)["error"]
    assert (told["kind"], told["exit_code"]) == (kind, code)


def test_a_defect_is_not_hidden(monkeypatch):
    def run(args):
        raise RuntimeError("a defect")

    monkeypatch.setattr(workloads, "run", run)
    with pytest.raises(RuntimeError, match="a defect"):
        cli.main(["workloads"])


def test_only_the_command_asked_for_is_imported():
    code = (
        "import sys; from subbyte.cli.main import main; main(['workloads', 'vgg16']);"
        "print(sorted({m.split('.')[0] for m in sys.modules} & {'tvm', 'cuda', 'pandas', 'rich'}),"
        " [m for m in sys.modules if m.startswith('subbyte.cli.')], file=sys.stderr)"
    )
    done = spawn(code=code)
    assert done.returncode == 0
    loaded = [f"subbyte.cli.{name}" for name in ("arguments", "parser", "main", "workloads")]
    assert done.stderr.strip() == f"[] {loaded}"


@pytest.mark.skipif(sys.platform == "win32", reason="pipes close differently")
def test_a_reader_that_leaves_early_causes_no_noise():
    read, write = os.pipe()
    os.close(read)
    done = subprocess.run(
        [sys.executable, "-m", "subbyte", "workloads", "vgg16"], stdout=write, stderr=subprocess.PIPE, check=False
    )
    os.close(write)
    assert done.stderr == b""
    assert done.returncode == 141


@pytest.mark.parametrize("topic", ["tiling", "duplicates", "packing", "layout", "fragments", "taps", "speed",
                                   "bits", "planes", "thresholds"])  # fmt: skip
def test_the_example_of_a_topic_works(topic, capsys):
    assert cli.main(["explain", topic, "--help"]) == 0
    example = capsys.readouterr().out.rsplit("example:", 1)[1].split()
    assert example[:3] == ["subbyte", "explain", topic]
    assert cli.main(example[1:]) == 0
