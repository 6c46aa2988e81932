"""Recording a landscape: many processes build kernels while one process per GPU measures them.

The builders (:mod:`subbyte.tune.bundle`) write kernels into a folder; each measuring process
(:mod:`subbyte.measure.bundle`) takes its share from there as it grows and appends to its own file. Only a
short line per kernel passes through this process, and nothing is lost when any of them is killed: a recording
can be resumed, also with other GPUs, and also on another machine that has only the results.
"""

from __future__ import annotations

import contextlib
import os
import subprocess
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from subbyte import processes
from subbyte.errors import InvalidInput, MissingDependency
from subbyte.numerals import natural
from subbyte.records.checked import file_path, number, searchable, whole, wholes
from subbyte.records.describe import SpaceLike
from subbyte.records.landscape import Landscape
from subbyte.records.manifest import open_bundle, read_manifest
from subbyte.records.result import Result
from subbyte.tune.bundle import Build, build_bundle

RESULTS = "results.jsonl"
"""The results file of a bundle measured by a single process."""
_PATTERN = "results*.jsonl"
_GRACE_S = 30.0
"""Seconds that the measuring processes may continue after the last kernel."""
Command = Callable[[Path, Path, int, str, Sequence[Path]], list[str]]
"""Maps bundle, results file, GPU, share and the other results files to the command that measures."""


@dataclass(frozen=True)
class RecordingReport:
    """Numbers of configurations by outcome; ``remaining`` ones were not reached."""

    folder: str
    valid: int
    measured: int
    failed: int
    shared: int
    remaining: int
    seconds: float

    def to_dict(self) -> dict[str, Any]:
        """Plain data, ready for JSON."""
        return asdict(self)


def record_landscape(
    space: SpaceLike,
    folder: str | os.PathLike[str],
    workers: int = 2,
    devices: Sequence[int] = (0,),
    limit_s: float | None = None,
    progress: Callable[[int, int], None] | None = None,
    build: Build | None = None,
    command: Command | None = None,
) -> RecordingReport:
    """Build every valid configuration with ``workers`` processes and measure each on one of ``devices``.

    Configurations with a result in the folder are not built again. Building stops ``limit_s`` seconds after the call;
    kernels built by then are still measured. ``progress(done, total)`` counts the kernels built. ``build`` and
    ``command`` replace the compiler and the measuring process. Raises InvalidInput (no devices, or the folder is of
    another space), MissingDependency with the messages of the measuring processes when none of them is left.
    """
    started, root, devices = time.monotonic(), file_path(folder, "bundle"), wholes(devices, "devices")
    whole(workers, "workers", 1)
    searchable(space)
    open_bundle(space, root)
    known = measured(root)
    todo = [index for index in space.valid if index not in known]
    until = started + number(limit_s, "limit_s") if limit_s is not None else float("inf")
    if todo:
        with _measuring(root, devices, command or _command, until) as check:

            def step(done: int, total: int) -> None:
                check()
                if progress is not None:
                    progress(done, total)

            build_bundle(space, root, workers, todo, build, step, until)
    found = measured(root)
    results = [found[index] for index in space.valid if index in found]
    good = sum(result.ok for result in results)
    return RecordingReport(
        str(root), len(space.valid), good, len(results) - good, len(_shared(root)), len(space.valid) - len(results),
        time.monotonic() - started,
    )  # fmt: skip


def result_files(folder: str | os.PathLike[str]) -> list[Path]:
    """The files written by the measuring processes of a bundle, sorted by name."""
    return sorted(file_path(folder, "bundle").glob(_PATTERN))


def measured(folder: str | os.PathLike[str]) -> dict[int, Result]:
    """All results in a bundle's folder, by index. Raises BrokenRecord."""
    from subbyte.records.measurements import merged

    return merged(result_files(folder)).results


def _shared(folder: Path) -> dict[int, int]:
    from subbyte.records.measurements import merged

    return merged(result_files(folder)).same


