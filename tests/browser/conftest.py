"""A real JupyterLab on this machine's loopback and a real Chromium: one of each for the whole session.

A machine without Chromium fails these tests, it never skips them: a view nobody drew is a view nobody tested. Set
``SUBBYTE_PICTURES`` to a folder to keep screenshots.
"""

from __future__ import annotations

import os
import secrets
import shutil
import socket
import subprocess
import sys
import time
import urllib.request
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import nbformat
import pytest

ROOT = Path(__file__).resolve().parents[2]
BROWSERS = ("chromium", "chromium-browser", "google-chrome", "chrome")
QUIET = ("--no-sandbox", "--disable-gpu", "--disable-background-networking", "--disable-component-update",
         "--disable-sync", "--no-first-run")  # fmt: skip
KERNEL_IDLE = """() => {
  const panel = [...window.jupyterapp.shell.widgets("main")].find((w) => w.sessionContext);
  return panel?.sessionContext.session?.kernel?.status === "idle"
    && ![...document.querySelectorAll(".jp-InputArea-prompt")].some((e) => e.textContent.includes("*"));
}"""


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Everything in this folder carries the marker."""
    here = Path(__file__).parent
    for item in items:
        if here in item.path.parents:
            item.add_marker(pytest.mark.browser)


def find_browser() -> str:
    """Path of an installed Chromium; fails the test with one sentence when there is none."""
    found = next(filter(None, (os.environ.get("SUBBYTE_CHROMIUM"), *map(shutil.which, BROWSERS))), None)
    if not found:
        pytest.fail("no Chromium on PATH: `sudo apt-get install chromium`, or set SUBBYTE_CHROMIUM", pytrace=False)
    return str(found)


class Lab:
    """A JupyterLab server in a folder of its own, reachable from this machine alone."""

    def __init__(self, folder: Path) -> None:
        self.folder, self.token = folder, secrets.token_hex(12)
        with socket.socket() as probe:
            probe.bind(("127.0.0.1", 0))
            self.port = probe.getsockname()[1]
        self.base = f"http://127.0.0.1:{self.port}"
        state = folder / ".jupyter-state"
        names = ("CONFIG_DIR", "DATA_DIR", "RUNTIME_DIR")
        self.environment = {
            **os.environ,
            **{f"JUPYTER_{name}": str(state / name) for name in names},
            "JUPYTERLAB_SETTINGS_DIR": str(state / "settings"),
            "JUPYTERLAB_WORKSPACES_DIR": str(state / "workspaces"),
            "IPYTHONDIR": str(state / "ipython"),
            "JUPYTER_CONFIG_PATH": str(ROOT / "toolkit/subbyte/cli/jupyter"),
            "PYTHONPATH": os.pathsep.join([str(ROOT / "toolkit"), str(ROOT / "widgets")]),
        }
        command = [sys.executable, "-m", "jupyterlab", "--no-browser", "--allow-root", "--ServerApp.ip=127.0.0.1",
                   f"--ServerApp.port={self.port}", f"--IdentityProvider.token={self.token}",
                   f"--ServerApp.root_dir={folder}", "--expose-app-in-browser",
                   "--LabApp.check_for_updates_class=jupyterlab.NeverCheckForUpdate"]  # fmt: skip
        self.log = folder / "server.log"
        with self.log.open("w") as log:
            self.process = subprocess.Popen(command, env=self.environment, stdout=log, stderr=subprocess.STDOUT)
        self._wait_until_up()

    def _wait_until_up(self) -> None:
        deadline = time.monotonic() + 60
        while time.monotonic() < deadline and self.process.poll() is None:
            try:
                urllib.request.urlopen(f"{self.base}/api/status?token={self.token}", timeout=2).read()
                return
            except OSError:
                time.sleep(0.1)
        self.close()
        pytest.fail(f"JupyterLab did not start:\n{self.log.read_text()[-2000:]}", pytrace=False)

    def close(self) -> None:
        """Stop the server and its kernels."""
        self.process.terminate()
        try:
            self.process.wait(15)
        except subprocess.TimeoutExpired:
            self.process.kill()

    def write(self, name: str, *cells: str) -> str:
        """A notebook of code cells in the server's folder; returns its name."""
        notebook = nbformat.v4.new_notebook(cells=[nbformat.v4.new_code_cell(cell) for cell in cells])
        notebook.metadata["kernelspec"] = {"name": "python3", "display_name": "Python 3", "language": "python"}
        nbformat.write(notebook, self.folder / name)
        return name


