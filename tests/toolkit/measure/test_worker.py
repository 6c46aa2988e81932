"""Worker processes: every way to die costs one call, says why, and leaves nothing behind."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import threading
import time
from pathlib import Path

import failing
import pytest

from subbyte.errors import InvalidInput, MissingDependency
from subbyte.measure.worker import Worker, WorkerDied, WorkerPool, WorkerRaised, WorkerTimeout, describe_exit
from subbyte.workload import Encoding, Operand, register_encoding, unregister_encoding


@pytest.fixture
def worker():
    made = Worker("test")
    yield made
    made.close()


def gone(pid, seconds=5.0):
    """Whether a process ended (or is a zombie nobody of ours waits for)."""
    deadline = time.monotonic() + seconds
    while time.monotonic() < deadline:
        try:
            state = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0]
        except OSError:
            return True
        if state == "Z":
            return True
        time.sleep(0.02)
    return False


def test_a_process_answers_and_survives_what_functions_raise(worker):
    assert worker.call(failing.double, 21) == 42
    first = worker.call(failing.process)
    for function, error, says in (
        (failing.exhaust, WorkerRaised, "MemoryError: no more"),
        (failing.fill_disk, WorkerRaised, "No space left"),
        (failing.leave, WorkerRaised, "SystemExit: 7"),
        (failing.refuse, MissingDependency, "nothing here"),
        (failing.unpicklable, WorkerRaised, "pickle"),
    ):
        with pytest.raises(error, match=says):
            worker.call(function)
    assert worker.call(failing.process) == first == worker.pid != os.getpid()
    assert worker.starts == 1
    with pytest.raises(InvalidInput, match="define functions in a module"):
        worker.call(lambda: 1)


def test_a_process_knows_the_encodings_that_were_registered_here(worker):
    register_encoding(Encoding("ternary", lambda code, bits: (0, 1, -1, 0)[code & 3], "ter", "-1, 0 and 1"))
    try:
        assert worker.call(Operand.named, "ter2").values == Operand.named("ter2").values == (0, 1, -1, 0)
        assert worker.call(int, "2") == 2  # a process that knows it already
    finally:
        unregister_encoding("ternary")
    worker.close()
    with pytest.raises(InvalidInput, match="operand type 'ter2'"):
        worker.call(Operand.named, "ter2")


@pytest.mark.sample("exit_at_once", "segfault")
@pytest.mark.parametrize(
    ("function", "says"),
    [
        (failing.segfault, r"test process died \(SIGSEGV\).*last words"),
        (failing.kill_self, "SIGKILL: killed, or out of memory"),
        (failing.exit_at_once, "exit status 3"),
    ],
)
def test_a_death_is_told_and_the_next_call_has_a_new_process(worker, function, says):
    first = worker.call(failing.process)
    with pytest.raises(WorkerDied, match=says):
        worker.call(function)
    assert worker.call(failing.process) != first
    assert worker.starts == 2


def test_a_process_that_does_not_answer_is_ended_with_its_children(worker):
    child = worker.call(failing.spawn_sleeper)
    first = worker.pid
    with pytest.raises(WorkerTimeout, match=r"did not answer within 0.2 s"):
        worker.call(time.sleep, 60, timeout=0.2)
    assert gone(first)
    assert gone(child)
    assert worker.call(failing.double, 1, timeout=20) == 2


def test_a_process_killed_between_two_calls_is_replaced(worker):
    os.kill(worker.call(failing.process), signal.SIGKILL)
    time.sleep(0.1)
    assert worker.call(failing.double, 2) == 4


def test_ctrl_c_leaves_no_answer_for_the_next_question(worker):
    worker.call(failing.double, 1)
    threading.Timer(0.2, lambda: os.kill(os.getpid(), signal.SIGINT)).start()
    with pytest.raises(KeyboardInterrupt):
        worker.call(time.sleep, 5)
    assert worker.call(failing.double, 3) == 6


def test_processes_end_with_a_parent_that_is_killed(tmp_path):
    script = (
        "import sys, threading, time\n"
        "from subbyte.measure.worker import Worker\n"
        "idle, busy = Worker(), Worker()\n"
        "idle.call(time.sleep, 0); busy.call(time.sleep, 0)\n"
        "threading.Thread(target=busy.call, args=(time.sleep, 60), daemon=True).start()\n"
        "time.sleep(0.1)\n"
        "print(idle.pid, busy.pid, flush=True)\n"
        "time.sleep(60)\n"
    )
    parent = subprocess.Popen([sys.executable, "-c", script], stdout=subprocess.PIPE, text=True)
    pids = [int(text) for text in parent.stdout.readline().split()]
    parent.kill()
    parent.wait()
    parent.stdout.close()
    assert len(pids) == 2
    assert all(gone(pid) for pid in pids)


def test_a_pool_keeps_going_when_its_processes_die():
    with WorkerPool(2, "test", timeout=20) as pool:
        tasks = [(failing.double, (1,)), (failing.segfault, ()), (failing.double, (2,)), (failing.kill_self, ()),
                 (failing.double, (3,))]  # fmt: skip
        futures = [pool.submit(function, *arguments) for function, arguments in tasks]
        assert [futures[i].result() for i in (0, 2, 4)] == [2, 4, 6]
        for i in (1, 3):
            with pytest.raises(WorkerDied):
                futures[i].result()
        assert pool.submit(failing.double, value=5).result() == 10


def test_a_pool_is_stopped_in_the_middle():
    pool = WorkerPool(1, "test")
    running, waiting = pool.submit(time.sleep, 60), pool.submit(failing.double, 1)
    while not running.running():
        time.sleep(0.01)
    time.sleep(0.2)
    started = time.monotonic()
    pool.shutdown(cancel_futures=True)
    assert time.monotonic() - started < 5
    assert waiting.cancelled()
    with pytest.raises(WorkerDied):
        running.result(0)
    with pytest.raises(RuntimeError, match="shut down"):
        pool.submit(failing.double, 1)
    with pytest.raises(InvalidInput, match="at least 1"):
        WorkerPool(0)


def test_exits_are_described():
    assert [describe_exit(status) for status in (0, 3, -11, -99)] == [
        "exit status 0", "exit status 3", "SIGSEGV", "signal 99"]  # fmt: skip
