"""Which cubins are the same program: equal machine code, constants and registers, whatever else the file contains."""

from __future__ import annotations

import hashlib
import struct
from collections.abc import Iterator

_HEADER = struct.Struct("<16x2HI3QI6H")
_SECTION = struct.Struct("<2I4Q2I2Q")
_ONLY_A_SIZE = 8
"""Section type for data that takes no space in the file, such as shared memory (ELF's SHT_NOBITS)."""
_CODE = (b".text", b".nv.constant", b".nv.shared", b".rodata")


def program_digest(cubin: bytes) -> str:
    """Hexadecimal digest of what a cubin executes: the sections of code, constants and shared memory, and the number of
    registers, which such an ELF file keeps in the code section's header. A file of another format is digested whole."""
    digest = hashlib.sha256()
    sections = list(_sections(cubin))
    for name, info, length, content in sections or [(b"", 0, len(cubin), cubin)]:
        digest.update(struct.pack("<IIQ", len(name), info, length) + name + content)
    return digest.hexdigest()[:20]


def _sections(cubin: bytes) -> Iterator[tuple[bytes, int, int, bytes]]:
    """Name, register field, size and content of the relevant sections; empty unless it is a 64-bit ELF file."""
    if cubin[:5] != b"\x7fELF\x02" or len(cubin) < _HEADER.size:
        return
    fields = _HEADER.unpack_from(cubin)
    offset, size, count, names = fields[5], fields[10], fields[11], fields[12]
    if size != _SECTION.size or offset + size * count > len(cubin) or names >= count:
        return
    table = [_SECTION.unpack_from(cubin, offset + size * place) for place in range(count)]
    start = table[names][4]
    for name, kind, _, _, place, length, _, info, _, _ in table:
        text = cubin[start + name :].partition(b"\0")[0]
        if text.startswith(_CODE):
            yield text, info >> 24, length, b"" if kind == _ONLY_A_SIZE else cubin[place : place + length]
