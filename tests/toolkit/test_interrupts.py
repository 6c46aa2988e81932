"""Ctrl-C to the whole group of a program, as a terminal sends it, at random moments."""

import json
import random
import signal
import subprocess
import sys

import pytest
from hostile.areas.interrupts import COMMANDS, interrupt

DRAWN = random.Random(12)
MOMENTS = [(name, DRAWN.uniform(0, 0.8)) for name in ("race", "tune") for _ in range(5)]


@pytest.mark.sample(2)
@pytest.mark.parametrize(("name", "delay"), MOMENTS)
def test_one_line_and_nobody_left(name, delay):
    interrupt(COMMANDS[name], delay)


def test_where_it_is_ignored_it_stays_ignored():
    code = (
        "import signal, sys; signal.signal(signal.SIGINT, signal.SIG_IGN); from subbyte import interrupts;"
        "interrupts.end_at_once(); interrupts.raise_from_now(); signal.raise_signal(signal.SIGINT); print('on')"
    )
    assert subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout == "on\n"


@pytest.mark.parametrize("kept", [True, False])
def test_an_import_is_finished_first_where_results_are_kept(tmp_path, kept):
    (tmp_path / "slow.py").write_text(
        "import signal, time\ntry:\n    signal.raise_signal(signal.SIGINT); time.sleep(0.1)\n"
        "except BaseException as error:\n    raise ImportError('numpy would say so') from error\n"
    )
    code = (
        "from subbyte import interrupts; interrupts.end_at_once(); interrupts.raise_from_now()\n"
        f"import contextlib, time\nresults = interrupts.keeping() if {kept} else contextlib.nullcontext()\n"
        "try:\n    with results:\n        import slow\n        print('imported')\n        time.sleep(5)\n"
        "except KeyboardInterrupt:\n    print('interrupted')"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, cwd=tmp_path, check=False)
    expected = (0, "imported\ninterrupted\n", "") if kept else (130, "", "subbyte: interrupted\n")
    assert (done.returncode, done.stdout, done.stderr) == expected


def test_before_the_command_begins_it_ends_at_once():
    code = (
        "import sys; sys.argv = ['subbyte', 'tune', '--json']; import signal; from subbyte import interrupts;"
        "interrupts.end_at_once(); signal.raise_signal(signal.SIGINT)"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert (done.returncode, done.stderr) == (128 + signal.SIGINT, "subbyte: interrupted\n")
    error = {"kind": "Interrupted", "message": "interrupted", "exit_code": 130}
    assert json.loads(done.stdout) == {"schema": 1, "command": "tune", "error": error}
