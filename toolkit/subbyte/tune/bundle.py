"""Every valid configuration of a space, compiled here so that another machine only has to measure.

A bundle is a folder: ``manifest.jsonl`` (a header line, then one line per configuration) and ``cubins/``. A line is
``{"index", "config", "cubin", "program", "launch", "resources", "seconds"}`` or, when the build failed, ``{"index",
"config", "failed": {"ok": false, "kind", "reason"}}``. Kernels that come out byte for byte equal share one cubin file;
those with the same ``program`` are launched alike and execute the same machine code.
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

from msgspec import UNSET

from subbyte.errors import BrokenRecord, InvalidInput
from subbyte.files import inside, prove_writable, replace_file, writing
from subbyte.measure.worker import WorkerDied, WorkerPool
from subbyte.records.checked import file_path, new_folder, searchable, whole
from subbyte.records.describe import (
    SpaceLike,
    arch_name,
    describe_space,
    describe_workload,
    described,
    now,
    to_line,
    versions,
)
from subbyte.records.reading import document, is_a_file, read_bytes, typed
from subbyte.records.result import Failed, result_of
from subbyte.records.shapes import ManifestHeader, ManifestLine
from subbyte.spaces.configuration import Configuration
from subbyte.workload import ConvWorkload

FORMAT = "subbyte-bundle"
SCHEMA = 1
_AGAIN = "delete the folder and build it again"
MANIFEST = "manifest.jsonl"
Build = Callable[[ConvWorkload, Configuration, str], Any]
"""Like :func:`subbyte.build`: gives an object with ``cubin`` (bytes), ``launch`` and ``resources``."""


@dataclass(frozen=True)
class BundleReport:
    """What ``build_bundle`` did: configurations ``built`` and ``failed`` in all, ``kept`` of an earlier run."""

    folder: str
    built: int
    failed: int
    kept: int
    seconds: float

    def to_dict(self) -> dict[str, Any]:
        """Ready for JSON."""
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

    An interrupted build goes on where it stopped. A configuration that fails, or kills its process, becomes a line
    with the reason. ``progress(done, total)`` is called after each. At ``until`` (of ``time.monotonic()``) building
    stops, as if interrupted, and the report counts what there is. Raises InvalidInput when the folder holds a
    bundle of another space, BrokenRecord when its manifest is damaged.
    """
    whole(workers, "workers", 1)
    started = time.monotonic()
    root = new_folder(file_path(folder, "bundle") / "cubins", "bundle").parent
    prove_writable(root / MANIFEST, "bundle")
    wanted = list(space.valid if indices is None else indices)
    entries = _open_manifest(root / MANIFEST, space)
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


def open_bundle(space: SpaceLike, folder: str | os.PathLike[str]) -> None:
    """Make the bundle's folder and the header of its manifest, if need be. Raises as :func:`build_bundle`."""
    prove_writable(new_folder(folder, "bundle") / MANIFEST, "bundle")
    _open_manifest(Path(folder) / MANIFEST, space)


def read_manifest(folder: str | os.PathLike[str]) -> tuple[dict[str, Any], dict[int, dict[str, Any]]]:
    """Header and entries by index of a bundle. A cut last line is left out. Raises InvalidInput, BrokenRecord."""
    header, entries = _read_manifest(folder)
    if not header:
        raise BrokenRecord(f"{Path(folder) / MANIFEST}, line 1: no header; {_AGAIN}")
    return header, entries


def _read_manifest(folder: str | os.PathLike[str]) -> tuple[dict[str, Any], dict[int, dict[str, Any]]]:
    """As :func:`read_manifest`; without a header where building ended before the first line was whole."""
    path = file_path(folder, "bundle") / MANIFEST
    if not is_a_file(path):
        raise InvalidInput(f"{folder} holds no bundle ({MANIFEST} is missing); build one with "
                           "`subbyte landscape record WORKLOAD --build-only DIR`")  # fmt: skip
    lines = read_bytes(path, "manifest").split(b"\n")[:-1]
    header: dict[str, Any] = {}
    entries: dict[int, dict[str, Any]] = {}
    for number, line in enumerate(lines, start=1):
        if number == 1:
            header = _header(line, path)
        else:
            entry = manifest_entry(line, f"{path}, line {number}: damaged", header["space"]["size"])
            entries[entry["index"]] = entry
    return header, entries


