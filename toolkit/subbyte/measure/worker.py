"""A separate process for work that may crash, hang or poison what it touches, replaced when it does.

:class:`Worker` runs functions of importable modules in a child process, one at a time; :class:`WorkerPool` is a
``concurrent.futures`` executor of several. The child is a fresh interpreter (nothing is forked, and the caller's script
is not imported again) in its own session: Ctrl-C never reaches it, and killing it kills everything it started.
It ends by itself when its parent is gone.
"""

from __future__ import annotations

import contextlib
import os
import pickle
import queue
import signal
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Callable
from concurrent.futures import Executor, Future
from functools import partial
from multiprocessing.connection import Connection, Pipe
from typing import IO, Any, NoReturn

from subbyte import errors, processes
from subbyte.errors import InvalidInput, SubbyteError

_LIFE_CHECK_S = 0.2
_SHOWN = 300


class WorkerDied(SubbyteError):
    """The process ended before it answered: a crash, a kill, or memory that ran out."""


class WorkerTimeout(WorkerDied):
    """The process did not answer in time and was killed."""


class WorkerRaised(SubbyteError):
    """The function raised; the message says what. The process can still be used."""


class Worker:
    """One child process, started on the first call and again after a death. ``name`` appears in messages.

    ``prepare`` is called first in each new process and must be picklable, such as ``partial(load, data)``. Operand
    encodings and kernel families that were registered here are known there.
    Not for use by several threads at once, except for :meth:`close`.
    """

    def __init__(self, name: str = "worker", prepare: Callable[[], object] | None = None) -> None:
        self.name = name
        self.prepare = prepare
        self.starts = 0
        self._process: subprocess.Popen[bytes] | None = None
        self._pipe: Connection | None = None
        self._said: IO[bytes] | None = None

    @property
    def pid(self) -> int | None:
        """Process id; None while there is no process."""
        return self._process.pid if self._process is not None and self._process.poll() is None else None

    def call(self, function: Callable[..., Any], *arguments: Any, timeout: float | None = None) -> Any:
        """``function(*arguments)`` in the process; both are pickled.

        Raises WorkerTimeout after ``timeout`` seconds and WorkerDied when the process ended: in both cases the next
        call starts a new one. Errors of this package arrive unchanged, any other as WorkerRaised. InvalidInput for
        what cannot be pickled.
        """
        # Not needed in the child, which starts five times as quickly without numpy and the families.
        from subbyte.families.registry import register_all, registered
        from subbyte.workload.operand import register_encodings, registered_encodings

        request = _pickled(function, arguments)
        known_here = ((register_encodings, registered_encodings()), (register_all, registered()))
        first = [_pickled(register_them, (those,)) for register_them, those in known_here if those]
        first += [_pickled(self.prepare, ())] if self.prepare is not None else []
        if self._ready() and first:
            try:
                for one in first:
                    self._ask(one, timeout)
            except BaseException:  # a process whose preparation failed is of no use
                self.close()
                raise
        return self._ask(request, timeout)

    def _ask(self, request: bytes, timeout: float | None) -> Any:
        """Send a call and wait for its answer."""
        pipe = self._pipe
        try:
            if pipe is None:  # closed by another thread
                raise EOFError
            pipe.send_bytes(request)
            if not pipe.poll(timeout):
                raise WorkerTimeout(f"the {self.name} process did not answer within {timeout:g} s and was ended")
            kind, value = pickle.loads(pipe.recv_bytes())
        except (EOFError, OSError):
            raise WorkerDied(self._how_it_died()) from None
        except BaseException:  # Ctrl-C or the time limit: an answer may still come, which nobody waits for any more
            self.close()
            raise
        if kind != "done":
            raise getattr(errors, kind, WorkerRaised)(value)
        return value

    def close(self) -> None:
        """End the process and what it started, at once. May be called twice; a later call starts a new process."""
        process, pipe, said = self._process, self._pipe, self._said
        self._process = self._pipe = self._said = None
        if process is not None:
            processes.end(process)
        for thing in (pipe, said):
            if thing is not None:
                thing.close()

    def _ready(self) -> bool:
        """Make sure there is a process; True if it is a new one."""
        if self._process is not None and self._process.poll() is not None:
            self.close()
        if self._pipe is not None:
            return False
        self._start()
        return True

    def _start(self) -> None:
        ours, theirs = Pipe()
        said = None
        with contextlib.suppress(OSError):  # a full disk: do without the process's last output
            said = tempfile.TemporaryFile()  # noqa: SIM115 - closed with the process
        code = f"from subbyte.measure.worker import serve; serve({theirs.fileno()})"
        try:
            self._process = processes.start(
                [sys.executable, "-P", "-c", code], stdin=subprocess.DEVNULL, stdout=said or subprocess.DEVNULL,
                stderr=subprocess.STDOUT, pass_fds=[theirs.fileno()],
            )  # fmt: skip
        except OSError as error:
            ours.close()
            raise WorkerDied(f"no {self.name} process could be started: {error}") from None
        finally:
            theirs.close()
        self._pipe, self._said = ours, said
        self.starts += 1

    def _how_it_died(self) -> str:
        process, said = self._process, self._said
        status: int | None = None
        if process is not None:
            with contextlib.suppress(subprocess.TimeoutExpired):
                status = process.wait(5)
        words = ""
        if said is not None and not said.closed:
            said.seek(0)
            lines = said.read().decode(errors="replace").strip().splitlines()
            words = f": {lines[-1][:_SHOWN]}" if lines else ""
        self.close()
        return f"the {self.name} process died ({describe_exit(status)}){words}"