class Tab:
    """A browser tab that may only talk to the server, and remembers what it was refused and what went wrong."""

    def __init__(self, browser: Any, lab: Lab, width: int = 1000, height: int = 1100) -> None:
        self.lab = lab
        self.context = browser.new_context(viewport={"width": width, "height": height})
        self.page = self.context.new_page()
        self.outside: list[str] = []
        self.errors: list[str] = []
        self.page.route("**/*", self._route)
        self.page.on("console", lambda said: self.errors.append(said.text) if said.type == "error" else None)
        self.page.on("pageerror", lambda error: self.errors.append(str(error)))

    def _route(self, route: Any) -> None:
        address = route.request.url
        if address.startswith((self.lab.base, "data:", "blob:", "file:")):
            route.continue_()
        else:
            self.outside.append(address)
            route.abort()

    def open_notebook(self, name: str) -> None:
        """Open a notebook and wait until its kernel is ready."""
        self.page.goto(f"{self.lab.base}/doc/tree/{name}?token={self.lab.token}&reset")
        self.page.wait_for_selector(".jp-Notebook", timeout=60_000)
        self.page.wait_for_function("window.jupyterapp !== undefined")
        self.page.wait_for_function(KERNEL_IDLE, timeout=60_000)

    def run_notebook(self, name: str, seconds: float = 90) -> None:
        """Open a notebook, run all its cells, wait until the kernel is idle again."""
        self.open_notebook(name)
        self.page.evaluate("() => { window.jupyterapp.commands.execute('notebook:run-all-cells') }")
        self.page.wait_for_timeout(200)
        self.page.wait_for_function(KERNEL_IDLE, timeout=seconds * 1000)

    def theme(self, name: str) -> None:
        """Switch JupyterLab's theme, such as "JupyterLab Dark"."""
        self.page.evaluate("(theme) => window.jupyterapp.commands.execute('apputils:change-theme', { theme })", name)
        light = str("Light" in name).lower()
        self.page.wait_for_function("(light) => document.body.dataset.jpThemeLight === light", arg=light)
        self.page.wait_for_selector("#jupyterlab-splash", state="detached")

    def picture(self, name: str, selector: str) -> None:
        """Keep a screenshot of one element when SUBBYTE_PICTURES names a folder."""
        folder = os.environ.get("SUBBYTE_PICTURES")
        if folder:
            Path(folder).mkdir(parents=True, exist_ok=True)
            self.page.locator(selector).first.screenshot(path=str(Path(folder) / f"{name}.png"))

    def close(self) -> None:
        """End the notebook's kernel, then the tab."""
        if self.page.url.startswith(self.lab.base):
            self.page.evaluate("""async () => {
              const panels = window.jupyterapp?.shell.widgets("main") ?? [];
              const panel = [...panels].find((w) => w.sessionContext);
              await panel?.sessionContext.shutdown();
            }""")
        self.context.close()


@pytest.fixture
def browser_program() -> Callable[[], str]:
    """The search for Chromium, for the test of its refusal."""
    return find_browser


@pytest.fixture(scope="session")
def lab(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Lab]:
    """The server."""
    server = Lab(tmp_path_factory.mktemp("lab"))
    yield server
    server.close()


@pytest.fixture(scope="session")
def chromium() -> Iterator[Any]:
    """The browser."""
    program = find_browser()
    from playwright.sync_api import sync_playwright

    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=program, args=list(QUIET))
        yield browser
        browser.close()


@pytest.fixture(scope="module")
def open_tab(chromium: Any, lab: Lab) -> Iterator[Callable[..., Tab]]:
    """Opens tabs; afterwards none of them may have reported an error or asked for anything outside this machine."""
    tabs: list[Tab] = []

    def open_one(**size: int) -> Tab:
        tabs.append(Tab(chromium, lab, **size))
        return tabs[-1]

    yield open_one
    errors = [line for tab in tabs for line in tab.errors]
    outside = [address for tab in tabs for address in tab.outside]
    for tab in tabs:
        tab.close()
    assert not errors, errors
    assert not outside, outside
