"""A kernel's four texts, line by line with the class of each instruction, and how they differ from another kernel's."""

from __future__ import annotations

import re
from collections import Counter
from dataclasses import dataclass
from difflib import SequenceMatcher
from typing import TYPE_CHECKING, NamedTuple

from subbyte.arguments import checked
from subbyte.errors import InvalidInput, did_you_mean
from subbyte.technique.record import InfoRecord, Table, columns_text

if TYPE_CHECKING:
    from subbyte.kernel.kernel import Kernel

LANGUAGES = {"tir": "TIRx", "cuda": "CUDA", "ptx": "PTX", "sass": "SASS"}
"""The texts of a kernel, from the TIRx script to the machine code."""

CLASSES = {
    "matrix": "a matrix instruction: a warp, or a group of four, multiplies two tiles and adds to the sums in its "
    "registers",
    "copy": "an asynchronous copy from global to shared memory, past the registers",
    "load": "a load from global or shared memory into registers",
    "store": "a store from registers to global or shared memory",
    "shuffle": "a shuffle: the lanes of a warp exchange registers, no memory involved",
    "barrier": "a barrier or a wait: nothing goes on until the copies or the other threads have arrived",
}
"""Classes of instructions that decide a convolution's speed, with what each does. All others are arithmetic."""

_SASS = {
    "matrix": r"[IHBQ]G?MMA", "copy": r"LDGSTS|UBLKCP|UTMALDG", "load": r"LDG|LDS|LDSM|LDL|LD",
    "store": r"STG|STS|STSM|STL|ST|STAS|RED|ATOMS?|ATOMG", "shuffle": r"SHFL|MOVM",
    "barrier": r"BAR|DEPBAR|LDGDEPBAR|MEMBAR|WARPSYNC|WARPGROUP|SYNCS|FENCE|UCGABAR_\w+|ACQBULK",
}  # fmt: skip
_PTX = {
    "matrix": r"mma\.|wmma\.|wgmma\.mma", "copy": r"cp\.async\.c[ag]|cp\.async\.bulk\.(?!wait|commit)",
    "load": r"ld\.(?!param)|ldmatrix", "store": r"st\.(?!param)|stmatrix|red\.|atom\.", "shuffle": r"shfl\.|movmatrix",
    "barrier": r"bar\.|barrier\.|mbarrier\.|cp\.async\.(?:bulk\.)?(?:wait|commit)|membar|fence\.|griddepcontrol\.wait|"
    r"wgmma\.(?:fence|commit|wait)",
}  # fmt: skip
_SOURCE = {
    "barrier": r"cta_sync\(|__syncthreads|wait_group|commit_group|mbarrier|griddepcontrol(?:_|\(\")wait|"
    r"wgmma(?:\(\"|_)fence|(?:ptx_|T\.ptx\.)(?:fence|bar)",
    "matrix": r"(?:ptx_|T\.ptx\.)w?g?mma|mma\.sync",
    "copy": r"cp_async|T\.ptx\.cp\(|cp\.async",
    "shuffle": r"shfl|movmatrix",
    "store": r"^\s*(?:\*\(\w+\s?\*\)\()?(?:shared|Out)(?:_ptr)?(?:\[| \+)",
    "load": r"\b(?:shared|A|Wt|Prm)(?:_ptr)?(?:\[| \+)",
}
_NOISE = re.compile(r"^\s*(?:// (?:begin|end) inline asm|//-*|)\s*$")
_SASS_LINE = re.compile(r"^\s+/\*[0-9a-f]{4,}\*/\s+(.*?)\s*;\s*$")
_PTX_DECLARATION = re.compile(r"^\s*\.(?:reg|loc|file|pragma)")
_SLOW_DIFFERENCE = 1500  # lines from which on the comparison ignores very common lines


class Row(NamedTuple):
    """A line of text. ``sign`` is `` `` (in both kernels), ``-`` (only in the first) or ``+`` (only in the other)."""

    sign: str
    kind: str
    """One of CLASSES, or empty."""
    text: str


class Fact(NamedTuple):
    """A number about the kernels; ``other`` is None if there is only one."""

    name: str
    value: float
    other: float | None
    unit: str = ""


