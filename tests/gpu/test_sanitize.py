"""Variants under a tool: what was printed belongs to the one that ran, nothing is lost, and what is left is known.

This needs no GPU: a program stands in for compute-sanitizer and prints what it and a run would."""

import contextlib
import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

HERE = Path(__file__).parent
NAMES = ("plain", "cluster", "ring", "stem", "nhwc")
COMMITTED = HERE.parents[1] / "benchmarks" / "results" / "warpgroup" / "sanitizer.json"

STANDS_IN = """#!{python}
import json, os, pathlib, signal, sys, time
place = pathlib.Path(__file__).parent
if sys.argv[1:] == ["--version"]:
    sys.exit(print("fake tool") or print("Version 1"))
tool, form = sys.argv[2], sys.argv[sys.argv.index("--here") + 1]
numbers = [int(number) for number in sys.argv[sys.argv.index("--variants") + 1:]]
lines = [json.loads(line) for line in (place / "kernels.jsonl").read_text().splitlines()]
does = json.loads((place / "does.json").read_text())
with open(place / "ran.txt", "a") as file:
    file.write(json.dumps([tool, form, [lines[n]["name"] for n in numbers]]) + "\\n")
print("========= COMPUTE-SANITIZER")
if does.get("all") == "no gpu":
    sys.exit(print("error: no NVIDIA GPU here") or 3)
print('DEVICE {{"name": "Fake", "arch": "sm_90a"}}', flush=True)
reports = 0
for number in numbers:
    name = lines[number]["name"]
    print("\\nVARIANT " + json.dumps([name, "n8h6w6c64k64r3s3p1", "wg-" + name]), flush=True)
    act = does.get(f"{{tool}}, {{form}}, {{name}}", does.get(name, ""))
    if act == "hangs":
        if os.fork() == 0:
            time.sleep(600)
        (place / "hanging.txt").write_text(str(os.getpid()))
        time.sleep(600)
    while act in ("prints", "mutters"):
        print("again and again", end="\\n" if act == "prints" else "", flush=True)
        time.sleep(0.001)
    if act == "crashes":
        os.kill(os.getpid(), signal.SIGSEGV)
    if act == "fails":
        print("failed: the kernel did not end", flush=True)
        sys.exit(75)
    if act == "errors":
        print("========= Error: Race reported between Write access at conv_kernel+0x990")
        print("=========     and Read access at conv_kernel+0x2ef0 [248 hazards]")
        reports += 1
    print(f"RESULT {{3 if act == 'wrong' else 0}} of 64 words", flush=True)
reports += does.get("unassigned", 0)
if does.get("all") != "silent":
    print(f"========= ERROR SUMMARY: {{reports}} errors")
"""


@pytest.fixture
def folder(tmp_path):
    """Variants without cubins, of which the last has no control, and a program that stands in for the tool."""
    lines = [{"name": name, "cubin": "", "cubin_text": f"text of {name}", "every_lane": "",
              "every_lane_text": f"control of {name}"} for name in NAMES]  # fmt: skip
    del lines[-1]["every_lane"], lines[-1]["every_lane_text"]
    write_variants(tmp_path, [{"name": "drawn"}, *lines])
    (tmp_path / "tool").write_text(STANDS_IN.format(python=sys.executable))
    (tmp_path / "tool").chmod(0o755)
    does(tmp_path)
    return tmp_path


def write_variants(folder, lines):
    (folder / "kernels.jsonl").write_text("".join(json.dumps(line) + "\n" for line in lines if line["name"] != "drawn"))


def does(folder, **what):
    (folder / "does.json").write_text(json.dumps(what))


def run(folder, *more, tools=("memcheck",)):
    """Exit code, the entries of the tools, and what the stand-in was asked for this time."""
    import sanitize

    (folder / "ran.txt").write_text("")
    status = sanitize.main([str(folder), "--record", str(folder / "record.json"), "--program", str(folder / "tool"),
                            "--limit", "2", "--tools", *tools, *more])  # fmt: skip
    record = folder / "record.json"
    found = json.loads(record.read_text())["tools"] if record.exists() else {}
    return status, found, [json.loads(line) for line in (folder / "ran.txt").read_text().splitlines()]


