"""TVM is loaded without PyTorch, which others may still import."""

import importlib
import subprocess
import sys
import threading

import pytest

from subbyte.left_out import without


@pytest.fixture
def stand_in(tmp_path, monkeypatch):
    """A package named torch, and none loaded."""
    (tmp_path / "torch.py").write_text("mark = 7\n")
    monkeypatch.syspath_prepend(tmp_path)
    monkeypatch.delitem(sys.modules, "torch", raising=False)
    yield tmp_path
    sys.modules.pop("torch", None)


def test_loading_tvm_leaves_pytorch_alone_and_it_can_be_imported_later(stand_in):
    code = (
        f"import sys; sys.path.insert(0, {str(stand_in)!r}); import subbyte.tirx.lower; "
        "print('torch' in sys.modules); import torch; print(torch.mark)"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.split() == ["False", "7"]


def test_only_the_thread_that_asks_for_it_finds_no_pytorch(stand_in):
    found = []
    with without("torch"):
        with pytest.raises(ModuleNotFoundError):
            importlib.import_module("torch")
        other = threading.Thread(target=lambda: found.append(importlib.import_module("torch").mark))
        other.start()
        other.join()
    assert found == [7]
    assert importlib.import_module("torch").mark == 7
