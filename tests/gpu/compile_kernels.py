"""Machine code of the kernels whose CUDA texts ``build_kernels.py --texts`` wrote: needs NVRTC, no TVM and no GPU.

    PYTHONPATH=toolkit python tests/gpu/compile_kernels.py FOLDER [--workers N]

Reads ``texts.jsonl.xz`` in FOLDER and writes ``kernels.jsonl`` and the cubins beside it. What a family refuses in the
machine code of its kernels is left out here as it is in ``subbyte.build``.
"""

from __future__ import annotations

import argparse
import hashlib
import json
import lzma
import os
import sys
from collections.abc import Iterable, Iterator
from concurrent.futures import ProcessPoolExecutor
from functools import partial
from multiprocessing import get_context
from pathlib import Path
from typing import Any

from subbyte.errors import InvalidInput, SubbyteError
from subbyte.families import config_from_key
from subbyte.families.base import Plan
from subbyte.kernel.build import machine_code, make_plan
from subbyte.kernel.nvrtc import compile_cubin
from subbyte.records.checked import new_folder
from subbyte.records.describe import workload_from_dict
from subbyte.spaces.configuration import Configuration
from subbyte.workload import ConvWorkload

TEXTS, KERNELS, CUBINS = "texts.jsonl.xz", "kernels.jsonl", "cubins"


def main() -> int:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("folder", type=Path)
    parser.add_argument("--workers", type=int, default=os.cpu_count(), help="processes (default: one for each core)")
    args = parser.parse_args()
    try:
        new_folder(args.folder / CUBINS, "folder")
        lines = read_texts(args.folder)
    except InvalidInput as error:
        print(f"error: {error}", file=sys.stderr)
        return error.exit_code
    with ProcessPoolExecutor(args.workers, get_context("spawn")) as pool:
        write_kernels(args.folder, pool.map(partial(compiled, folder=args.folder), lines))
    return 0


def write_texts(folder: Path, lines: Iterable[dict[str, Any]]) -> None:
    """Lines that :func:`compiled` takes, packed."""
    text = "".join(f"{json.dumps(line)}\n" for line in lines)
    (folder / TEXTS).write_bytes(lzma.compress(text.encode()))
    print(f"{len(text.splitlines())} texts", file=sys.stderr)


def read_texts(folder: Path) -> Iterator[dict[str, Any]]:
    """The lines again. Raises InvalidInput where there are none."""
    path = folder / TEXTS
    if not path.is_file():
        raise InvalidInput(f"{path} is not there: run tests/gpu/build_kernels.py {folder} --texts where TVM is")
    return map(json.loads, lzma.decompress(path.read_bytes()).splitlines())


def compiled(line: dict[str, Any], folder: Path) -> dict[str, Any] | None:
    """The line with names of cubins where it has texts; None for a kernel whose machine code is refused."""
    plan = planned(workload_from_dict(line["workload"]), config_from_key(line["key"]), line["arch"], **line["options"])
    try:
        made = {"cubin": kept(folder, machine_code(plan, line["cubin"])[0])}
        if "every_lane" in line:
            made["every_lane"] = kept(folder, compile_cubin(line["every_lane"], line["arch"])[0])
    except SubbyteError as error:
        print(f"  left out ({line['name']}): {error}", file=sys.stderr)
        return None
    return line | made


def planned(
    found: ConvWorkload, config: Configuration, arch: str, output: str | None = None, clip: Any = None,
    requant: str = "fixed",
) -> Plan:  # fmt: skip
    """The plan of a configuration, with the options of ``subbyte.build``. Raises Unsupported with the reason."""
    return make_plan(found, config, arch, output, clip, requant)


def write_kernels(folder: Path, lines: Iterable[dict[str, Any] | None]) -> None:
    """``kernels.jsonl`` of the lines that are there, each written when it has come: what was made before a stop can be
    run."""
    count = 0
    with (folder / KERNELS).open("w", buffering=1) as file:
        for line in lines:
            if line is not None:
                count += file.write(f"{json.dumps(line)}\n") > 0
    print(f"{count} kernels", file=sys.stderr)


def digest(text: str) -> str:
    """By which a kernel's text is known in records."""
    return hashlib.sha256(text.encode()).hexdigest()[:20]


def kept(folder: Path, cubin: bytes) -> str:
    """The file of a cubin, written."""
    name = f"{CUBINS}/{hashlib.sha256(cubin).hexdigest()[:20]}.cubin"
    (folder / name).write_bytes(cubin)
    return name


if __name__ == "__main__":
    sys.exit(main())
