"""For every test: no system CUDA toolkit, no GPU unless asked for, a cache of its own.

Stand-ins named ``nvcc`` and ``ptxas`` come first on PATH and fail when called, so that a test which reaches for
a toolkit of the machine fails everywhere, not only where none is installed.
"""

from __future__ import annotations

import gc
import inspect
import os
import shutil
import signal
import tempfile
import threading
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from cpu_seconds import CpuSeconds
from hypothesis import settings
from hypothesis.internal.conjecture import providers
from hypothesis.internal.constants_ast import Constants
from sampling import mark_unsampled

HIDDEN_TOOLS = ("nvcc", "ptxas", "nvdisasm", "cuobjdump", "cudafe++", "fatbinary")
REFUSED = 97
# The same examples on every machine, and no time limit for one: the machine may be busy. `make test-deep` draws more.
settings.register_profile("subbyte", deadline=None, derandomize=True, max_examples=25)
settings.register_profile("deep", deadline=None, derandomize=True, max_examples=400)
settings.load_profile("subbyte")
# Else Hypothesis parses every loaded module of the project and draws its constants too: seconds for each process, and
# other examples when a test runs alone.
NO_CONSTANTS = Constants()
providers._get_local_constants = lambda: NO_CONSTANTS

_holder: list[tempfile.TemporaryDirectory[str]] = []


def pytest_configure(config: pytest.Config) -> None:
    """Hide the machine's toolkit before any test module is imported (workers do the same for themselves)."""
    gc.disable()  # until all tests are collected, nothing becomes garbage
    config.pluginmanager.register(CpuSeconds(config))
    holder = tempfile.TemporaryDirectory(prefix="subbyte-tests-")
    _holder.append(holder)
    stand_ins = Path(holder.name) / "bin"
    stand_ins.mkdir()
    for name in HIDDEN_TOOLS:
        tool = stand_ins / name
        tool.write_text(f"#!/bin/sh\necho '{name} of the machine was called by a test' >&2\nexit {REFUSED}\n")
        tool.chmod(0o755)
    # Kernels of the emulator are linked by the hundred, and gold needs a third of the usual linker's time.
    if gold := shutil.which("ld.gold"):
        (stand_ins / "ld").symlink_to(gold)
    os.environ["PATH"] = f"{stand_ins}{os.pathsep}{os.environ.get('PATH', '')}"
    for name in ("CUDA_HOME", "CUDA_PATH", "CUDA_ROOT", "NVCC"):
        os.environ.pop(name, None)
    os.environ.setdefault("OMP_WAIT_POLICY", "PASSIVE")
    for name in ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS"):  # one core for each worker: threads would wait for others'
        os.environ.setdefault(name, "1")
    # TVM asks for the whole stack for each kernel: inspect searches all modules for frames without a file, unless told.
    for name in ("<string>", "<frozen runpy>"):
        inspect.modulesbyfile.setdefault(name, "nowhere")
    if threading.current_thread() is threading.main_thread():
        # A shell's background job is started with Ctrl-C ignored, and what it starts inherits that.
        signal.signal(signal.SIGINT, signal.default_int_handler)
    os.environ.setdefault("SUBBYTE_CACHE", str(config.rootpath / ".pytest_cache" / "subbyte"))
    os.environ["SUBBYTE_STORE"] = "off"  # what a search of somebody found changes no test


def pytest_collection_finish() -> None:
    """What was collected and imported stays: each full collection would look at all of it, for half a second."""
    gc.freeze()
    gc.enable()


def pytest_unconfigure(config: pytest.Config) -> None:
    """Remove the stand-ins."""
    while _holder:
        _holder.pop().cleanup()


@pytest.hookimpl(optionalhook=True)
def pytest_xdist_make_scheduler(config: pytest.Config, log: Any) -> Any:
    """With ``--dist loadfile`` browser tests run in one process, and what else there is in another: a second server,
    Chromium and page of JupyterLab would cost more than they save where unit tests fill the cores anyway."""
    if config.getoption("dist") != "loadfile":
        return None
    from xdist.scheduler import LoadFileScheduling

    class TwoSides(LoadFileScheduling):
        def _split_scope(self, nodeid: str) -> str:
            return "browser" if nodeid.startswith("tests/browser/") else "others"

    return TwoSides(config, log)


@pytest.hookimpl(tryfirst=True)  # before tests are chosen by their markers
def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """GPU tests run only when named with ``-m gpu``: a plain run must mean the same on every machine.

    Of a test marked ``sample(kept)`` so many parameters are left in ``make test``; the others become ``deep``."""
    mark_unsampled(items)
    if "gpu" in config.getoption("-m"):
        return
    skip = pytest.mark.skip(reason="needs a GPU: make test-gpu")
    for item in items:
        if item.get_closest_marker("gpu"):
            item.add_marker(skip)


@pytest.fixture(scope="session")
def repository() -> Path:
    """Root of the checkout."""
    return Path(__file__).resolve().parent.parent


@pytest.fixture(scope="session")
def executed(tmp_path_factory: pytest.TempPathFactory) -> Callable[[Path], Path]:
    """Runs a committed notebook, once for all processes of these tests; the file with its outputs and live views."""
    import fcntl

    import nbformat
    from notebooks import execute

    folder = tmp_path_factory.getbasetemp()
    if "PYTEST_XDIST_WORKER" in os.environ:
        folder = folder.parent

    def run(path: Path) -> Path:
        done = folder / f"{path.stem}.ipynb"
        with (folder / f"{path.stem}.lock").open("w") as lock:
            fcntl.flock(lock, fcntl.LOCK_EX)
            if not done.exists():
                notebook = nbformat.read(path, as_version=4)
                execute(notebook, path.parent, live=True)
                nbformat.write(notebook, done)
        return done

    return run
