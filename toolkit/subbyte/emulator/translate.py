"""CUDA text as TVM generates it -> one C++ file that the emulator compiles.

Only the vocabulary changes: inline assembly becomes calls, pointer types become ``emulator::Pointer``, shared arrays
become regions. Statements, loops and index arithmetic stay exactly as generated.
"""

from __future__ import annotations

import re
from dataclasses import dataclass

from subbyte.emulator.inline_asm import closing, replace_asm
from subbyte.emulator.ptx import PtxTranslator
from subbyte.errors import InvalidInput, Unsupported

_TYPES = (
    r"(?:(?:signed|unsigned)\s+(?:char|short|int|long\s+long)|long\s+long|u?int(?:8|16|32|64)_t|"
    r"(?:char|uchar|short|ushort|int|uint|longlong|ulonglong|float|double)[1-4]?|signed|unsigned|bool|void)"
)
_POINTER = re.compile(rf"\b(?:(?:const|volatile)\s+)*({_TYPES})(?:\s+const)?\s*\*(?:\s*(?:__restrict__|const)\b)*")
_REFERENCE = re.compile(rf"(?<=[(,])\s*(?:{_TYPES})\s*&\s*(?=\w+\s*[,)])")
_ATTRIBUTE = r"__(?:launch_bounds|cluster_dims)__\s*\([^)]*\)\s*"
_KERNEL = re.compile(rf'extern\s+"C"\s+__global__\s+((?:{_ATTRIBUTE})*)void\s+((?:{_ATTRIBUTE})*)(\w+)\s*\(')
_DYNAMIC = re.compile(rf"extern\s+__shared__\s+(?:(?:__align__|alignas)\(\d+\)\s*)?({_TYPES})\s+(\w+)\s*\[\s*\]\s*;")
_STATIC = re.compile(rf"__shared__\s+(?:(?:__align__|alignas)\(\d+\)\s*)?({_TYPES})\s+(\w+)\s*\[\s*(\d+)\s*\]\s*;")
_LOCAL = re.compile(rf"((?:alignas|__align__)\(\d+\)\s*)?\b({_TYPES})\s+(\w+)\s*\[\s*(\d+)\s*\]\s*;")
_LOOP = re.compile(r"^([ \t]*(?:(?:for|while)[ \t]*\(.*\)|do)[ \t]*\{)[ \t]*$", re.MULTILINE)
_NO_STATEMENT = re.compile(r"^\s*(?:else\b|case\b|default\b|[#}{])")
_BYTES = {"char": 1, "bool": 1, "8": 1, "short": 2, "16": 2, "int": 4, "32": 4, "float": 4, "signed": 4, "unsigned": 4}
_REGISTER = re.compile(r"^(?:u?int(?:32_t)?|unsigned(?:\s+int)?|signed(?:\s+int)?)$")
_WORD_PARAMETER = re.compile(r"(?<=[(,])\s*(?:u?int(?:32_t)?|unsigned\s+int)\s+(?=\w+\s*[,)])")
_WGMMA = "wgmma.mma_async"
_SHARED_ALIGNMENT = 128
_REGISTERS_PER_SM, _MOST_REGISTERS = 65536, 256
_HEADERS = '#include "cuda_words.h"\n'


@dataclass(frozen=True)
class SharedArray:
    """One shared array of the kernel: its name, first byte in the shared window, and size in bytes (0: the dynamic
    part)."""

    name: str
    offset: int
    size: int
    dynamic: bool


@dataclass(frozen=True)
class Translation:
    """The C++ text, and what the runtime must know about the kernel."""

    cpp: str
    entry: str
    arguments: tuple[str, ...]
    shared: tuple[SharedArray, ...]
    static_bytes: int
    instructions: tuple[str, ...]
    cluster: tuple[int, int, int] | None
    """Blocks of a cluster, from ``__cluster_dims__``."""
    registers: int
    """Registers per thread allowed by the launch bounds."""


