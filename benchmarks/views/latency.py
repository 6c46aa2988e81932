"""How quickly the views answer: key press or slider step to repaint, in a real JupyterLab and Chromium.

python benchmarks/views                     measures every view at its largest sensible size, prints the table
python benchmarks/views --only space map    measures views whose name contains a word; writes nothing
python benchmarks/views --show FILE         prints the table of a record

Three numbers for each view: from a key press to the end of the last frame that shows its effect, in the view itself
(the kernel hears of it meanwhile); the same in a second view that follows the first through the kernel; and the bytes
that the browser receives to draw one view, its program included. For controls above a view, the kernel makes a new
record at each step. Exit code 1 when a view misses a goal: run it while nothing else does.
"""

from __future__ import annotations

import contextlib
import datetime
import json
import math
import os
import platform
import statistics
import subprocess
import sys
import tempfile
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from importlib.metadata import version
from pathlib import Path
from typing import Any

import psutil

from benchmarks.shared.command import RESULTS, ROOT, answering, parser_of
from benchmarks.views.cases import CASES, SIX, Case
from subbyte.errors import MissingDependency

sys.path.insert(0, str(ROOT / "tools"))

from real_browser import CannotStart, Lab, Tab, find_browser, launch

GOALS = {"median ms": 50, "p95 ms": 100, "kB to draw": 400, "six views s": 2}
STEPS = 40
# A frame counts as painted when the task after it runs; a later change of the same step moves the end.
WATCH = """(selector) => {
  const roots = [...document.querySelectorAll(selector)];
  window.sbPainted = roots.map(() => null);
  window.sbWatch?.forEach((watch) => watch.disconnect());
  window.sbWatch = roots.map((root, i) => {
    const painted = () => requestAnimationFrame(() => setTimeout(() => { window.sbPainted[i] = performance.now(); }));
    const watch = new MutationObserver(painted);
    watch.observe(root, { subtree: true, childList: true, attributes: true, characterData: true });
    return watch;
  });
  window.sbKey ??= document.addEventListener("keydown", () => {
    window.sbPressed = performance.now();
    window.sbPainted.fill(null);
  }, true) ?? true;
}"""
# Waits until every watched view was painted and nothing more came for a while; null for a view that never was.
SETTLED = """async (patience) => {
  const begun = performance.now();
  const quiet = () => {
    const now = performance.now();
    if (window.sbPainted.some((at) => at === null)) return now - begun > patience;
    return Math.max(...window.sbPainted) < now - 40;
  };
  while (!quiet()) await new Promise((done) => setTimeout(done, 8));
  return window.sbPainted.map((at) => at && at - window.sbPressed);
}"""
ALL_SIX = """async (selectors) => {
  const begun = performance.now();
  window.jupyterapp.commands.execute("notebook:run-all-below");
  const missing = () => selectors.some((selector) => !document.querySelector(selector));
  while (missing() && performance.now() - begun < 60000) await new Promise((done) => requestAnimationFrame(done));
  if (missing()) return null;
  await new Promise((done) => requestAnimationFrame(() => setTimeout(done)));
  return (performance.now() - begun) / 1000;
}"""


@dataclass
class Wire:
    """Bytes that the page received and sent over its connections to the kernels."""

    received: int = 0
    sent: int = 0

    def watch(self, page: Any) -> None:
        """Count from now on."""
        page.on("websocket", self._opened)

    def _opened(self, socket: Any) -> None:
        socket.on("framereceived", lambda data: self._count("received", data))
        socket.on("framesent", lambda data: self._count("sent", data))

    def _count(self, way: str, data: str | bytes) -> None:
        setattr(self, way, getattr(self, way) + len(data if isinstance(data, bytes) else data.encode()))


def p95(times: list[float]) -> float:
    """The time that 95 % of the steps stay below or reach."""
    return sorted(times)[math.ceil(0.95 * len(times)) - 1]


def step_through(tab: Tab, case: Case, roots: str, focus: str) -> list[list[float]]:
    """Press the case's keys; for each watched view the milliseconds of every step."""
    tab.page.locator(focus).first.focus()
    for key in case.begin:
        tab.page.keyboard.press(key)
    tab.page.wait_for_timeout(300)
    tab.page.evaluate(WATCH, roots)
    steps = []
    for turn in range(STEPS):
        tab.page.keyboard.press(case.keys[turn % len(case.keys)])
        steps.append(tab.page.evaluate(SETTLED, 3000))
    lost = [turn for turn, times in enumerate(steps) if None in times]
    if lost:
        raise CannotStart(f"{case.name}: steps {lost} changed nothing")
    return [list(times) for times in zip(*steps, strict=True)]