def test_reports_belong_to_the_variant_that_ran(folder):
    does(folder, cluster="errors", ring="wrong")
    status, found, ran = run(folder)
    entries = found["memcheck, as built"]
    assert status == 1
    assert list(entries) == list(NAMES)
    assert [one["clean"] for one in entries.values()] == [True, False, False, True, True]
    assert [one["wrong"] for one in entries.values()] == [0, 0, 3, 0, 0]
    assert entries["cluster"]["reports"] == 2
    assert entries["cluster"]["races"] == {"Write, Read": 248}
    assert entries["cluster"]["config"] == "wg-cluster"
    assert entries["plain"]["text"] == "text of plain"
    assert len(ran) == 1


def test_what_hangs_or_crashes_is_recorded_and_the_next_goes_on(folder, capsys):
    does(folder, plain="hangs", ring="crashes", stem="fails")
    status, found, ran = run(folder)
    ended = {name: one["ended"] for name, one in found["memcheck, as built"].items()}
    assert status == 1
    assert ended["plain"] == "timed out after 2 s"
    assert ended["ring"] == "signal 11"
    assert ended["stem"] == "exit code 75"
    assert [name for name, how in ended.items() if how == "done"] == ["cluster", "nhwc"]
    assert [names[0] for _, _, names in ran] == ["plain", "cluster", "stem", "nhwc"]
    assert found["memcheck, as built"]["stem"]["first"] == ["failed: the kernel did not end"]
    assert "memcheck, as built: 2 clean, 3 not ended" in capsys.readouterr().out
    does(folder)
    status, found, ran = run(folder)
    assert [names for _, _, names in ran] == [["plain", "ring", "stem"]]
    assert status == 0


@pytest.mark.parametrize("act", ["prints", "mutters"])
def test_what_does_not_stop_printing_is_ended_too(folder, act):
    does(folder, cluster=act)
    status, found, ran = run(folder)
    ended = {name: one["ended"] for name, one in found["memcheck, as built"].items()}
    assert status == 1
    assert ended == dict.fromkeys(NAMES, "done") | {"cluster": "timed out after 2 s"}
    assert [names[0] for _, _, names in ran] == ["plain", "ring"]


def test_the_hanging_process_and_its_children_are_gone(folder):
    does(folder, plain="hangs")
    run(folder)
    group = (folder / "hanging.txt").read_text()
    deadline = time.monotonic() + 10
    while running_in(group) and time.monotonic() < deadline:
        time.sleep(0.1)
    assert running_in(str(os.getpgid(0)))
    assert not running_in(group)


def running_in(group):
    """Processes of a process group that are not merely waited for."""
    found = []
    for path in Path("/proc").glob("[0-9]*/stat"):
        with contextlib.suppress(OSError):
            state, _, of = path.read_text().rpartition(")")[2].split()[:3]
            found += [path.parent.name] if of == group and state not in "ZX" else []
    return found


@pytest.mark.deep
def test_the_missing_come_first_then_other_texts_then_what_did_not_end(folder):
    does(folder, cluster="hangs")
    run(folder)
    lines = [json.loads(line) for line in (folder / "kernels.jsonl").read_text().splitlines()]
    lines[3]["cubin_text"] = "another"
    write_variants(folder, [*lines, {"name": "new", "cubin": "", "cubin_text": "text of new"}])
    does(folder)
    status, found, ran = run(folder)
    assert [names for _, _, names in ran] == [["new"], ["stem"], ["cluster"]]
    assert found["memcheck, as built"]["stem"]["text"] == "another"
    assert status == 0
    assert run(folder)[2] == []


def test_racecheck_must_be_clean_on_the_control_and_where_there_is_none(folder):
    does(folder, **{f"racecheck, as built, {name}": "errors" for name in NAMES})
    assert run(folder, tools=("racecheck",))[0] == 1
    (folder / "record.json").unlink()
    does(folder, **{f"racecheck, as built, {name}": "errors" for name in NAMES[:-1]})
    status, found, ran = run(folder, tools=("racecheck",))
    assert status == 0
    assert [(form, len(names)) for _, form, names in ran] == [("every lane arrives", 4), ("as built", 5)]
    assert [one["clean"] for one in found["racecheck, as built"].values()] == [False] * 4 + [True]
    does(folder, **{"racecheck, every lane arrives, ring": "errors"})
    (folder / "record.json").unlink()
    assert run(folder, tools=("racecheck",))[0] == 1