class WorkerPool(Executor):
    """An executor of ``workers`` processes. A process that dies fails its own future (WorkerDied) and is replaced.

    Each task may take ``timeout`` seconds, counted from when a process takes it; waiting in the queue does not count.
    ``prepare`` is called first in each new process.
    """

    def __init__(
        self,
        workers: int,
        name: str = "worker",
        timeout: float | None = None,
        prepare: Callable[[], object] | None = None,
    ) -> None:
        if workers < 1:
            raise InvalidInput(f"workers={workers}: must be at least 1")
        self.timeout = timeout
        self._queue: queue.SimpleQueue[tuple[Future[Any], Callable[[], Any]] | None] = queue.SimpleQueue()
        self._workers = [Worker(name, prepare) for _ in range(workers)]
        self._threads: list[threading.Thread] = []
        self._starting = threading.Lock()
        self._closed = self._killed = False

    def submit(self, function: Callable[..., Any], /, *arguments: Any, **options: Any) -> Future[Any]:
        """Run ``function(*arguments, **options)`` in a process; everything is pickled."""
        if self._closed:
            raise RuntimeError("the pool was shut down")
        with self._starting:
            if not self._threads:
                self._threads = [threading.Thread(target=self._serve, args=(w,), daemon=True) for w in self._workers]
                for thread in self._threads:
                    thread.start()
        future: Future[Any] = Future()
        self._queue.put((future, partial(function, *arguments, **options)))
        return future

    def shutdown(self, wait: bool = True, *, cancel_futures: bool = False) -> None:
        """Accept no more tasks. With ``cancel_futures`` waiting ones are cancelled and running ones killed."""
        self._closed = True
        if cancel_futures:
            self._killed = True
            with contextlib.suppress(queue.Empty):
                while True:
                    item = self._queue.get_nowait()
                    if item is not None:
                        item[0].cancel()
            for worker in self._workers:
                worker.close()
        for _ in self._threads:
            self._queue.put(None)
        if wait:
            for thread, worker in zip(self._threads, self._workers, strict=False):
                if thread.ident is None:  # Ctrl-C came before it was started
                    continue
                while self._killed and thread.is_alive():  # it may have been about to start a process
                    thread.join(_LIFE_CHECK_S)
                    worker.close()
                thread.join()

    def _serve(self, worker: Worker) -> None:
        while (item := self._queue.get()) is not None and not self._killed:
            future, task = item
            if not future.set_running_or_notify_cancel():
                continue
            try:
                future.set_result(worker.call(task, timeout=self.timeout))
            except BaseException as error:  # raised for whoever asks for the result
                future.set_exception(error)
        worker.close()


def _pickled(function: Callable[..., Any], arguments: tuple[Any, ...]) -> bytes:
    try:
        return pickle.dumps((function, arguments))
    except Exception as error:  # pickle raises what the objects' own methods raise
        raise InvalidInput(f"cannot be sent to a worker process: {error}; define functions in a module") from None


def describe_exit(status: int | None) -> str:
    """How a process ended, in words: ``status 3``, ``SIGSEGV``."""
    if status is None:
        return "it does not even end when killed"
    if status >= 0:
        return f"exit status {status}"
    try:
        name = signal.Signals(-status).name
    except ValueError:
        name = f"signal {-status}"
    return f"{name}: killed, or out of memory" if name == "SIGKILL" else name


def serve(descriptor: int) -> NoReturn:
    """The child process's loop: answer requests until the pipe closes."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    end_with_parent()
    pipe = Connection(descriptor)
    while True:
        try:
            request = pipe.recv_bytes()
        except (EOFError, OSError):
            os._exit(0)  # skips exit handlers: a lost context must not block the exit
        answer: tuple[str, Any]
        try:
            function, arguments = pickle.loads(request)
            answer = "done", function(*arguments)
            reply = pickle.dumps(answer)
        except SubbyteError as error:
            known = next(cls.__name__ for cls in type(error).__mro__ if getattr(errors, cls.__name__, None) is cls)
            reply = pickle.dumps((known, str(error)))
        except BaseException as error:  # SystemExit too: the process stays for the next request
            reply = pickle.dumps(("raised", errors.in_words(error, 2000)))
        sys.stdout.flush()
        try:
            pipe.send_bytes(reply)
        except OSError:
            os._exit(0)


def end_with_parent() -> None:
    """From now on this process ends when its parent is gone, even while it is busy."""
    threading.Thread(target=_end_with, args=(os.getppid(),), daemon=True).start()


def _end_with(parent: int) -> None:
    while os.getppid() == parent:
        time.sleep(_LIFE_CHECK_S)
    os._exit(0)
