"""The GPU tests run kernels built elsewhere (build_kernels.py), from the folder SUBBYTE_GPU_BUNDLE names."""

import json
import os
import sys
from pathlib import Path

import pytest

from subbyte.errors import MissingDependency, SubbyteError
from subbyte.measure.device import CudaDevice
from subbyte.measure.worker import Worker
from subbyte.workload import ConvWorkload

sys.path.append(str(Path(__file__).parent))  # prebuilt.py and checks.py, for the tests and for the processes they start
VARIABLE = "SUBBYTE_GPU_BUNDLE"


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
        names = [f"{i}-{e['name']}-{ConvWorkload(**e['workload']).spec}-{e['output']}" for i, e in enumerate(entries)]
        skipped = pytest.param(None, marks=pytest.mark.skip(reason=f"{VARIABLE} names no folder with kernels.jsonl"))
        metafunc.parametrize("entry", entries or [skipped], ids=names or ["none"])


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
