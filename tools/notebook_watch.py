"""Inside the kernel of a recorded notebook: keeps the raw samples of what its cells time and tune on a GPU."""

import atexit
import json
from pathlib import Path
from typing import Any


def watch(path: str) -> None:
    """Write to ``path``, when the kernel ends, every timing (samples, clocks) and every trial measured on a GPU."""
    from subbyte.kernel import execute
    from subbyte.tune.study import Study

    found: dict[str, list[dict[str, Any]]] = {"timings": [], "studies": []}
    time, run = execute.time, Study.run

    def timed(kernel: Any, *rest: Any) -> Any:
        timing = time(kernel, *rest)
        of = {"workload": kernel.workload.spec, "configuration": kernel.config.key, "arch": kernel.arch}
        found["timings"].append(of | {key: timing.to_dict()[key] for key in KEPT})
        return timing

    def tuned(study: Any, *rest: Any, **options: Any) -> Any:
        record = run(study, *rest, **options)
        if record.header["device"].get("runner") == "cuda":
            trials = [_trial(trial) for trial in record.trials]
            of = {"workload": record.workload.spec, "strategy": study.strategy.name, "seed": record.header.get("seed")}
            found["studies"].append(of | {"trials": trials})
        return record

    execute.time, Study.run = timed, tuned  # type: ignore[method-assign]
    atexit.register(lambda: Path(path).write_text(json.dumps(found), encoding="utf-8"))


KEPT = ("microseconds", "samples", "cold_microseconds", "cold_samples", "clocks", "date")
"""Of a timing; device and protocol are the same for all."""


def _trial(trial: Any) -> dict[str, Any]:
    """A trial without its device, which is the record's."""
    result = trial.result.to_dict()
    return {"configuration": trial.config.key, **{key: result[key] for key in result if key != "device"}}