@dataclass(frozen=True)
class KernelReading(InfoRecord):
    """The texts of a kernel, alone or compared with ``other``. Made by :func:`kernel_reading`.

    ``rows``: lines by language; ``counts``: instructions in the machine code by class and name (a loop executes
    them many times); ``hunks``: ranges of rows (first, end) that differ; ``facts``: numbers side by side.
    """

    workload: str
    arch: str
    instruction: str
    config: str
    other: str | None
    rows: dict[str, tuple[Row, ...]]
    hunks: dict[str, tuple[tuple[int, int], ...]]
    counts: dict[str, dict[str, int]]
    other_counts: dict[str, dict[str, int]] | None
    facts: tuple[Fact, ...]

    def find(self, language: str, words: str) -> tuple[int, ...]:
        """Rows of a text that contain ``words`` (ignoring case). Raises InvalidInput for an unknown language."""
        if language not in LANGUAGES:
            raise InvalidInput(f"unknown text {language!r}: {did_you_mean(language, LANGUAGES)}")
        sought = words.lower()
        return tuple(i for i, row in enumerate(self.rows[language]) if sought and sought in row.text.lower())

    def title(self) -> str:
        """The kernel or kernels being read."""
        against = f" against {self.other}" if self.other else ""
        return f"Kernel of {self.workload} on {self.arch} with {self.instruction}: {self.config}{against}"

    def table(self) -> Table:
        """The facts, side by side when two kernels are compared."""
        if self.other is None:
            return Table(("", "kernel"), tuple((_named(fact), _number(fact.value)) for fact in self.facts))
        rows = [(_named(f), _number(f.value), _number(f.other), _change(f)) for f in self.facts]
        return Table(("", "this", "other", "change"), tuple(rows))

    def text(self) -> str:
        """The facts as plain text."""
        return f"{self.title()}\n\n{columns_text(self.table())}"


@checked
def kernel_reading(kernel: Kernel, other: Kernel | None = None) -> KernelReading:
    """Read a kernel's TIRx, CUDA, PTX and SASS; with ``other``, show the differences.

    Texts are compared without register numbers, which the compiler assigns anew for every kernel; lines that agree are
    shown as in the first kernel. Raises MissingDependency without NVRTC or the disassembler.
    """
    pairs = {name: (_lines(name, kernel), _lines(name, other)) for name in LANGUAGES}
    rows = {name: _rows(name, *pair) for name, pair in pairs.items()}
    counts = _count(pairs["sass"][0])
    others = None if other is None else _count(pairs["sass"][1])
    return KernelReading(
        kernel.workload.label, kernel.arch, kernel.plan.atom.name, _name(kernel),
        None if other is None else _name(other), rows,
        {name: _hunks(found) for name, found in rows.items()}, counts, others, _facts(kernel, other, counts, others),
    )  # fmt: skip


def _name(kernel: Kernel) -> str:
    return kernel.config.key + (", edited" if getattr(kernel, "edited", False) else "")


def _lines(language: str, kernel: Kernel | None) -> list[str]:
    """The text without uninformative parts: addresses, sections, blank lines and the compiler's remarks."""
    if kernel is None:
        return []
    if language == "tir" and (getattr(kernel, "edited", False) or not getattr(kernel, "has_tir", True)):
        return []
    lines = str(getattr(kernel, language)).split("\n")
    if language == "sass":
        labels = [line for line in lines if line.startswith(".L_") or _SASS_LINE.match(line)]
        shown = [f"  {found[1]}" if (found := _SASS_LINE.match(line)) else line for line in labels]
        last = next((i for i in reversed(range(len(shown))) if not shown[i].strip().startswith(("NOP", ".L_"))), 0)
        return shown[: last + 1]  # the rest only pads the last line of the instruction cache
    if language == "ptx":
        lines = [line.replace("\t", "  ") for line in lines if not _PTX_DECLARATION.match(line)]
    return [line.rstrip() for line in lines if not _NOISE.match(line)]


def classify(language: str, line: str) -> str:
    """The class of the instruction in a line; empty for arithmetic, control flow, declarations and for what never runs:
    SASS has loads under the predicate ``@!PT`` that only keep others apart."""
    if language == "sass":
        if re.match(r"\s*@!U?PT\s", line):
            return ""
        name = re.match(r"\s*(?:@!?U?P\w+\s+)?([A-Z][A-Z0-9_]*)", line)
        return next((kind for kind, names in _SASS.items() if name and re.fullmatch(names, name[1])), "")
    if language == "ptx":
        bare = re.sub(r"^\s*(?:\{\s*)?(?:\.reg[^;]*;\s*|setp[^;]*;\s*)*(?:@!?%?p\w*\s+)?", "", line)
        return next((kind for kind, names in _PTX.items() if re.match(names, bare)), "")
    if re.match(r"\s*(?:__forceinline__|extern|def |asm|#|\w+ = T\.alloc)", line):
        return ""
    return next((kind for kind, names in _SOURCE.items() if re.search(names, line)), "")


