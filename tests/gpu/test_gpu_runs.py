"""Running the GPU tests: refused without a GPU, and going on where they were stopped. This needs no GPU."""

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
KERNELS = [
    {"name": "plain", "cubin": f"cubins/{number}.cubin", "workload": {"n": 8, "h": 6, "w": 6, "c": 64, "k": 64, "r": 3,
     "s": 3, "pad": 1}, "launch": {}, "clip": [-8, 7], "output": "int4", "arch": "sm_90a"}
    for number in range(3)
]  # fmt: skip
TESTS = """
import pytest
pytestmark = pytest.mark.gpu
def wanted(entry):
    return True
def test_one(entry):
    assert entry["cubin"] != "cubins/1.cubin" or entry["clip"] == [0, 7]
def test_without_a_kernel():
    pass
"""


def run(folder, *words, **more):
    """pytest on a folder of its own, with the GPU tests' conftest and a driver that has one GPU: what it says, and its
    exit status. In a copy of this process, which has imported everything: a start of pytest takes seconds."""
    said = folder / "said"
    child = os.fork()
    if child == 0:  # nothing of it comes back, whatever happens
        status = 99
        try:
            with said.open("w") as log:
                os.dup2(log.fileno(), 1)
                os.dup2(log.fileno(), 2)
            sys.stdout, sys.stderr = os.fdopen(1, "w", closefd=False), os.fdopen(2, "w", closefd=False)
            os.chdir(folder)
            for name in [name for name in os.environ if name.startswith("PYTEST_")]:
                del os.environ[name]
            os.environ.update({"CUDA_VISIBLE_DEVICES": "", "PYTEST_DISABLE_PLUGIN_AUTOLOAD": "1", **more})
            sys.modules.pop("test_here", None)
            status = int(pytest.main(["-m", "gpu", "-q", "-p", "no:cacheprovider", *words]))
            sys.stdout.flush()
        finally:
            os._exit(status)
    status = os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
    return status, said.read_text()


def write(folder, kernels):
    (folder / "kernels.jsonl").write_text("".join(json.dumps(one) + "\n" for one in kernels))


def test_without_a_gpu_one_sentence():
    done = subprocess.run(
        [sys.executable, "-m", "pytest", "-m", "gpu", "-q", "-p", "no:cacheprovider", "tests/gpu/test_kernels.py"],
        cwd=ROOT, capture_output=True, text=True, env={**os.environ, "CUDA_VISIBLE_DEVICES": ""},
    )  # fmt: skip
    assert done.returncode == 3
    assert "error: no NVIDIA" in done.stdout + done.stderr
    assert "passed" not in done.stdout


@pytest.mark.deep
def test_what_passed_is_left_out_as_long_as_its_kernel_is_the_same(tmp_path):
    text = (ROOT / "tests" / "gpu" / "conftest.py").read_text()
    assert "        detect()\n" in text
    (tmp_path / "conftest.py").write_text(text.replace("        detect()\n", "        pass\n"))
    (tmp_path / "pytest.ini").write_text("[pytest]\nmarkers = gpu: here\n")
    (tmp_path / "test_here.py").write_text(TESTS)
    write(tmp_path, KERNELS)
    given = {"SUBBYTE_GPU_BUNDLE": str(tmp_path), "SUBBYTE_GPU_PASSED": str(tmp_path / "passed.txt")}
    status, said = run(tmp_path, **given)
    assert status == 1
    assert "1 failed, 3 passed" in said
    assert len((tmp_path / "passed.txt").read_text().splitlines()) == 2
    assert "1 failed, 1 passed, 2 deselected" in run(tmp_path, **given)[1]
    write(tmp_path, [{**KERNELS[0], "cubin": "cubins/other.cubin"}, {**KERNELS[1], "clip": [0, 7]}, KERNELS[2]])
    assert "3 passed, 1 deselected" in run(tmp_path, **given)[1]
    del given["SUBBYTE_GPU_PASSED"]
    assert run(tmp_path, **given)[1].count("4 passed") == 1