def translate(cuda_text: str, entry: str) -> Translation:
    """Translate the kernel ``entry`` of ``cuda_text``.

    Raises InvalidInput if there is no such kernel, Unsupported if the text uses an instruction or construct that the
    emulator does not cover, which the message names.
    """
    text = _without_preamble(cuda_text)
    begin, signature_end, body_end, attributes = _find_kernel(text, entry)
    parameters = re.findall(r"(\w+)\s*(?:,|$)", text[begin:signature_end])
    types = [part.strip() for part in text[begin:signature_end].split(",")]
    for part in types:
        if "*" not in part:
            raise Unsupported(f"kernel {entry}: parameter {part!r} is no pointer; the emulator passes arrays only")
    helpers, body = text[:begin], text[signature_end:body_end]
    names = set(parameters)
    body, shared, static_bytes = _shared_arrays(body, first_region=2 + len(parameters))
    names |= {array.name for array in shared}
    names |= set(re.findall(r"\b(\w+)\s*\([^()]*\)\s*\{", helpers))
    body = _without_unused_warp_id(body)
    body = _private_arrays(body, tracked=_WGMMA in text)
    body = _LOOP.sub(r"\1 emulator::step();", body)
    body = _with_lines(body, first_line=text[:signature_end].count("\n") + 1, names=names)
    ptx = PtxTranslator()
    code = replace_asm(_registers_by_reference(text[:signature_end]) + body, ptx.statement)
    code = _REFERENCE.sub(" auto&& ", code)
    code = _POINTER.sub(r"emulator::Pointer<\1> ", code)
    code = re.sub(r'extern\s+"C"\s+__global__', "static __global__", code)
    code = _thread_indices(code)
    return Translation(
        cpp=_HEADERS + '#line 1 "kernel.cu"\n' + code + _entry_point(entry, types),
        entry=entry,
        arguments=tuple(parameters),
        shared=shared,
        static_bytes=static_bytes,
        instructions=tuple(ptx.instructions),
        cluster=_cluster(attributes),
        registers=_register_budget(attributes),
    )


def _without_preamble(text: str) -> str:
    """Blank out preprocessor lines and everything inside ``#if``; line numbers do not change."""
    depth, lines = 0, []
    for line in text.split("\n"):
        directive = line.lstrip()
        opens, closes = directive.startswith("#if"), directive.startswith("#endif")
        depth += opens
        keep = depth == 0 and (not directive.startswith("#") or directive.startswith("#define "))
        lines.append(line if keep and not directive.startswith("#include") else "")
        depth -= closes
    return "\n".join(lines)


def _find_kernel(text: str, entry: str) -> tuple[int, int, int, str]:
    """Start and end of the parameter list in the kernel's definition, end of its body, and its attributes."""
    found = []
    for match in _KERNEL.finditer(text):
        end = closing(text, match.end() - 1)
        found.append(match[3])
        rest = text[end + 1 :].lstrip()
        if match[3] == entry and rest.startswith("{"):
            brace = text.index("{", end)
            return match.end(), end, closing(text, brace) + 1, match[1] + match[2]
    known = ", ".join(sorted(set(found))) or "none"
    raise InvalidInput(f"the CUDA text defines no kernel {entry!r}; kernels in it: {known}")


def _attribute(attributes: str, name: str) -> list[int]:
    match = re.search(rf"__{name}__\s*\(([^)]*)\)", attributes)
    return [int(number) for number in re.findall(r"\d+", match[1])] if match else []


def _cluster(attributes: str) -> tuple[int, int, int] | None:
    found = _attribute(attributes, "cluster_dims")
    if not found:
        return None
    x, y, z = (*found, 1, 1)[:3]
    return x, y, z