def assemble(measurements: str | os.PathLike[str] | None, bundle: str | os.PathLike[str]) -> Landscape:
    """The landscape from a bundle and its results file (None: all files in its folder), complete or rejected.

    Raises InvalidInput when configurations of the bundle have no result, or the results are of another bundle;
    BrokenRecord for a damaged file.
    """
    from subbyte.records.measurements import read_results, to_landscape

    paths = result_files(bundle) if measurements is None else [file_path(measurements, "measurements")]
    if not paths:
        raise InvalidInput(f"{bundle} holds no measurements; run `subbyte landscape measure {bundle}`")
    manifest, entries = read_manifest(bundle)
    for path in paths:
        header = read_results(path).header
        if header and (
            header["space"]["hash"] != manifest["space"]["hash"] or header["workload"] != manifest["workload"]
        ):
            spec = header["workload"]["spec"]
            raise InvalidInput(f"{path} holds measurements of {spec} in another space than {bundle}")
    made = to_landscape(*paths)
    missing = sorted(set(entries) - set(made.results) - set(made.dropped))
    if missing:
        raise InvalidInput(
            f"{paths[0]}: {len(missing)} of {len(entries)} configurations have no result (first: {missing[0]}); "
            f"run `subbyte landscape measure {bundle}` again to continue"
        )
    return made


# ---- measuring processes ------------------------------------------------------------


def _command(folder: Path, out: Path, device: int, share: str, known: Sequence[Path]) -> list[str]:
    options = ["--device", str(device), "--share", share, "--known", *map(str, known)]
    return [sys.executable, "-m", "subbyte.measure.bundle", str(folder), str(out), *options]


@contextmanager
def _measuring(folder: Path, devices: Sequence[int], command: Command, until: float) -> Iterator[Callable[[], None]]:
    """Run measuring processes while kernels are built; yields a function that raises once all of them have ended.

    Their standard input stays open meanwhile. When it is closed, by this process or by its death, they measure what
    exists and end.
    """
    outs = [folder / f"results.{_run(folder)}.{device}.jsonl" for device in devices]
    known = sorted({*result_files(folder), *outs})
    running: list[subprocess.Popen[bytes]] = []
    try:
        for place, (device, out) in enumerate(zip(devices, outs, strict=True)):
            with open(f"{out}.log", "wb") as log:
                running.append(processes.start(
                    command(folder, out, device, f"{place}/{len(devices)}", known), stdin=subprocess.PIPE, stdout=log,
                    stderr=log,
                ))  # fmt: skip
        logs = [Path(f"{out}.log") for out in outs]
        yield lambda: _check(running, logs)
        _finish(running, until)
        _check(running, logs)
    finally:
        for process in running:
            _end(process)


def _run(folder: Path) -> int:
    """The number of this run: each run has its own files, whose headers name its GPUs."""
    numbers = [path.name.split(".")[1] for path in result_files(folder)]
    return 1 + max((found for number in numbers if (found := natural(number)) is not None), default=0)


def _check(running: Sequence[subprocess.Popen[bytes]], logs: Sequence[Path]) -> None:
    """Raise MissingDependency when all measuring processes ended with an error."""
    if all(process.poll() not in (None, 0) for process in running):
        texts = (log.read_text(encoding="utf-8", errors="replace").strip() for log in logs)
        said = {text.removeprefix("error: ")[-300:] for text in texts}
        raise MissingDependency(f"no GPU is left to measure on: {'; '.join(sorted(said)) or 'no reason given'}")


def _finish(running: Sequence[subprocess.Popen[bytes]], until: float) -> None:
    """Announce that no more kernels come, and wait until the remaining ones are measured."""
    for process in running:
        assert process.stdin is not None
        with contextlib.suppress(OSError):
            process.stdin.close()
    for process in running:
        left = max(0.0, until - time.monotonic()) + _GRACE_S
        with contextlib.suppress(subprocess.TimeoutExpired):
            process.wait(None if until == float("inf") else left)


def _end(process: subprocess.Popen[bytes]) -> None:
    processes.end(process)
    if process.stdin is not None:
        with contextlib.suppress(OSError):
            process.stdin.close()