def measure(browser: Any, lab: Lab, case: Case) -> dict[str, Any]:
    """One view: bytes to draw it, its own steps, and those of a view that follows it through the kernel."""
    tab, wire = Tab(browser, lab, width=1000, height=1700), Wire()
    wire.watch(tab.page)
    tab.open_notebook(lab.write(f"{case.name.replace(' ', '_')}.ipynb", *case.cells()))
    tab.run_cell(0, 300)
    tab.page.wait_for_timeout(500)
    before = wire.received
    tab.run_cell(1, 300)
    tab.page.wait_for_selector(case.drawn)
    tab.page.wait_for_timeout(500)
    same_niceness()
    result: dict[str, Any] = {"view": case.name, "size": case.size, "control": case.control}
    result["kB to draw"] = round((wire.received - before) / 1000, 1)
    if problems := tab.failures():
        raise CannotStart(f"{case.name}: {problems[0]}")
    before = wire.received + wire.sent
    own = step_through(tab, case, case.root, case.focus)[0]
    result["kB per step"] = round((wire.received + wire.sent - before) / 1000 / STEPS, 2)
    result |= {"median ms": round(statistics.median(own), 1), "p95 ms": round(p95(own), 1), "steps ms": rounded(own)}
    if case.follow:
        tab.run_cell(2)
        tab.page.locator(case.root).nth(1).wait_for()
        tab.page.wait_for_timeout(500)
        follower = step_through(tab, case, case.root, case.focus)[1]
        result["follower median ms"] = round(statistics.median(follower), 1)
        result["follower p95 ms"] = round(p95(follower), 1)
    errors, outside = list(tab.errors), list(tab.outside)
    tab.close()
    if errors or outside:
        raise CannotStart(f"{case.name}: errors {errors}, asked for {outside}")
    return result


def same_niceness() -> None:
    """Give this program's niceness to all that it started: Chromium's pages take the ordinary one, and Linux weighs
    sessions before it weighs their processes, so that other programs would be measured."""
    mine, own = os.getpriority(os.PRIO_PROCESS, 0), psutil.Process()
    for process in (own, *own.children(recursive=True)):
        try:
            for thread in process.threads():
                os.setpriority(os.PRIO_PROCESS, thread.id, mine)
            Path(f"/proc/{process.pid}/autogroup").write_text(str(mine))
        except (psutil.Error, OSError):  # it has ended meanwhile, may not be raised, or this system has no such groups
            continue


def rounded(times: list[float]) -> list[float]:
    """To a tenth of a millisecond."""
    return [round(time, 1) for time in times]


def six_views(browser: Any, lab: Lab) -> dict[str, Any]:
    """Six views in one notebook, their records ready: from the run to the frame that shows the last one, thrice."""
    cases = [case for case in CASES if case.name in SIX]
    cells = ["\n".join(["import subbyte", *(case.setup for case in cases)]), *(case.show for case in cases)]
    seconds, received = [], 0
    for turn in range(3):
        tab, wire = Tab(browser, lab, width=1000, height=7000), Wire()  # tall: what is out of sight is not drawn
        wire.watch(tab.page)
        tab.open_notebook(lab.write(f"six{turn}.ipynb", *cells))
        tab.run_cell(0, 300)
        tab.page.evaluate("() => { window.jupyterapp.shell.currentWidget.content.activeCellIndex = 1 }")
        before = wire.received
        seconds.append(round(tab.page.evaluate(ALL_SIX, [case.drawn for case in cases]), 2))
        tab.page.wait_for_timeout(500)
        received = wire.received - before
        tab.close()
    return {"views": [case.name for case in cases], "seconds": seconds, "median s": statistics.median(seconds),
            "kB": round(received / 1000)}  # fmt: skip