def _register_budget(attributes: str) -> int:
    """Registers that a thread starts with: those of the multiprocessor, divided among the threads it must hold."""
    threads, blocks, *_ = [*_attribute(attributes, "launch_bounds"), 1, 1]
    return min(_MOST_REGISTERS, _REGISTERS_PER_SM // (max(1, threads) * max(1, blocks)) // 8 * 8)


def _private_arrays(body: str, tracked: bool) -> str:
    """Arrays in registers with bounds checks; 32-bit ones in kernels with wgmma also track who uses them."""

    def declare(match: re.Match[str]) -> str:
        name = "Registers" if tracked and _REGISTER.match(match[2]) else "Local"
        return f"{match[1] or ''}emulator::{name}<{match[2]}, {match[4]}> {match[3]};"

    return _LOCAL.sub(declare, body)


def _registers_by_reference(helpers: str) -> str:
    """Let functions that issue a wgmma take registers by reference, not by value: it uses them later."""
    pieces, position = [], 0
    for match in re.finditer(r"\(([^()]*)\)\s*\{", helpers):
        if match.start() < position:
            continue
        end = closing(helpers, match.end() - 1)
        if _WGMMA in helpers[match.end() : end]:
            pieces += [helpers[position : match.start()], _WORD_PARAMETER.sub(" auto&& ", f"({match[1]})")]
            position = match.start() + len(match[1]) + 2
    return "".join([*pieces, helpers[position:]])


def _element_bytes(ctype: str) -> int:
    vector = re.search(r"[a-z]([1-4])$", ctype)
    scalar = ctype[:-1] if vector else ctype
    count = int(vector[1]) if vector else 1
    if "long" in scalar or "64" in scalar or "double" in scalar:
        return 8 * count
    return next(size for key, size in _BYTES.items() if key in scalar) * count


def _shared_arrays(body: str, first_region: int) -> tuple[str, tuple[SharedArray, ...], int]:
    """Replace the declarations of shared arrays with pointers into regions numbered from ``first_region``."""
    arrays: list[SharedArray] = []
    end, dynamic_text = 0, ""

    def static(match: re.Match[str]) -> str:
        nonlocal end
        end = _aligned(end, match[0])
        size = _element_bytes(match[1]) * int(match[3])
        arrays.append(SharedArray(match[2], end, size, dynamic=False))
        end += -(-size // _SHARED_ALIGNMENT) * _SHARED_ALIGNMENT
        return declare(match[1], match[2])

    def dynamic(match: re.Match[str]) -> str:
        nonlocal dynamic_text
        dynamic_text = match[0]
        arrays.append(SharedArray(match[2], -1, 0, dynamic=True))
        return declare(match[1], match[2])

    def declare(ctype: str, name: str) -> str:
        region = first_region + len(arrays) - 1
        return f"emulator::Pointer<{ctype}> {name} = emulator::region_pointer<{ctype}>({region});"

    body = _DYNAMIC.sub(dynamic, body)
    body = _STATIC.sub(static, body)
    if "__shared__" in body:
        raise Unsupported("the emulator cannot read a __shared__ declaration of this kernel; it knows flat arrays only")
    end = _aligned(end, dynamic_text)
    placed = (SharedArray(a.name, end if a.dynamic else a.offset, a.size, a.dynamic) for a in arrays)
    return body, tuple(placed), end


def _aligned(end: int, declaration: str) -> int:
    """The first byte from ``end`` on with the alignment that the declaration requires."""
    match = re.search(r"(?:alignas|__align__)\((\d+)\)", declaration)
    alignment = max(_SHARED_ALIGNMENT, int(match[1]) if match else 1)
    return -(-end // alignment) * alignment


def _without_unused_warp_id(body: str) -> str:
    """Drop the warp number that TVM always broadcasts with a shuffle: when unused, the CUDA compiler drops it too."""
    if len(re.findall(r"\bwarp_id_in_cta\b", body)) == 1:
        body = re.sub(r"int warp_id_in_cta = __shfl_sync\([^;]*;", "", body)
    return body


def _with_lines(body: str, first_line: int, names: set[str]) -> str:
    """Make each statement that touches memory or other threads record its line in the CUDA text."""
    word = re.compile(r"\b(?:asm|__\w+|atomic\w+|" + "|".join(map(re.escape, sorted(names))) + r")\b")
    lines, previous = [], "{"
    for number, line in enumerate(body.split("\n"), start=first_line):
        text = line.strip()
        code = re.sub(r"//.*", "", text).strip()
        starts_statement = bool(code) and previous.endswith((";", "{", "}")) and not _NO_STATEMENT.match(code)
        spans_lines = not code.endswith((";", "{", "}"))
        if starts_statement and (spans_lines or word.search(code)):
            line = f"emulator::at_line({number}); {line}"
        previous = code or previous
        lines.append(line)
    return "\n".join(lines)


def _thread_indices(code: str) -> str:
    """Give each function that uses threadIdx and similar a constant copy, which can be kept in registers."""
    values = {
        "threadIdx": "current->thread_index",
        "blockIdx": "current->block_index",
        "blockDim": "block_dim",
        "gridDim": "grid_dim",
    }
    pieces, position = [], 0
    for match in re.finditer(r"\)\s*\{", code):
        brace = match.end() - 1
        if match.start() < position or not re.search("__(device|global)__", code[:brace]):
            continue
        end = closing(code, brace)
        used = [name for name in values if re.search(rf"\b{name}\b", code[brace:end])]
        copies = " ".join(f"const emulator::Index {name} = emulator::{values[name]};" for name in used)
        pieces.append(f"{code[position : brace + 1]} {copies}{code[brace + 1 : end]}")
        position = end
    pieces.append(code[position:])
    return "".join(pieces)


def _entry_point(entry: str, types: list[str]) -> str:
    element = [_POINTER.search(part) for part in types]
    arguments = ", ".join(
        f"emulator::region_pointer<{match[1]}>({number})" for number, match in enumerate(element, start=2) if match
    )
    return f'\nextern "C" __attribute__((visibility("hidden"))) void emulator_kernel() {{ {entry}({arguments}); }}\n'
