"""Records of the notebooks on a GPU: ``notebooks/records/NAME.GPU.ipynb`` as it ran, ``.json`` beside it.

``python tools/notebook_records.py run [--into FOLDER] [NAME ...]`` executes notebooks on this machine's GPU without
touching the committed ones; ``table`` writes what was recorded into ``notebooks/records/README.md``.

The JSON holds device, driver, date, versions, seconds and the raw samples of everything that was timed or tuned.
"""

import argparse
import copy
import json
import platform
import sys
import tempfile
import time
from importlib import metadata
from pathlib import Path
from typing import Any

import nbformat
from notebooks import FOLDER, execute, find, normal_form

from subbyte.errors import MissingDependency

RECORDS = FOLDER / "records"
START, END = "<!-- records:start -->", "<!-- records:end -->"
PACKAGES = ("numpy", "apache-tvm", "nvidia-cuda-nvrtc", "cuda-bindings", "torch", "xgboost-cpu", "ipykernel", "plotly")
HEAVY = ("text/html", "application/vnd.plotly.v1+json")
"""Kinds of output that a picture beside them replaces: the committed notebook has them."""
ABSENT = ("no NVIDIA driver", "not timed here", "no GPU here", "MissingDependency", "not installed")
"""What a record must not say: that something of a GPU machine was not there."""
Notebook = dict[str, Any]


def record(path: Path, into: Path) -> dict[str, Any]:
    """Execute a notebook on this machine's GPU and write its record into a folder; what the JSON holds.

    Raises MissingDependency without a GPU, CellExecutionError for a cell that fails.
    """
    from subbyte.gpu.driver import detect

    gpu = detect()[0]
    notebook = nbformat.read(path, as_version=4)
    run = copy.deepcopy(notebook)
    for cell in run.cells:
        if cell.cell_type == "code":
            cell.outputs, cell.execution_count = [], None
    with tempfile.TemporaryDirectory() as folder:
        raw = Path(folder) / "raw.json"
        hidden = f"import sys; sys.path.append({str(Path(__file__).parent)!r}); import notebook_watch as _watch"
        run.cells.insert(0, nbformat.v4.new_code_cell(f"{hidden}; _watch.watch({str(raw)!r})"))
        date, started = time.strftime("%Y-%m-%d %H:%M UTC", time.gmtime()), time.perf_counter()
        execute(run)
        seconds = time.perf_counter() - started
        measured = json.loads(raw.read_text(encoding="utf-8"))
    del run.cells[0]
    slug = card(gpu.name)
    facts = {
        "notebook": path.name, "device": gpu.name, "arch": gpu.arch, "driver": gpu.driver_version,
        "cuda": gpu.cuda_version, "date": date, "seconds": round(seconds, 1), "processors": _processors(),
        "versions": versions(), **measured,
    }  # fmt: skip
    into.mkdir(parents=True, exist_ok=True)
    slim = nbformat.from_dict(record_form(run))
    (into / f"{path.stem}.{slug}.ipynb").write_text(nbformat.writes(slim) + "\n", encoding="utf-8")
    (into / f"{path.stem}.{slug}.json").write_text(json.dumps(facts, indent=1) + "\n", encoding="utf-8")
    return facts


def card(name: str) -> str:
    """The part of a GPU's name that stands in file names: h200, or h100 of "NVIDIA H100 80GB HBM3"."""
    words = name.lower().split()
    return next((word for word in words if any(sign.isdigit() for sign in word)), words[-1])


def _processors() -> int:
    import os

    return os.cpu_count() or 1


def versions() -> dict[str, str]:
    """Python and the packages that decide what a notebook shows, as far as they are installed."""
    found = {"python": platform.python_version()}
    for name in PACKAGES:
        try:
            found[name] = metadata.version(name)
        except metadata.PackageNotFoundError:
            continue
    return found


def record_form(notebook: Notebook) -> Notebook:
    """The normal form, with cells counted from 1 and without what a picture beside it shows as well."""
    normal = normal_form(notebook, charts=False)
    code = [cell for cell in normal["cells"] if cell["cell_type"] == "code"]
    for number, cell in enumerate(code, 1):
        cell["execution_count"] = number
        for output in cell["outputs"]:
            if "execution_count" in output:
                output["execution_count"] = number
            data = output.get("data", {})
            if "image/svg+xml" in data:
                output["data"] = {kind: data[kind] for kind in data if kind not in HEAVY}
    return normal


