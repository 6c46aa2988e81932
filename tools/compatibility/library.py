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


def made_space(spec: str, arch: str, kind: str, fixed: dict[str, Any]) -> Any:
    """A space by its kind."""
    from subbyte.families import space

    return space(spec, arch, kind, **fixed)


def landscapes() -> dict[str, dict[str, Any]]:
    """Headers of the shipped landscapes by name."""
    from subbyte.records.landscape_file import read_header, shipped

    return {name: read_header(path) for name, path in sorted(shipped().items())}


def trials(path: str) -> list[list[Any]]:
    """The trials of a log as plain data: number, index, key, microseconds or kind of failure."""
    from subbyte.tune import read_log

    return [
        [one.number, one.index, one.config.key, one.microseconds if one.result.ok else one.result.kind]
        for one in read_log(path).trials
    ]


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
