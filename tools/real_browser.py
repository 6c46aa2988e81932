"""A real JupyterLab on this machine's loopback and a real Chromium: what the browser tests, the latency benchmark and
the screenshots drive.

The server keeps all its state in one folder; a tab reaches this machine alone and remembers what else it asked for and
what went wrong.
"""

from __future__ import annotations

import os
import re
import secrets
import shutil
import socket
import subprocess
import sys
import time
import urllib.request
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import nbformat

ROOT = Path(__file__).resolve().parent.parent
BROWSERS = ("chromium", "chromium-browser", "google-chrome", "chrome")
PATIENCE = 150_000
"""Milliseconds: a wait ends with what it waits for, on a slow machine later; this only ends what would never come."""
# Otherwise every page asks whether JupyterLab must be built anew, and node runs for a second to find out.
# The debugger asks each kernel that starts for its state, and complains when a notebook is closed before the answer.
PAGE = """{"buildCheck": false, "buildAvailable": false,
"disabledExtensions": {"@jupyterlab/debugger-extension": true}}"""
# Cells out of sight are drawn too, and at once: a loaded machine draws them one by one over minutes otherwise.
ALL_CELLS = '{"windowingMode": "none"}'
QUIET = ("--no-sandbox", "--disable-gpu", "--disable-background-networking", "--disable-component-update",
         "--disable-sync", "--no-first-run", "--host-resolver-rules=MAP * ~NOTFOUND, EXCLUDE 127.0.0.1")  # fmt: skip
KERNEL_IDLE = """() => {
  const panel = [...window.jupyterapp.shell.widgets("main")].find((w) => w.sessionContext);
  return panel?.sessionContext.session?.kernel?.status === "idle"
    && ![...document.querySelectorAll(".jp-InputArea-prompt")].some((e) => e.textContent.includes("*"));
}"""
# The command's promise ends with the replies to all cells that it runs: before, the kernel may not have begun yet.
RUN = """(name) => {
  const ended = () => { window.sbRan = true; };
  window.sbRan = false;
  window.jupyterapp.commands.execute(name).then(ended, ended);
}"""
SHUT_DOWN = """async () => {
  const panels = window.jupyterapp?.shell.widgets("main") ?? [];
  const panel = [...panels].find((w) => w.sessionContext);
  await panel?.sessionContext.shutdown();
}"""
# What is open is closed without a question, its kernel ended.
CLOSE = """async () => {
  const { shell, serviceManager } = window.jupyterapp;
  for (const one of [...shell.widgets("main")]) one.dispose();
  await serviceManager.sessions.shutdownAll();
}"""
OPEN = """async (path) => {
  const panel = await window.jupyterapp.commands.execute("docmanager:open", { path });
  await panel.context.ready;
  await panel.revealed;
}"""
# A key press counts as painted when the frame after it has been handed to the compositor.
PRESS_TO_PAINT = """() => {
  window.latencies = [];
  window.sbListening ??= document.addEventListener("keydown", () => {
    const pressed = performance.now(), round = window.latencies;  // a late frame belongs to the round of its key
    requestAnimationFrame(() => setTimeout(() => round.push(performance.now() - pressed)));
  }, true) ?? true;
}"""
# A fixed piece of work, and how long it takes here and now: the median of nine.
WORK = "(turns) => { let x = 1; for (let i = 0; i < 4e6 * turns; i += 1) x = Math.imul(x ^ i, 48271) | 1; return x; }"
WORK_MS = 6.0
"""What it takes on the idle machine with two cores that the limits of time were set on."""
AT_WORK = f"""() => Array.from({{ length: 9 }}, () => {{
  const begun = performance.now();
  ({WORK})(1);
  return performance.now() - begun;
}}).sort((a, b) => a - b)[4]"""
# Asked of the notebook, not of its page: how an error is rendered differs between versions, and warnings look the same.
FAILED_CELLS = """() => {
  const panel = [...window.jupyterapp.shell.widgets("main")].find((w) => w.sessionContext);
  const outputs = panel.content.model.sharedModel.cells.flatMap((cell) => cell.getOutputs?.() ?? []);
  return outputs.filter((one) => one.output_type === "error").map((one) => `${one.ename}: ${one.evalue}`);
}"""


OUTPUTS = """() => {
  const panel = [...window.jupyterapp.shell.widgets("main")].find((w) => w.sessionContext);
  return panel.content.model.sharedModel.cells.flatMap((cell) => cell.toJSON().outputs ?? []);
}"""


class CannotStart(RuntimeError):
    """What is missing, and the command that installs it, in one sentence."""


