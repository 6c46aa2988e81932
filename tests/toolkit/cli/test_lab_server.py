"""`subbyte lab` for real: the server starts, answers on this machine alone, and opens the first notebook."""

from __future__ import annotations

import json
import os
import socket
import subprocess
import sys
import time
import urllib.request
from collections.abc import Iterator
from pathlib import Path

import nbformat
import pytest

TOKEN = "not-secret"
LOOPBACK = "127.0.0.1"


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """Address of a server for a folder with one notebook, started as a user would start it."""
    folder = tmp_path_factory.mktemp("checkout")
    (folder / "notebooks").mkdir()
    nbformat.write(nbformat.v4.new_notebook(), folder / "notebooks/00_start_here.ipynb")
    with socket.socket() as probe:
        probe.bind((LOOPBACK, 0))
        port = probe.getsockname()[1]
    state = {name: str(folder / name.lower()) for name in ("JUPYTER_CONFIG_DIR", "JUPYTER_DATA_DIR", "IPYTHONDIR")}
    # The package is used from outside its checkout, so the notebooks of the current folder are opened.
    start = "import sys; from pathlib import Path; from subbyte.cli import lab, main; "
    start += "lab.find_notebooks.__defaults__ = (Path('/nowhere'),); sys.exit(main.main())"
    command = [sys.executable, "-c", start, "lab", "--no-browser", "--port", str(port)]
    command += [f"--jupyter=--IdentityProvider.token={TOKEN}"]
    with (folder / "log").open("w") as log:
        process = subprocess.Popen(command, cwd=folder, env={**os.environ, **state}, stdout=log, stderr=log)
    try:
        base = f"http://{LOOPBACK}:{port}"
        _wait(base, process, folder / "log")
        yield base
    finally:
        process.terminate()
        process.wait(timeout=20)


def _wait(base: str, process: subprocess.Popen[bytes], log: Path) -> None:
    for _ in range(300):
        try:
            get(f"{base}/api/status")
            return
        except OSError:
            assert process.poll() is None, log.read_text()
            time.sleep(0.1)
    pytest.fail(log.read_text())


def get(address: str) -> tuple[str, str]:
    """(final address, body) of a page, as the user with the token."""
    request = urllib.request.Request(address, headers={"Authorization": f"token {TOKEN}"})
    with urllib.request.urlopen(request, timeout=10) as answer:
        return answer.url, answer.read().decode()


def test_the_first_notebook_opens(server: str) -> None:
    address, page = get(f"{server}/")
    assert address == f"{server}/lab/tree/notebooks/00_start_here.ipynb"
    assert "jupyter-config-data" in page


def test_no_news_and_no_update_check(server: str) -> None:
    _, text = get(f"{server}/lab/api/settings/@jupyterlab/apputils-extension:notification")
    properties = json.loads(text)["schema"]["properties"]
    assert properties["fetchNews"]["default"] == "false"
    assert properties["checkForUpdates"]["default"] is False


def test_it_listens_on_this_machine_alone(server: str) -> None:
    port = int(server.rpartition(":")[2])
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as probe:
        try:
            probe.connect(("192.0.2.1", 9))  # sends nothing; asks which address would be used
        except OSError:
            pytest.skip("this machine has no address but loopback")
        address = probe.getsockname()[0]
    with pytest.raises(OSError, match=r"refused|timed out|unreachable"):
        socket.create_connection((address, port), timeout=2)