def _rows(language: str, first: list[str], second: list[str]) -> tuple[Row, ...]:
    if not second:
        return tuple(Row(" ", classify(language, line), line) for line in first)
    mine, theirs = ([_comparable(language, line) for line in lines] for lines in (first, second))
    matcher = SequenceMatcher(None, mine, theirs, autojunk=max(len(first), len(second)) > _SLOW_DIFFERENCE)
    rows = []
    for tag, i, end_i, j, end_j in matcher.get_opcodes():
        if tag == "equal":
            rows += [Row(" ", classify(language, line), line) for line in first[i:end_i]]
            continue
        rows += [Row("-", classify(language, line), line) for line in first[i:end_i]]
        rows += [Row("+", classify(language, line), line) for line in second[j:end_j]]
    return tuple(rows)


def _comparable(language: str, line: str) -> str:
    if language == "ptx":
        return re.sub(r"%([a-z]+)\d+|\$L__\w+", r"\1", line)
    if language == "sass":
        return re.sub(r"\b(U?[RP])\d+|\.L_x_\d+|\.reuse", r"\1", line)
    return line


def _hunks(rows: tuple[Row, ...]) -> tuple[tuple[int, int], ...]:
    changed = [i for i, row in enumerate(rows) if row.sign != " "]
    starts = [i for i in changed if i == 0 or rows[i - 1].sign == " "]
    ends = [i + 1 for i in changed if i + 1 == len(rows) or rows[i + 1].sign == " "]
    return tuple(zip(starts, ends, strict=True))


def _count(sass: list[str]) -> dict[str, dict[str, int]]:
    counts: dict[str, Counter[str]] = {kind: Counter() for kind in (*CLASSES, "other")}
    for line in sass:
        found = re.match(r"\s+(?:@!?U?P\w+\s+)?([A-Z][\w.]*)", line)
        if found:
            counts[classify("sass", line) or "other"][found[1]] += 1
    return {kind: dict(found.most_common()) for kind, found in counts.items()}


def _facts(
    kernel: Kernel, other: Kernel | None, counts: dict[str, dict[str, int]], others: dict[str, dict[str, int]] | None
) -> tuple[Fact, ...]:
    def total(found: dict[str, dict[str, int]], start: str, kind: str) -> int:
        return sum(number for name, number in found[kind].items() if name.startswith(start))

    parts = {
        "matrix instructions": ("", "matrix"), "asynchronous copies": ("", "copy"), "shared loads": ("LDS", "load"),
        "global loads": ("LDG", "load"), "shared stores": ("STS", "store"), "global stores": ("STG", "store"),
        "shuffles": ("", "shuffle"), "barriers and waits": ("", "barrier"),
    }  # fmt: skip
    facts = [
        Fact(n, total(counts, *part), None if others is None else total(others, *part)) for n, part in parts.items()
    ]
    whole = [
        None if found is None else sum(sum(names.values()) for names in found.values()) for found in (counts, others)
    ]
    facts.append(Fact("instructions in all", whole[0] or 0, whole[1]))
    mine, theirs = kernel.resources, None if other is None else other.resources
    for name, field, unit in (
        ("registers", "registers", "per thread"), ("shared memory", "shared_bytes", "bytes"),
        ("local memory", "local_bytes", "bytes"), ("blocks", "blocks_per_sm", "per multiprocessor"),
    ):  # fmt: skip
        facts.append(Fact(name, getattr(mine, field), None if theirs is None else getattr(theirs, field), unit))
    shares = [None if found is None else round(100 * found.occupancy, 1) for found in (mine, theirs)]
    return (*facts, Fact("occupancy", shares[0] or 0.0, shares[1], "%"))


def _named(fact: Fact) -> str:
    return f"{fact.name} ({fact.unit})" if fact.unit else fact.name


def _number(value: float | None) -> str:
    return "" if value is None else f"{value:,g}" if value < 1e6 else f"{value:,.0f}"


def _change(fact: Fact) -> str:
    difference = (fact.other or 0) - fact.value
    return "" if not difference else f"{difference:+,g}"
