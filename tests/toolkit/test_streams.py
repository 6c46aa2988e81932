"""The program whose standard streams are closed or full, and its last net."""

import json
import subprocess
import sys

import pytest

from subbyte import __main__ as entry


def shell(line):
    """Exit code, stdout and stderr of ``subbyte`` with the words and redirections of a shell."""
    done = subprocess.run(
        ["sh", "-c", f"{sys.executable} -m subbyte {line}"], capture_output=True, text=True, check=False
    )
    return done.returncode, done.stdout, done.stderr


@pytest.mark.parametrize(
    ("line", "reason"),
    [("workloads vgg16 >/dev/full", "cannot be written: No space left"),
     ("--help >/dev/full", "cannot be written: No space"), ("workloads vgg16 --json >&-", "is closed")],
)  # fmt: skip
def test_an_output_that_cannot_be_written_is_one_line_and_3(line, reason):
    code, _, err = shell(line)
    assert code == 3
    assert err.startswith("subbyte: the standard output ")
    assert reason in err
    assert err.count("\n") == 1


@pytest.mark.parametrize("stream", ["2>&-", "2>/dev/full"])
def test_messages_never_go_to_stdout(stream):
    code, out, err = shell(f"workloads nope --json {stream}")
    assert (code, err) == (2, "")
    assert json.loads(out)["error"]["exit_code"] == 2


@pytest.mark.parametrize("shown", [False, True])
def test_a_fault_of_ours_is_one_sentence_and_70(monkeypatch, capsys, shown):
    def broken():
        raise RecursionError("maximum\ndepth")

    monkeypatch.setattr("subbyte.cli.main.main", broken)
    monkeypatch.setattr("subbyte.interrupts.end_at_once", lambda: None)
    monkeypatch.setattr("subbyte.interrupts.ignore", lambda: None)
    monkeypatch.setenv("SUBBYTE_TRACEBACK", "1" if shown else "")
    assert entry.program() == 70
    err = capsys.readouterr().err
    assert "this is a fault of subbyte, please report it (RecursionError: maximum depth)" in err
    assert ("Traceback" in err) == shown
    assert ("SUBBYTE_TRACEBACK=1 shows where" in err) != shown