@pytest.mark.parametrize(
    ("what", "ended"), [({"all": "silent"}, "the tool gave no summary"), ({"unassigned": 2}, "the tool counted 2")]
)
def test_a_tool_that_does_not_count_what_it_said_cleans_nothing(folder, what, ended):
    does(folder, **what)
    status, found, _ = run(folder)
    assert status == 1
    assert all(one["ended"].startswith(ended) and not one["clean"] for one in found["memcheck, as built"].values())


def test_without_a_gpu_one_sentence(folder, capsys):
    does(folder, all="no gpu")
    assert run(folder)[0] == 3
    said = capsys.readouterr()
    assert said.err == "error: no variant could begin (exit code 3): no NVIDIA GPU here\n"
    assert not (folder / "record.json").exists()


def test_without_the_tool_one_sentence(folder, capsys, monkeypatch):
    import sanitize

    monkeypatch.setattr(sanitize, "find", lambda: None)
    assert sanitize.main([str(folder), "--record", str(folder / "record.json")]) == 3
    assert capsys.readouterr().err.startswith("error: no compute-sanitizer on this machine")
    options = [str(folder), "--record", str(folder / "record.json"), "--program", str(folder / "no tool")]
    assert sanitize.main(options) == 3
    assert "no tool on this machine" in capsys.readouterr().err
    assert sanitize.main([str(folder / "nothing"), "--record", str(folder / "record.json"), "--missing"]) == 2
    assert "build_kernels.py" in capsys.readouterr().err


def settled(folder):
    record = folder / "record.json"
    return list(json.loads(record.read_text())["tools"]["memcheck, as built"]) if record.exists() else []


@pytest.mark.deep
def test_what_was_settled_outlives_the_program(folder):
    does(folder, stem="hangs")
    command = [sys.executable, str(HERE / "sanitize.py"), str(folder), "--record", str(folder / "record.json"),
               "--program", str(folder / "tool"), "--limit", "60", "--tools", "memcheck"]  # fmt: skip
    running = subprocess.Popen(command, stdout=subprocess.DEVNULL)
    deadline = time.monotonic() + 60
    while time.monotonic() < deadline and not ((folder / "hanging.txt").exists() and len(settled(folder)) == 3):
        time.sleep(0.05)
    running.send_signal(signal.SIGKILL)
    running.wait()
    os.killpg(int((folder / "hanging.txt").read_text()), signal.SIGKILL)
    assert settled(folder) == ["plain", "cluster", "ring"]
    does(folder)
    status, _, ran = run(folder)
    assert [names for _, _, names in ran] == [["stem", "nhwc"]]
    assert status == 0


def test_no_time_left_is_no_verdict(folder):
    does(folder, ring="hangs")
    status, found, _ = run(folder, "--limit", "60", "--seconds", "3")
    assert status == 1
    assert list(found["memcheck, as built"]) == ["plain", "cluster"]


def test_a_run_ends_with_whoever_started_it():
    code = "import sanitize, time, threading; threading.Thread(target=sanitize.end_with_input).start(); time.sleep(60)"
    running = subprocess.Popen([sys.executable, "-c", code], stdin=subprocess.PIPE, cwd=HERE)
    running.stdin.close()
    assert running.wait(30) == 75


def test_what_the_committed_record_lacks_is_said_without_a_gpu(folder, capsys):
    import sanitize
    from warpgroup_cases import VARIANTS

    committed = json.loads(COMMITTED.read_text())
    write_variants(folder, [{"name": name, "cubin": "", "cubin_text": name} for name in (*VARIANTS, "new")])
    record = sanitize.read_record(COMMITTED)
    states = {name: sanitize.state_of(record, ("memcheck", "as built"), one)
              for name, one in ((one["name"], one) for one in sanitize.read_variants(folder))}  # fmt: skip
    if committed["schema"] == 1:  # its entries name no text: they are of kernels that were other ones
        assert set(states.values()) == {sanitize.NEVER, sanitize.OTHER_TEXT}
    before = COMMITTED.read_bytes()
    assert sanitize.main([str(folder), "--record", str(COMMITTED), "--missing"]) == 1
    assert COMMITTED.read_bytes() == before
    said = capsys.readouterr().out
    assert f"memcheck, as built: {sum(s == sanitize.OTHER_TEXT for s in states.values())} with another text" in said
    assert "  never run: new\n" in said
