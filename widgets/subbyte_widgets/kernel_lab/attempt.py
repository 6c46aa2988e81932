"""One attempt of the kernel lab: the toolkit builds, runs, checks and times; this file only connects these steps."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass

from subbyte import html
from subbyte.html import Markup, element
from subbyte.records.landscape import Landscape
from subbyte.records.result import Measured
from subbyte.spaces.configuration import Configuration
from subbyte.workload import ConvWorkload


@dataclass(frozen=True)
class Attempt:
    """The result for one configuration: the outcome of the check, where it ran, its resources, microseconds on that
    GPU."""

    config: Configuration
    ok: bool
    outcome: str
    where: str = ""
    needs: str = ""
    microseconds: float | None = None


def attempt_one(
    workload: ConvWorkload, config: Configuration, arch: str, device: str, say: Callable[[str], None]
) -> Attempt:
    """Build ``config``, run it on random operands, compare every element; time it if there is a GPU."""
    from subbyte.gpu.check import compare
    from subbyte.kernel.execute import EMULATOR, expected, random_operands, resolve_device
    from subbyte.kernel.kernel import build

    say("Building ...")
    kernel = build(workload, config, arch)
    place = resolve_device(device, arch)
    where = "CPU (emulator)" if place == EMULATOR else place
    r = kernel.resources
    needs = f"{r.registers} registers, {r.shared_bytes:,} shared bytes, {r.blocks_per_sm} blocks per multiprocessor"
    say(f"Running on {where} ...")
    x, w, requant = random_operands(kernel, seed=0)
    report = compare(kernel.run(x, w, requant, device=place), expected(kernel, x, w, requant))
    if place == EMULATOR or not report.ok:
        return Attempt(config, report.ok, str(report), where, needs)
    say("Timing ...")
    return Attempt(config, True, str(report), where, needs, kernel.time(device=place).microseconds)


def table(attempts: Iterable[Attempt], landscape: Landscape | None) -> Markup:
    """Attempts as an HTML table, the latest one first, with the time ``landscape`` recorded for each."""
    heads = ["configuration", "check", "ran on", "needs", "measured"] + ["recorded"] * (landscape is not None)
    rows = []
    for attempt in attempts:
        mark = "\u2713" if attempt.ok else "\u2717"
        cells = [element("code", attempt.config.key), f"{mark} {attempt.outcome}", attempt.where, attempt.needs,
                 _time(attempt.microseconds)]  # fmt: skip
        if landscape is not None:
            cells.append(_recorded(landscape, attempt.config))
        rows.append([html.cell(one, style="text-align:left") for one in cells])
    return html.table(reversed(rows), heads) if rows else element("p", "Nothing built yet.")


def _time(microseconds: float | None) -> str:
    return "" if microseconds is None else f"{microseconds:.2f} us"


def _recorded(landscape: Landscape, config: Configuration) -> str:
    result = landscape.results.get(landscape.by_config.get(config, -1))
    if isinstance(result, Measured):
        return _time(result.microseconds)
    return "not recorded" if result is None else f"failed: {result.kind}"
