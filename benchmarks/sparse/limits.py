"""Find what a kernel on 2:4 weights waits for: time the same kernel without one kind of its instructions.

Takes the first 2:4 kernel of each cell of a file that ``texts`` wrote. In its text a load or a store gets a condition
that never holds: it takes its place among the instructions and moves nothing, and all that leads to it stays.
Multiplications become empty statements. What a kernel computes then means nothing, and only its time is taken.
``--epilogue`` leaves out the arithmetic between sums and packed words instead: what is added to a sum, the
multiply-add, the packing of two values. Compiles, and times all texts of a cell in turns. ``--print RECORD`` shows a
record as a table.
"""

from __future__ import annotations

import json
import re
import statistics
from collections.abc import Mapping, Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from benchmarks.shared.command import answering, parser_of
from benchmarks.shared.texts import all_compiled, lines_of
from benchmarks.sparse.measure import ROUND, Cell
from subbyte.errors import InvalidInput
from subbyte.files import prove_writable, write_file
from subbyte.gpu.device import CudaDevice
from subbyte.gpu.launched import GpuKernel
from subbyte.gpu.timing import command_line
from subbyte.kernel.resources import read_resources

MULTIPLICATIONS = "multiplications"
MOVES: Mapping[str, tuple[str, ...]] = {
    "loads of weights": (r"ld\.global\.nc",),
    "loads of pixels": (r"ld\.global\.L1::no_allocate",),
    "stores of pixels": (r"st\.shared\.v4",),
    "turning of outputs": (r"stmatrix", r"ld\.shared\.v4"),
}
"""How the instructions of a kind begin in a kernel's text."""
LEFT_OUT = ("", MULTIPLICATIONS, *MOVES, "loads of pixels, stores of pixels",
            "loads of pixels, stores of pixels, turning of outputs")  # fmt: skip
"""Kinds that are left out, several together; "" = none."""
ARITHMETIC: Mapping[str, tuple[str, str]] = {
    "additions": (r"(\(\(int\)\w+\[[^\]]+\]\)) \+ added\w*;", r"\1;"),
    "multiply-adds": (r'asm volatile\("fma\.rn\.f32 [^;]*;" : "=f"\(__d\) : "f"\(__a\)[^;]*;', "__d = __a;"),
    "packing": (
        r"\w+cvt_pack\w+\((\w+\[[^\]]+\]), (\w+), (\w+), (\w+\[[^\]]+\])\);",
        (
            r'\1 = \4; asm volatile("{ .reg .pred never; setp.ne.u32 never, %2, 0; @never st.shared.b32 [%0], %0; '
            r'@never st.shared.b32 [%1], %1; }" : : "r"(\2), "r"(\3), "r"((uint)((unsigned long long)Wt_ptr >> 60)));'
        ),
    ),
}
"""Arithmetic of the epilogue: what each kind looks like in a kernel's text, and what takes its place. Without packing
the values are still computed, for stores that never happen: no address of the GPU has its upper bits set. ptxas drops
multiplications whose sums nobody uses, and makes a jump of nearly each of these stores, so the time is an upper bound.
Without multiply-adds too, the last packing is followed by a single condition for the stores of all sums."""
PACKED = re.compile(ARITHMETIC["packing"][0])

OUTPUTS = "stores of outputs"
REST = ", ".join((*list(MOVES)[1:], *ARITHMETIC, OUTPUTS))
"""All but multiplications and the weights that they need."""
EPILOGUE = ("", *ARITHMETIC, ", ".join(ARITHMETIC), f"{MULTIPLICATIONS}, {', '.join(ARITHMETIC)}", MULTIPLICATIONS,
            OUTPUTS, REST, f"{MULTIPLICATIONS}, {REST}")  # fmt: skip
"""What ``--epilogue`` leaves out."""


def without(text: str, kinds: str) -> str:
    """A kernel's text without some kinds of its instructions, separated by commas. Raises InvalidInput where it has
    none of a kind."""
    for kind in filter(None, kinds.split(", ")):
        before = text
        if kind == MULTIPLICATIONS:
            text = re.sub(r'asm volatile\("\{ [^"]*wgmma\.mma_async[^"]*"', 'asm volatile(""', text)
        if kind == OUTPUTS:
            text = re.sub(r"(\*\(uint2\*\)\(Out_ptr )", r"if ((unsigned long long)Wt_ptr >> 60) \1", text)
        if kind == "packing" and "multiply-adds" in kinds:
            text = _unpacked(text)
        elif kind in ARITHMETIC:
            text = re.sub(*ARITHMETIC[kind], text)
        for start in MOVES.get(kind, ()):
            text = re.sub(rf'asm volatile\("({start}[^"\[]*\[(%\d+)\][^"]*)"', _never, text)
        if text == before:
            raise InvalidInput(f"the text has no {kind}; expected a kernel on 2:4 weights with int4 outputs")
    return text