def machine() -> dict[str, Any]:
    """What measured: processor, cores, load, versions."""
    lines = Path("/proc/cpuinfo").read_text().splitlines()
    models = [line.partition(":")[2].strip() for line in lines if line.startswith("model name")]
    browser = subprocess.run([find_browser(), "--version"], capture_output=True, text=True).stdout.strip()
    names = ("jupyterlab", "ipykernel", "ipywidgets", "anywidget", "playwright")
    return {
        "processor": models[0] if models else platform.processor(), "cores": os.cpu_count(),
        "system": f"{platform.system()} {platform.machine()}", "python": platform.python_version(),
        "browser": browser, "rendering": "headless, in software",
        "nice": os.nice(0), **{name: version(name) for name in names},
    }  # fmt: skip


def missed(record: dict[str, Any]) -> list[str]:
    """One line for each goal that a view misses."""
    found = [
        f"{view['view']}: {view[goal]} {goal}, at most {GOALS[goal]}"
        for view in record["views"]
        for goal in ("median ms", "p95 ms", "kB to draw")
        if view[goal] > GOALS[goal]
    ]
    six = record.get("six views")
    return found + ([f"six views: {six['median s']} s, at most 2"] if six and six["median s"] > 2 else [])


def table(record: dict[str, Any]) -> str:
    """The record as Markdown."""
    made, load = record["machine"], record["load average"]
    where = (
        f"{record['date']}, {made['processor']}, {made['cores']} cores, load average {load['before']} before and "
        f"{load['after']} after, nice {made['nice']}, {made['browser']}, {made['rendering']}, "
        f"JupyterLab {made['jupyterlab']}."
    )
    head = ["view", "at this size", "step", "repaint ms", "in a follower ms", "kB to draw", "kB per step"]
    lines = [
        where,
        "Milliseconds: median (95th percentile).",
        "",
        row(head),
        "| --- | --- | --- | ---: | ---: | ---: | ---: |",
    ]
    for view in record["views"]:
        times = [f"{view[f'{who}median ms']:.0f} ({view[f'{who}p95 ms']:.0f})" if f"{who}p95 ms" in view else ""
                 for who in ("", "follower ")]  # fmt: skip
        lines.append(row([view["view"], view["size"], view["control"], *times, f"{view['kB to draw']:.0f}",
                          f"{view['kB per step']:.1f}"]))  # fmt: skip
    if six := record.get("six views"):
        lines += ["", f"Six views in one notebook: {six['median s']} s (of {six['seconds']}), {six['kB']} kB."]
    return "\n".join(lines)


def row(cells: list[str]) -> str:
    """One line of a Markdown table."""
    return f"| {' | '.join(cells)} |"


@contextlib.contextmanager
def can_start() -> Iterator[None]:
    """A browser or server that does not start is MissingDependency."""
    try:
        yield
    except CannotStart as problem:
        raise MissingDependency(str(problem)) from None


@answering
def main(arguments: Sequence[str]) -> int:
    parser = parser_of("views", __doc__)
    parser.add_argument("--only", nargs="+", metavar="WORD", help="only views whose name contains one of these")
    parser.add_argument("--show", type=Path, metavar="FILE", help="measure nothing, print the table of a record")
    given = parser.parse_args(arguments)
    if given.show:
        print(table(json.loads(given.show.read_text())))
        return 0
    chosen = [case for case in CASES if not given.only or any(word in case.name for word in given.only)]
    load = {"before": round(os.getloadavg()[0], 2)}
    record: dict[str, Any] = {"benchmark": "latency of the views", "machine": machine(), "goals": GOALS, "views": []}
    record["date"] = datetime.datetime.now(datetime.UTC).date().isoformat()
    with can_start(), tempfile.TemporaryDirectory() as folder, launch() as browser:
        lab = Lab(Path(folder))
        try:
            for case in chosen:
                record["views"].append(measure(browser, lab, case))
                print(f"{case.name}: {record['views'][-1]['median ms']} ms", file=sys.stderr, flush=True)
            if not given.only:
                record["six views"] = six_views(browser, lab)
        finally:
            lab.close()
    record["load average"] = {**load, "after": round(os.getloadavg()[0], 2)}
    print(table(record))
    if not given.only:
        path = RESULTS / f"latency-{record['date']}.json"
        path.write_text(json.dumps(record, indent=1) + "\n")
        print(f"\nwritten: {path.relative_to(ROOT)}")
    for line in missed(record):
        print(f"missed: {line}", file=sys.stderr)
    return 1 if missed(record) else 0
