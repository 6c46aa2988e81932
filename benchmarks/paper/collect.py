"""Pack the logs of tuned searches for the repository: every trial in its order, with its raw samples.

    python benchmarks/paper collect LOGS OUT

LOGS is the folder that ``retuned`` or ``hwnc-search`` wrote. ``OUT/stageN-searches.json.gz`` holds all searches of a
stage: ``searches[name]["trials"]`` lists [index, samples in microseconds], or [index, kind of failure]; ``taken_from``
counts those that an earlier record holds too, which come first. The re-measurements are copied as they are.
"""

from __future__ import annotations

import gzip
import json
import shutil
from collections import Counter, defaultdict
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from benchmarks.shared.command import answering, parser_of
from subbyte.records.result import Measured
from subbyte.tune import read_log

FORMAT = "subbyte-searches"


@answering
def main(arguments: Sequence[str]) -> int:
    parser = parser_of("paper collect", __doc__)
    parser.add_argument("logs", type=Path)
    parser.add_argument("out", type=Path)
    args = parser.parse_args(arguments)
    args.out.mkdir(parents=True, exist_ok=True)
    stages: dict[str, dict[str, Any]] = defaultdict(dict)
    for log in sorted(args.logs.glob("stage*.jsonl")):
        stage, _, name = log.stem.partition("-")
        stages[stage][name] = one_search(log)
    for stage, searches in stages.items():
        text = json.dumps({"format": FORMAT, "schema": 1, "searches": searches}, separators=(",", ":")) + "\n"
        packed = gzip.compress(text.encode(), compresslevel=9, mtime=0)
        (args.out / f"{stage}-searches.json.gz").write_bytes(packed)
    for remeasured in sorted(args.logs.glob("stage*.json")):
        shutil.copyfile(remeasured, args.out / remeasured.name)
    return 0


def one_search(log: Path) -> dict[str, Any]:
    """Header fields and trials of a log."""
    record = read_log(log)
    header = record.header
    trials: list[list[Any]] = []
    for trial in record.trials:
        result = trial.result
        if isinstance(result, Measured):
            trials.append([trial.index, [round(sample, 4) for sample in result.samples]])
        else:
            trials.append([trial.index, result.kind if result is not None else ""])
    kept = ("workload", "device", "strategy", "seed", "versions", "created")
    space = {key: header["space"][key] for key in ("kind", "arch", "hash", "size", "fixed")}
    taken = Counter(trial.result.device.get("taken_from", "") for trial in record.trials if trial.result is not None)
    taken.pop("", None)
    more = {"taken_from": dict(taken)} if taken else {}
    return {**{key: header[key] for key in kept}, **more, "space": space, "trials": trials}
