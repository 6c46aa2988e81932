"""The GPU tests run kernels built elsewhere (build_kernels.py), from the folder SUBBYTE_GPU_BUNDLE names.

Without a GPU ``-m gpu`` ends with one sentence and exit code 3. Tests of prebuilt kernels that passed are noted in the
file that SUBBYTE_GPU_PASSED names, one by one, by the kernel's machine code; a later run with the same file leaves them
out, and so goes on where one was stopped. SUBBYTE_GPU_LOG names a file that gets a line of JSON for each test: when, on
what, which kernel, what came out."""

import hashlib
import json
import os
import sys
import time
from pathlib import Path

import pytest

from subbyte.errors import MissingDependency, SubbyteError
from subbyte.gpu.device import CudaDevice
from subbyte.gpu.driver import detect
from subbyte.measure.worker import Worker
from subbyte.records.describe import workload_from_dict

sys.path.append(str(Path(__file__).parent))  # prebuilt.py and checks.py, for the tests and for the processes they start
VARIABLE, PASSED, LOG = "SUBBYTE_GPU_BUNDLE", "SUBBYTE_GPU_PASSED", "SUBBYTE_GPU_LOG"
KEYS = pytest.StashKey()
"""By node id: how a test of a prebuilt kernel is named in the file of those that passed."""


def _kernels():
    folder = os.environ.get(VARIABLE)
    path = Path(folder or ".") / "kernels.jsonl"
    if not folder or not path.is_file():
        return []
    return [json.loads(line) for line in path.read_text().splitlines()]


def pytest_generate_tests(metafunc):
    """One test for each prebuilt kernel that the module's ``wanted(entry)`` asks for."""
    if "entry" in metafunc.fixturenames:
        entries = [entry for entry in _kernels() if metafunc.module.wanted(entry)]
        names = [
            f"{i}-{e['name']}-{workload_from_dict(e['workload']).spec}-{e['output']}" for i, e in enumerate(entries)
        ]
        skipped = pytest.param(None, marks=pytest.mark.skip(reason=f"{VARIABLE} names no folder with kernels.jsonl"))
        metafunc.parametrize("entry", entries or [skipped], ids=names or ["none"])


def pytest_collection_modifyitems(config, items):
    """Refuse to run without a GPU; leave out what passed before."""
    ours = [item for item in items if item.get_closest_marker("gpu")]
    if config.getoption("-m") != "gpu" or config.getoption("--collect-only") or not ours:
        return
    try:
        detect()
    except MissingDependency as error:
        pytest.exit(f"error: {error}", returncode=3)
    path = Path(os.environ[PASSED]) if PASSED in os.environ else None
    if path is not None:
        path.touch()
        config.stash[KEYS] = {item.nodeid: key_of(item) for item in ours if key_of(item)}
        passed = set(path.read_text(encoding="utf-8").splitlines())
        out = [item for item in ours if config.stash[KEYS].get(item.nodeid) in passed]
        items[:] = [item for item in items if item not in out]
        config.hook.pytest_deselected(items=out)


def key_of(item):
    """The test's function, the kernel's machine code, its launch and its workload; empty for tests without a kernel."""
    entry = item.callspec.params.get("entry") if hasattr(item, "callspec") else None
    if entry is None:
        return ""
    said = json.dumps([entry[name] for name in ("workload", "launch", "clip", "output")])
    return f"{item.originalname} {entry['cubin']} {hashlib.sha256(said.encode()).hexdigest()[:16]}"


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport(item, call):
    report = yield
    key = item.config.stash.get(KEYS, {}).get(item.nodeid)
    if key and report.when == "call" and report.passed:
        with open(os.environ[PASSED], "a", encoding="utf-8") as file:
            file.write(f"{key}\n")
    if LOG in os.environ and (report.when == "call" or report.outcome != "passed"):
        with open(os.environ[LOG], "a", encoding="utf-8") as file:
            file.write(json.dumps(logged(item, report)) + "\n")
    return report


def logged(item, report):
    """A line of the log. Of a failure the last line of its report says why."""
    gpu, entry = detect()[0], (item.callspec.params.get("entry") if hasattr(item, "callspec") else None)
    line = {
        "date": time.strftime("%Y-%m-%d %H:%M:%S", time.gmtime()), "gpu": gpu.name, "driver": gpu.driver_version,
        "test": item.nodeid.split("/")[-1], "outcome": report.outcome, "seconds": round(report.duration, 3),
        **dict(report.user_properties),
    }  # fmt: skip
    if entry is not None:
        line |= {
            "kernel": entry["name"], "workload": workload_from_dict(entry["workload"]).spec, "output": entry["output"],
            "machine_code": Path(entry["cubin"]).stem,
        }  # fmt: skip
    return line | ({"why": report.longreprtext.strip().splitlines()[-1:]} if report.outcome != "passed" else {})


@pytest.fixture(scope="session")
def device():
    """The first GPU; skips where there is none."""
    try:
        return CudaDevice(0)
    except MissingDependency as error:
        pytest.skip(str(error))


@pytest.fixture(scope="session")
def folder(device):
    """The folder of prebuilt kernels; skips when it is not given."""
    given = os.environ.get(VARIABLE)
    if not given or not (Path(given) / "kernels.jsonl").is_file():
        pytest.skip(f"{VARIABLE} names no folder with kernels.jsonl: run tests/gpu/build_kernels.py where TVM is")
    return Path(given).resolve()


@pytest.fixture(scope="session")
def guarded():
    """Calls a function in another process: ``guarded(function, *arguments, timeout=seconds)``. After a failure, such as
    a kernel that never ends, the next call has a new process."""
    worker = Worker("checking")

    def call(function, *arguments, timeout):
        try:
            return worker.call(function, *arguments, timeout=timeout)
        except SubbyteError:
            worker.close()
            raise

    yield call
    worker.close()


@pytest.fixture
def kernel(entry, folder, device):
    """One prebuilt kernel: ``.workload .cubin .launch .clip``."""
    if entry["arch"] != device.info.arch:
        pytest.skip(f"kernels were built for {entry['arch']}, this GPU is {device.info.arch}")
    from prebuilt import loaded

    return loaded(folder, entry)


@pytest.fixture(scope="session")
def first(folder):
    """The first prebuilt int4 kernel, for tests that need any."""
    from prebuilt import loaded

    return loaded(folder, next(entry for entry in _kernels() if entry["output"] == "int4"))