def problems(notebook: Notebook, facts: dict[str, Any]) -> list[str]:
    """What is wrong with a record: errors, a missing GPU, cells that did not run."""
    found = [f"no {key} is named" for key in ("device", "driver", "date", "seconds", "versions") if not facts.get(key)]
    for number, cell in enumerate(notebook["cells"]):
        if cell["cell_type"] != "code":
            continue
        if not cell["execution_count"]:
            found.append(f"cell {number} did not run")
        for output in cell["outputs"]:
            if output["output_type"] == "error":
                found.append(f"cell {number} raised {output['ename']}")
            said = "".join(output.get("text", "")) + "".join(output.get("data", {}).get("text/plain", ""))
            found += [f"cell {number} says {words!r}" for words in ABSENT if words in said]
    for one in facts.get("timings", []):
        if not one["samples"] or not min(one["samples"]) <= one["microseconds"] <= max(one["samples"]):
            found.append(f"the time of {one['configuration']} is not that of its samples")
    return found


def changed_cells(notebook: Notebook, committed: Notebook) -> str:
    """``the same``, or which code cells of the committed notebook have another text than those that ran."""
    ran, now = _sources(notebook), _sources(committed)
    if ran == now:
        return "the same"
    changed = [str(number) for number, source in enumerate(now, 1) if source not in ran]
    gone = [str(number) for number, source in enumerate(ran, 1) if source not in now]
    since = f"new or changed since: {', '.join(changed) or 'none'}"
    return since + (f"; replaced: {', '.join(gone)} of the record" if gone else "")


def _sources(notebook: Notebook) -> list[str]:
    return ["".join(cell["source"]) for cell in notebook["cells"] if cell["cell_type"] == "code"]


def read(folder: Path = RECORDS) -> dict[str, tuple[Path, Notebook, dict[str, Any]]]:
    """Every record by the file name of its notebook: path, notebook, facts."""
    found = {}
    for path in sorted(folder.glob("*.json")):
        facts = json.loads(path.read_text(encoding="utf-8"))
        notebook = path.with_suffix(".ipynb")
        found[facts["notebook"]] = (notebook, json.loads(notebook.read_text(encoding="utf-8")), facts)
    return found


def table(folder: Path = RECORDS) -> str:
    """Markdown: one row for each committed notebook, then the versions."""
    heads = ("notebook", "GPU, driver", "date", "seconds", "timed", "trials", "code cells of the notebook now")
    rows = [heads, ("---", "---", "---", "---:", "---:", "---:", "---")]
    records = read(folder)
    for path in sorted(FOLDER.glob("*.ipynb")):
        if path.name not in records:
            rows.append((path.stem, "not recorded", "", "", "", "", ""))
            continue
        at, notebook, facts = records[path.name]
        same = changed_cells(notebook, json.loads(path.read_text(encoding="utf-8")))
        trials = sum(len(study["trials"]) for study in facts["studies"])
        counts = (str(facts["seconds"]), str(len(facts["timings"])), str(trials))
        rows.append(
            (f"[{path.stem}]({at.name})", f"{facts['device']}, {facts['driver']}", facts["date"], *counts, same)
        )
    kinds = sorted({", ".join(f"{k} {v}" for k, v in facts["versions"].items()) for _, _, facts in records.values()})
    return "\n".join("| " + " | ".join(row) + " |" for row in rows) + "".join(f"\n\n{kind}." for kind in kinds)


def with_table(text: str, folder: Path = RECORDS) -> str:
    """A README's text with the table between its markers."""
    before, rest = text.split(START)
    return f"{before}{START}\n{table(folder)}\n{END}{rest.split(END)[1]}"


def main() -> int:
    """Run from the command line."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    commands = parser.add_subparsers(dest="command", required=True)
    run = commands.add_parser("run", help="execute notebooks on this machine's GPU and keep the records")
    run.add_argument("names", nargs="*", metavar="NAME")
    run.add_argument("--into", type=Path, default=RECORDS, help="folder of the records")
    commands.add_parser("table", help="write the table of notebooks/records/README.md")
    options = parser.parse_args()
    if options.command == "table":
        readme = RECORDS / "README.md"
        readme.write_text(with_table(readme.read_text(encoding="utf-8")), encoding="utf-8")
        return 0
    for path in find(options.names):
        try:
            facts = record(path, options.into)
        except MissingDependency as error:
            print(f"error: {error}", file=sys.stderr)
            return error.exit_code
        print(f"{path.name}: {facts['seconds']} s on {facts['device']}, {len(facts['timings'])} timings", flush=True)
    return 0


if __name__ == "__main__":
    sys.exit(main())