def find_browser() -> str:
    """Path of an installed Chromium. Raises CannotStart when there is none."""
    found = next(filter(None, (os.environ.get("SUBBYTE_CHROMIUM"), *map(shutil.which, BROWSERS))), None)
    if not found:
        raise CannotStart("no Chromium on PATH: `sudo apt-get install chromium`, or set SUBBYTE_CHROMIUM")
    return str(found)


@contextmanager
def launch() -> Iterator[Any]:
    """The browser, closed at the end. Raises CannotStart when there is none."""
    program = find_browser()
    from playwright.sync_api import sync_playwright

    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=program, args=list(QUIET))
        yield browser
        browser.close()


class Lab:
    """A JupyterLab server in a folder of its own, reachable from this machine alone. Raises CannotStart."""

    def __init__(self, folder: Path) -> None:
        self.folder, self.token = folder, secrets.token_hex(12)
        with socket.socket() as probe:
            probe.bind(("127.0.0.1", 0))
            self.port = probe.getsockname()[1]
        self.base = f"http://127.0.0.1:{self.port}"
        state = folder / ".jupyter-state"
        (state / "CONFIG_DIR/labconfig").mkdir(parents=True)
        (state / "CONFIG_DIR/labconfig/page_config.json").write_text(PAGE)
        names = ("CONFIG_DIR", "DATA_DIR", "RUNTIME_DIR")
        settings = state / "settings/@jupyterlab/notebook-extension"
        settings.mkdir(parents=True)
        (settings / "tracker.jupyterlab-settings").write_text(ALL_CELLS)
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
        raise CannotStart(f"JupyterLab did not start:\n{self.log.read_text()[-2000:]}")

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

    def trust(self, name: str) -> None:
        """Let the server show what a notebook in its folder holds, as if it had been run here."""
        from nbformat.sign import NotebookNotary

        notary = NotebookNotary(data_dir=self.environment["JUPYTER_DATA_DIR"])
        notary.sign(nbformat.read(self.folder / name, as_version=4))
        notary.store.close()

    def bring(self, name: str, as_name: str | None = None) -> str:
        """A copy of a committed notebook in the server's folder; returns its file name."""
        copied = f"{as_name or name}.ipynb"
        shutil.copy(ROOT / f"notebooks/{name}.ipynb", self.folder / copied)
        return copied


class Watched:
    """A browser tab; ``outside`` are the addresses it asked for that do not begin with ``allowed``.

    No address outside this machine answers: the browser was started so. Requests are watched, not held up.
    """

    def __init__(self, browser: Any, allowed: tuple[str, ...], width: int, height: int, scale: float = 1) -> None:
        self.allowed = (*allowed, "data:", "blob:")
        # Less motion, so that a step is there at once; tests of the motion itself set the time of a flight.
        self.context = browser.new_context(
            viewport={"width": width, "height": height}, device_scale_factor=scale, reduced_motion="reduce"
        )
        self.page = self.context.new_page()
        if slower := os.environ.get("SUBBYTE_THROTTLE"):
            self.context.new_cdp_session(self.page).send("Emulation.setCPUThrottlingRate", {"rate": float(slower)})
        self.page.set_default_timeout(PATIENCE)
        self.outside: list[str] = []
        self.errors: list[str] = []
        self.page.on("request", self._asked)
        self.page.on("console", lambda said: self.errors.append(said.text) if said.type == "error" else None)
        self.page.on("pageerror", lambda error: self.errors.append(str(error)))

    def _asked(self, request: Any) -> None:
        if not request.url.startswith(self.allowed):
            self.outside.append(request.url)

    def resize(self, width: int, height: int) -> None:
        """Another size, with the pointer in the corner."""
        self.page.mouse.move(0, 0)
        self.page.set_viewport_size({"width": width, "height": height})

    def settle(self) -> None:
        """Wait until two more frames were painted."""
        self.page.evaluate("() => new Promise((done) => requestAnimationFrame(() => requestAnimationFrame(done)))")

    def style(self, selector: str, name: str) -> str:
        """A computed style of the first element that matches."""
        code = "([selector, name]) => getComputedStyle(document.querySelector(selector))[name]"
        return str(self.page.evaluate(code, [selector, name]))

    def picture(self, name: str, selector: str) -> None:
        """Keep a screenshot of one element when SUBBYTE_PICTURES names a folder."""
        folder = os.environ.get("SUBBYTE_PICTURES")
        if folder:
            Path(folder).mkdir(parents=True, exist_ok=True)
            self.page.locator(selector).first.screenshot(path=str(Path(folder) / f"{name}.png"))

    def close(self) -> None:
        """Close the tab."""
        self.context.close()


