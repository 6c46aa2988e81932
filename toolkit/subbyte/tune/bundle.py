"""All valid configurations of a space, compiled on this machine so that another one only has to measure them.

A bundle is a folder: ``manifest.jsonl`` (a header line, then one line per configuration) and ``cubins/``. A line is
``{"index", "config", "cubin", "program", "launch", "resources", "seconds"}`` or, if the build failed, ``{"index",
"config", "failed": {"ok": false, "kind", "reason"}}``. Byte-identical kernels share one cubin file;
those with the same ``program`` have the same launch and execute the same machine code.
"""

from __future__ import annotations

import hashlib
import math
import os
import time
from collections.abc import Callable, Generator, Iterable, Mapping
from concurrent.futures import Executor, Future
from contextlib import closing
from dataclasses import asdict, dataclass, is_dataclass
from pathlib import Path
from queue import Empty, SimpleQueue
from typing import Any

from subbyte.files import prove_writable, replace_file, writing
from subbyte.measure.worker import WorkerDied, WorkerPool
from subbyte.records.checked import file_path, new_folder, searchable, whole
from subbyte.records.describe import (
    SpaceLike,
    arch_name,
    to_line,
)
from subbyte.records.manifest import MANIFEST, entries_of
from subbyte.records.result import Failed
from subbyte.spaces.configuration import Configuration
from subbyte.workload import ConvWorkload

Build = Callable[[ConvWorkload, Configuration, str], Any]
"""Like :func:`subbyte.build`: returns an object with ``cubin`` (bytes), ``launch`` and ``resources``."""


@dataclass(frozen=True)
class BundleReport:
    """The result of ``build_bundle``: total configurations ``built`` and ``failed``, and those ``kept`` from an earlier
    run."""

    folder: str
    built: int
    failed: int
    kept: int
    seconds: float

    def to_dict(self) -> dict[str, Any]:
        """Plain data, ready for JSON."""
        return asdict(self)


def build_bundle(
    space: SpaceLike,
    folder: str | os.PathLike[str],
    workers: int = 2,
    indices: Iterable[int] | None = None,
    build: Build | None = None,
    progress: Callable[[int, int], None] | None = None,
    until: float = math.inf,
) -> BundleReport:
    """Build ``indices`` (default: every valid configuration) into ``folder`` with ``workers`` spawned processes.

    An interrupted build can be resumed. A configuration that fails, or kills its process, becomes a line with the
    reason. ``progress(done, total)`` is called after each one. At ``until`` (a ``time.monotonic()`` time) building
    stops as if interrupted, and the report counts what exists by then. Raises InvalidInput when the folder holds a
    bundle of another space, BrokenRecord when its manifest is damaged.
    """
    searchable(space)
    whole(workers, "workers", 1)
    started = time.monotonic()
    root = new_folder(file_path(folder, "bundle") / "cubins", "bundle").parent
    prove_writable(root / MANIFEST, "bundle")
    wanted = list(space.valid if indices is None else indices)
    entries = entries_of(root / MANIFEST, space)
    todo = [index for index in wanted if index not in entries]
    kept = len(wanted) - len(todo)
    arch = arch_name(space)
    jobs = {index: (space.workload, space.config(index), arch, str(root), build) for index in todo}
    with (
        closing(_run_jobs(jobs, workers, until)) as outcomes,
        writing(root / MANIFEST, "bundle"),
        open(root / MANIFEST, "a", encoding="utf-8") as manifest,
    ):
        for count, (index, outcome) in enumerate(outcomes, start=1):
            entry = {"index": index, "config": space.config(index).to_dict(), **outcome}
            manifest.write(to_line(entry) + "\n")
            manifest.flush()
            entries[index] = entry
            if progress is not None:
                progress(kept + count, len(wanted))
    there = [entries[index] for index in wanted if index in entries]
    failed = sum("failed" in entry for entry in there)
    return BundleReport(str(root), len(there) - failed, failed, kept, time.monotonic() - started)


def _build_one(
    workload: ConvWorkload, config: Configuration, arch: str, folder: str, build: Build | None
) -> dict[str, Any]:
    """Runs in a worker: build, store the cubin, return the manifest fields."""
    from subbyte.kernel.program import program_digest

    if build is None:
        from subbyte.kernel import build as kernel_build

        build = kernel_build
    started = time.monotonic()
    try:
        kernel = build(workload, config, arch)
        cubin = bytes(kernel.cubin)
    except Exception as error:  # any failure of a candidate becomes a value with its reason
        return {"failed": Failed("build", f"{type(error).__name__}: {error}"[:2000]).to_dict()}
    name = f"cubins/{hashlib.sha256(cubin).hexdigest()[:20]}.cubin"
    target = Path(folder) / name
    launch = kernel.launch.to_dict()
    if not target.exists():
        replace_file(target, cubin)
    return {
        "cubin": name,
        "program": f"{program_digest(cubin)}-{hashlib.sha256(to_line(launch).encode()).hexdigest()[:8]}",
        "launch": launch,
        "resources": _plain(getattr(kernel, "resources", {})),
        "seconds": round(time.monotonic() - started, 4),
    }


def _plain(value: Any) -> dict[str, Any]:
    return asdict(value) if is_dataclass(value) and not isinstance(value, type) else dict(value)


def _run_jobs(
    jobs: Mapping[int, tuple[Any, ...]], workers: int, until: float
) -> Generator[tuple[int, dict[str, Any]], None, None]:
    """Yield outcomes as they complete, until ``until``. A process that dies costs only the configuration it was
    building, and is replaced."""
    waiting = list(jobs)[::-1]
    running: dict[Future[dict[str, Any]], int] = {}
    done: SimpleQueue[Future[dict[str, Any]]] = SimpleQueue()  # waiting on hundreds of futures at once is slow
    pool = _pool(max(1, min(workers, len(waiting))))
    try:
        while waiting or running:
            while waiting and len(running) < 2 * workers:
                future = pool.submit(_build_one, *jobs[waiting[-1]])
                running[future] = waiting.pop()
                future.add_done_callback(done.put)
            left = until - time.monotonic()
            if left <= 0:
                return
            try:
                future = done.get(timeout=None if left == math.inf else left)
            except Empty:
                return
            yield running.pop(future), _outcome(future)
    finally:
        pool.shutdown(wait=True, cancel_futures=True)


def _outcome(future: Future[dict[str, Any]]) -> dict[str, Any]:
    try:
        return future.result()
    except WorkerDied as error:
        return {"failed": Failed("crash", str(error)).to_dict()}


def _pool(workers: int) -> Executor:
    return WorkerPool(workers, "building")
