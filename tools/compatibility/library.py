"""All that the replay takes from the library's insides. Where those move, this file follows, and nothing else."""

from __future__ import annotations

import contextlib
import io
from collections.abc import Sequence
from typing import Any


def config_of_key(key: str) -> Any:
    """The configuration a key names."""
    from subbyte.families.registry import config_from_key

    return config_from_key(key)


def before(config: Any, workload: Any = None) -> Any:
    """A configuration with the fields and the key that the recorded version had for it, of a workload."""
    from subbyte.device.arch import arch
    from subbyte.families.wgmma import translate
    from subbyte.families.wgmma.config import WgmmaConfig
    from subbyte.families.wgmma.plan import WgmmaPlan

    if not isinstance(config, WgmmaConfig):
        return config
    if workload is None:
        return translate.before(config)
    return translate.before(config, WgmmaPlan(workload, config, arch("sm_90a")).stages, workload.stride > 1)


NAMES = {"mma": "warp", "wgmma": "warpgroup", "wgmma-small": "warpgroup-small"}
"""What families and kinds of spaces are called today, and were then."""


def printed_before(data: Any, spec: str = "", called: str = "") -> Any:
    """What a command printed, in the words of the recorded version: configurations, keys, families and spaces.

    ``spec`` is of the workload that the object is about, where one stands further up; ``called`` its name in the
    object around it.
    """
    if isinstance(data, dict):
        spec = next((str(data[name]) for name in ("spec", "workload") if isinstance(data.get(name), str)), spec)
        config = _recorded(data, spec)
        values = data if config is None else config.to_dict()
        return {name: printed_before(value, spec, name) for name, value in values.items()}
    if isinstance(data, list):
        return [printed_before(one, spec, called) for one in data]
    if isinstance(data, str) and data.startswith(("wgp-", "wgs-")):
        return before(config_of_key(data), _workload(spec)).key
    return NAMES.get(data, data) if called in ("family", "space", "kind") and isinstance(data, str) else data


def _recorded(data: dict[str, Any], spec: str) -> Any:
    """The recorded configuration that an object is one of today of; None for any other object."""
    from subbyte.families.wgmma.pipeline.config import PipelineConfig
    from subbyte.families.wgmma.single.config import SingleTileConfig

    if set(data) not in (set(PipelineConfig.rows), set(SingleTileConfig.rows)):
        return None
    return before(config_of_fields(data), _workload(spec))


def _workload(spec: str) -> Any:
    from subbyte.errors import SubbyteError
    from subbyte.workload import workload

    try:
        return workload(spec)
    except SubbyteError:
        return None


def key_today(key: str) -> str:
    """What a recorded key is called today; what is none stays what it is."""
    try:
        return str(config_of_key(key).key)
    except ValueError:
        return key


def config_of_fields(fields: dict[str, Any]) -> Any:
    """The configuration with recorded fields."""
    from subbyte.families.registry import config_from_dict

    return config_from_dict(fields)


def landscape_key(header: dict[str, Any], index: int) -> str:
    """The key of a landscape's index, by its header alone."""
    from subbyte.records.describe import config_at

    return str(config_at(header["space"], index).key)


def space_key(spec: str, arch: str, kind: str, fixed: dict[str, Any], index: int) -> str:
    """The key of a space's index."""
    return str(made_space(spec, arch, kind, fixed).config(index).key)


def made_space(spec: str, arch: str, kind: str, fixed: dict[str, Any], knobs: dict[str, Any] | None = None) -> Any:
    """A space by its kind. Value lists of one of an earlier version are in the records: ``knobs``."""
    from subbyte.device.arch import arch as arch_named
    from subbyte.families import space
    from subbyte.families.registry import family_of_kind
    from subbyte.workload import workload

    family = family_of_kind(kind)
    if knobs is None or family is None or kind in family.kinds:
        return space(spec, arch, kind, **fixed)
    lists = {name: tuple(values) for name, values in knobs.items()}
    return family.recorded_space(workload(spec), arch_named(arch), kind, lists, family.held(fixed))


def landscapes() -> dict[str, dict[str, Any]]:
    """Headers of the shipped landscapes by name."""
    from subbyte.records.landscape_file import read_header, shipped

    return {name: read_header(path) for name, path in sorted(shipped().items())}


def trials(path: str) -> list[list[Any]]:
    """The trials of a log as plain data: number, index, key, microseconds or kind of failure."""
    from subbyte.tune import read_log

    log = read_log(path)
    return [
        [one.number, one.index, before(one.config, log.workload).key,
         one.microseconds if one.result.ok else one.result.kind]
        for one in log.trials
    ]  # fmt: skip


def command(argv: Sequence[str]) -> tuple[int, str, str]:
    """Exit code, stdout and stderr of a command line, run in this process."""
    from subbyte.cli.main import main

    out, err = io.StringIO(), io.StringIO()
    with contextlib.redirect_stdout(out), contextlib.redirect_stderr(err):
        code = main(list(argv))
    return code, out.getvalue(), err.getvalue()


def log_with_failures(path: str, spec: str, kind: str, count: int) -> None:
    """A log whose made-up results fail in every known way."""
    from subbyte.families import space
    from subbyte.measure.fake import FakeRunner
    from subbyte.records.result import FAILURE_KINDS
    from subbyte.tune import Study

    runner = FakeRunner(3, failures=dict.fromkeys(FAILURE_KINDS, 0.8 / len(FAILURE_KINDS)))
    with Study(space(spec, kind=kind), "random", 2, path) as study:
        study.run(runner, count)


def gpu_question() -> tuple[Any, str]:
    """The module and the name of the function by which tuning asks whether there is a GPU."""
    from subbyte.tune import sources

    return sources, "has_gpu"


def has_no_gpu() -> None:
    """Make every command behave as on a machine without a GPU."""
    setattr(*gpu_question(), lambda: False)