def _header(line: bytes, path: Path) -> dict[str, Any]:
    source = f"{path}, line 1"
    header: Any = document(line, Any, source, _AGAIN)
    if not isinstance(header, dict) or header.get("format") != FORMAT or header.get("schema") != SCHEMA:
        raise BrokenRecord(f"{source}: not a header of format {FORMAT}, schema {SCHEMA}; {_AGAIN}")
    shape: ManifestHeader = typed(header, ManifestHeader, source, _AGAIN)
    try:
        described(shape.workload, shape.space, header["space"])
    except InvalidInput as error:
        raise BrokenRecord(f"{source}: {error!s:.300}; {_AGAIN}") from None
    return header


def manifest_entry(line: bytes, source: str, size: int) -> dict[str, Any]:
    """The fields of a manifest's line in a space of ``size``. Raises BrokenRecord."""
    entry: dict[str, Any] = document(line, dict[str, Any], source, _AGAIN)
    shape: ManifestLine = typed(entry, ManifestLine, source, _AGAIN)
    try:
        if shape.index >= size:
            raise InvalidInput(f"index {shape.index} lies outside the space of {size} configurations")
        if shape.failed is not UNSET:
            result_of(shape.failed, shape.failed.ok)
        elif shape.cubin is UNSET or shape.launch is UNSET:
            raise InvalidInput("neither a kernel with its launch nor a failure")
        else:
            inside(".", shape.cubin)
    except InvalidInput as error:
        raise BrokenRecord(f"{source}: {error!s:.300}; {_AGAIN}") from None
    return entry


def _open_manifest(path: Path, space: SpaceLike) -> dict[int, dict[str, Any]]:
    """Entries built earlier; writes the header of a new manifest and truncates a cut last line away."""
    header, entries = _read_manifest(path.parent) if path.exists() else ({}, {})
    if not header:
        fields = {"format": FORMAT, "schema": SCHEMA, "workload": describe_workload(space.workload),
                  "space": describe_space(space), "versions": versions(), "created": now()}  # fmt: skip
        path.write_text(to_line(fields) + "\n", encoding="utf-8")
        return {}
    if header["space"]["hash"] != space.hash:
        raise InvalidInput(f"{path.parent} holds a bundle of {header['workload']['spec']} ({header['space']['kind']}, "
                           f"{header['space']['arch']}) built from another space; choose an empty folder")  # fmt: skip
    content = path.read_bytes()
    if not content.endswith(b"\n"):
        path.write_bytes(content[: content.rfind(b"\n") + 1])
    return entries


def _build_one(
    workload: ConvWorkload, config: Configuration, arch: str, folder: str, build: Build | None
) -> dict[str, Any]:
    """Runs in the worker: build, store the cubin, return the manifest fields."""
    from subbyte.kernel.program import program_digest

    if build is None:
        from subbyte.kernel import build as kernel_build

        build = kernel_build
    started = time.monotonic()
    try:
        kernel = build(workload, config, arch)
        cubin = bytes(kernel.cubin)
    except Exception as error:  # any failure of a candidate is a value with its reason
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
    """Outcomes as they come, up to ``until``. A process that dies costs the configuration it was building, and is
    replaced."""
    waiting = list(jobs)[::-1]
    running: dict[Future[dict[str, Any]], int] = {}
    done: SimpleQueue[Future[dict[str, Any]]] = SimpleQueue()  # waiting on hundreds of futures at a time is slow
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
