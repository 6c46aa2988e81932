"""Faults that no kernel of the wgmma family may contain, detected in its PTX and machine code whenever one is built.

Both compilers have turned correct texts into wrong kernels here, and the emulator, which runs the text, cannot see it:

* NVVM 13.0 computes an index such as ``(turn + 2) % 3 * 16`` with a known small range in 8 bits, as ``16 * turn - 48 *
  ((turn + 2) / 3)``, and adds the 32 that it factored out of it to the address after widening. In 8 bits that
  difference wraps around. Correct code subtracts first, and shifts or multiplies the remainder.
* ptxas 13.0.88 merges ``max(min(a, b), 0) == b`` into one VIMNMX.RELU with predicates, which an H200 evaluates wrongly.

An instruction of sm_90 is 128 bits: the lowest 12 encode the operation and its form, bits 81 to 86 of a VIMNMX name the
predicates it writes (7: none). Derived from nvdisasm's output; a test compares them.
"""

from __future__ import annotations

import re
import struct
from collections import Counter

import numpy as np
from numpy.typing import NDArray

from subbyte.errors import BuildFailed

OPCODES = {"IGMMA": 0x1F1, "VIMNMX": 0x048, "LDL": 0x183, "STL": 0x187}
"""The lowest 9 bits; the 3 above them encode where the operands are."""
NO_PREDICATE = 7
_NARROW = re.compile(r"^\s+(\w+\.[bsu]16)\s+(%rs\d+), (.*);", re.MULTILINE)


def wrapped_indices(ptx: str) -> list[str]:
    """Differences of 16-bit products in a PTX text: NVVM's code for a remainder from which it has factored constants
    out."""
    made: dict[str, tuple[str, list[str]]] = {}
    found = []
    for statement in _NARROW.finditer(ptx):
        name, target, operands = statement[1], statement[2], statement[3].split(", ")
        made[target] = name, operands
        minuend, passed = operands[0], {target}
        while minuend not in passed and made.get(minuend, ("",))[0] == "add.s16":
            passed.add(minuend)
            minuend = made[minuend][1][0]
        if name == "sub.s16" and made.get(minuend, ("",))[0] in ("shl.b16", "mul.lo.s16"):
            found.append(" ".join(statement[0].split()))
    return found


def counts(cubin: bytes) -> Counter[str]:
    """How many instructions of each of OPCODES a cubin contains, and under ``merged`` how many minima that also
    evaluate a comparison. Raises BuildFailed for anything but a cubin."""
    words = _instructions(cubin)
    codes = words[:, 0] & np.uint64(0x1FF)
    found = Counter({name: int(np.count_nonzero(codes == code)) for name, code in OPCODES.items()})
    high = words[codes == OPCODES["VIMNMX"], 1]
    predicates = [(high >> np.uint64(bit)) & np.uint64(7) for bit in (17, 20)]
    found["merged"] = int(np.count_nonzero((predicates[0] != NO_PREDICATE) | (predicates[1] != NO_PREDICATE)))
    return found


def fault(cubin: bytes) -> str | None:
    """Why this machine code is not a valid kernel of the wgmma family, None when it is."""
    found = counts(cubin)
    if not found["IGMMA"]:
        return "the machine code holds no wgmma"
    if found["LDL"] or found["STL"]:
        return f"the machine code accesses local memory ({found['LDL']} loads, {found['STL']} stores)"
    if found["merged"]:
        return "the compiler merged a comparison with a minimum, which some of its versions get wrong"
    return None


def _instructions(cubin: bytes) -> NDArray[np.uint64]:
    """The instructions of a cubin's kernels, uint64 [count, 2]: the low and the high half of each."""
    try:
        if cubin[:5] != b"\x7fELF\x02":
            raise ValueError("no 64-bit ELF file")
        (offset,) = struct.unpack_from("<Q", cubin, 0x28)
        size, count, names = struct.unpack_from("<HHH", cubin, 0x3A)
        headers = [struct.unpack_from("<IIQQQQ", cubin, offset + i * size) for i in range(count)]
        strings = headers[names][4]
        texts = [
            np.frombuffer(cubin, "<u8", length // 8, start).reshape(-1, 2)
            for name, _, _, _, start, length in headers
            if cubin[strings + name :].startswith(b".text.")
        ]
        return np.concatenate(texts)
    except (struct.error, ValueError, IndexError) as error:
        raise BuildFailed(f"the compiler gave {len(cubin)} bytes that are no cubin: {error}") from error