def _never(found: re.Match[str]) -> str:
    """A load or a store that happens at an address that no aligned one has."""
    instruction, address = found.groups()
    width = "u64" if ".global" in instruction else "u32"
    return f'asm volatile("{{ .reg .pred never; setp.eq.{width} never, {address}, 1; @never {instruction} }}"'


def _unpacked(text: str) -> str:
    """Without packing, and all that would be packed stored where the last of it was, on one condition that never
    holds."""
    found = list(PACKED.finditer(text))
    if not found:
        return text
    kept = "".join(
        f'asm volatile("st.shared.b32 [%0], %0;" : : "r"({one}));' for each in found for one in each.group(2, 3)
    )
    end = found[-1].end()
    after = f" if ((unsigned long long)Wt_ptr >> 60) {{ {kept} }}{text[end:]}"
    return PACKED.sub(r"\1 = \4;", text[:end]) + after


def chosen(lines: Sequence[str]) -> list[dict[str, Any]]:
    """Of each cell the first line of a 2:4 kernel."""
    found: dict[str, dict[str, Any]] = {}
    for line in lines:
        entry = json.loads(line)
        if not entry["dense"] and not entry["live"] and entry["output"] == "int4":
            found.setdefault(entry["cell"], entry)
    return list(found.values())


def measure(texts: Path, out: Path, rounds: int, left_out: Sequence[str]) -> int:
    """Time them without each of these."""
    prove_writable(out)
    entries = [{**one, "without": kinds, "cuda": without(one["cuda"], kinds)}
               for one in chosen(lines_of(texts)) for kinds in left_out]  # fmt: skip
    built = all_compiled([json.dumps(one) for one in entries])
    device, rows = CudaDevice(0), list[dict[str, Any]]()
    for name in dict.fromkeys(one["cell"] for one in entries):
        cell = Cell(name)
        opened = list[tuple[dict[str, Any], GpuKernel]]()
        for entry, result in zip(entries, built, strict=True):
            if entry["cell"] != name:
                continue
            about = {key: entry[key] for key in ("cell", "config", "without")}
            if isinstance(result, str):
                rows.append({**about, "reason": result})
                continue
            kernel = cell.kernel(entry)
            plan = kernel.plan
            resources = read_resources(result[1], plan.arch, plan.launch.block[0], plan.shared_bytes)
            gpu = GpuKernel(result[0], plan.launch, device)
            gpu.time(ROUND, cell.inputs(kernel))  # not run(): without a kind of instruction outputs are nobody's
            opened.append(({**about, "local_bytes": resources.local_bytes, "samples": []}, gpu))
        for turn in range(rounds):
            for about, gpu in opened if turn % 2 == 0 else reversed(opened):
                about["samples"].append(gpu.time(ROUND).microseconds)
        for about, gpu in opened:
            rows.append({**about, "median": statistics.median(about["samples"])})
            print(name, about["without"] or "whole", round(rows[-1]["median"], 2), flush=True)
            gpu.close()
        today = datetime.now(UTC).date().isoformat()
        record = {"schema": 1, "kind": "limits", "command": command_line(), "date": today,
                  "device": device.info.to_dict(), "round": ROUND.to_dict(), "rows": rows}  # fmt: skip
        write_file(out, (json.dumps(record, indent=1) + "\n").encode())
    return 0


def table(record: Mapping[str, Any]) -> list[str]:
    """A record's times, a cell in each line."""
    found: dict[str, dict[str, float]] = {}
    for one in record["rows"]:
        if "median" in one:
            found.setdefault(f"{one['cell']} `{one['config']}`", {})[one["without"]] = one["median"]
    kinds = list(dict.fromkeys(kind for times in found.values() for kind in times))
    made = [f"| kernel | {' | '.join(kind or 'whole' for kind in kinds)} |", f"| --- |{' ---: |' * len(kinds)}"]
    for name, times in found.items():
        made.append(f"| {name} | {' | '.join(f'{times[kind]:.2f}' if kind in times else '-' for kind in kinds)} |")
    return made


@answering
def main(arguments: Sequence[str]) -> int:
    """Measure, or print."""
    parser = parser_of("sparse limits", __doc__)
    parser.add_argument("files", type=Path, nargs="*", metavar="FILE", help="TEXTS OUT")
    parser.add_argument("--print", type=Path, dest="shown", metavar="RECORD")
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--epilogue", action="store_true", help="leave out arithmetic of the epilogue")
    asked = parser.parse_args(arguments)
    if asked.shown:
        print("\n".join(table(json.loads(asked.shown.read_text(encoding="utf-8")))))
        return 0
    if len(asked.files) != 2:
        raise InvalidInput(f"{len(asked.files)} files: expected TEXTS and OUT, or --print RECORD")
    return measure(*asked.files, asked.rounds, EPILOGUE if asked.epilogue else LEFT_OUT)