@contextmanager
def reading(browser: Any, page: Path, width: int, height: int) -> Iterator[Watched]:
    """A tab on a page of a folder that may read files and nothing else: errors and what it asks for elsewhere fail."""
    tab = Watched(browser, ("file:",), width, height)
    tab.page.goto(page.as_uri())
    yield tab
    errors, outside = list(tab.errors), list(tab.outside)
    tab.close()
    assert not errors
    assert not outside


def strange(tab: Watched) -> list[str]:
    """What was asked for outside of this machine, apart from what Voila and nbconvert put into every page: a font of
    icons and programs for formulas and widgets, without which the pictures are as good."""
    own = ("font-awesome", "fontawesome", "mathjax", "require.js", "mermaid")
    return [address for address in tab.outside if not any(name in address.lower() for name in own)]


class Tab(Watched):
    """A tab of JupyterLab."""

    def __init__(self, browser: Any, lab: Lab, width: int = 1000, height: int = 1100, scale: float = 1) -> None:
        super().__init__(browser, (lab.base, "file:"), width, height, scale)
        self.lab, self.loaded = lab, False

    def open_notebook(self, name: str) -> None:
        """Open a notebook in place of the one before and wait until its kernel is ready.

        The page of JupyterLab is loaded once: each time costs the processor several seconds.
        """
        if self.loaded:
            said = len(self.errors)
            self.page.evaluate(CLOSE)
            del self.errors[said:]  # what a view on its way out could no longer send
            self.page.evaluate(OPEN, name)
        else:
            self.page.goto(f"{self.lab.base}/doc/tree/{name}?token={self.lab.token}&reset")
            self.page.wait_for_function("window.jupyterapp !== undefined")
            self.loaded = True
        self.page.wait_for_selector(".jp-Notebook")
        self.page.wait_for_function(KERNEL_IDLE)

    def run_notebook(self, name: str, seconds: float = 240) -> None:
        """Open a notebook, run all its cells, wait until the kernel is idle again."""
        self.open_notebook(name)
        self.command("notebook:run-all-cells", seconds)

    def command(self, name: str, seconds: float = 240) -> None:
        """A command of JupyterLab that runs cells, such as "notebook:run-cell"; waits until the kernel is idle."""
        self.page.evaluate(RUN, name)
        self.page.wait_for_function("window.sbRan", timeout=seconds * 1000)
        self.page.wait_for_function(KERNEL_IDLE, timeout=seconds * 1000)

    def run_cell(self, number: int, seconds: float = 240) -> None:
        """Run one cell, counted from 0, and wait until the kernel is idle again."""
        choose = "(number) => { window.jupyterapp.shell.currentWidget.content.activeCellIndex = number }"
        self.page.evaluate(choose, number)
        self.command("notebook:run-cell", seconds)

    def failures(self) -> list[str]:
        """The errors, with their names, in which cells have ended."""
        return [str(text) for text in self.page.evaluate(FAILED_CELLS)]

    def outputs(self) -> list[dict[str, Any]]:
        """What the cells have given, as a notebook file holds it."""
        found: list[dict[str, Any]] = self.page.evaluate(OUTPUTS)
        return found

    def answers(self, word: str) -> Any:
        """What says ``word`` of exercises, such as "Right" or "Not yet"."""
        return self.page.locator(".jp-OutputArea b", has_text=re.compile(word))

    def theme(self, name: str) -> None:
        """Switch JupyterLab's theme, such as "JupyterLab Dark"."""
        self.page.evaluate("(theme) => window.jupyterapp.commands.execute('apputils:change-theme', { theme })", name)
        light = str("Light" in name).lower()
        self.page.wait_for_function("(light) => document.body.dataset.jpThemeLight === light", arg=light)
        self.page.wait_for_selector("#jupyterlab-splash", state="detached")

    @contextmanager
    def dark(self) -> Iterator[None]:
        """The dark theme for a while."""
        self.theme("JupyterLab Dark")
        try:
            yield
        finally:
            self.theme("JupyterLab Light")

    def close(self) -> None:
        """End the notebook's kernel, then the tab."""
        if self.page.url.startswith(self.lab.base):
            self.page.evaluate(SHUT_DOWN)
        super().close()


def slowness(page: Any) -> float:
    """How many times longer the page takes for a fixed piece of work than where the limits were set; at least 1."""
    return max(1.0, page.evaluate(AT_WORK) / WORK_MS)


def press_to_paint(page: Any, keys: Iterable[str], pause: int = 15) -> list[float]:
    """Press each key in the focused element; milliseconds from each press to the end of the frame that follows it."""
    page.evaluate(PRESS_TO_PAINT)
    wanted = list(keys)
    for key in wanted:
        page.keyboard.press(key)
        page.wait_for_timeout(pause)
    page.wait_for_function("(pressed) => window.latencies.length >= pressed", arg=len(wanted))
    times: list[float] = page.evaluate("() => window.latencies")
    return times
