"""Which cubins are the same program: equal machine code, constants and registers, whatever else the file says."""

from __future__ import annotations

import hashlib
import struct
from collections.abc import Iterator

_HEADER = struct.Struct("<16x2HI3QI6H")
_SECTION = struct.Struct("<2I4Q2I2Q")
_CODE = (b".text", b".nv.constant", b".nv.shared", b".rodata")


def program_digest(cubin: bytes) -> str:
    """Hexadecimal digest of what a cubin executes: the sections of code, constants and shared memory, and the number
    of registers, which an ELF file of this kind keeps in the code section's header. Anything else is taken whole."""
    digest = hashlib.sha256()
    sections = list(_sections(cubin))
    for name, info, content in sections or [(b"", 0, cubin)]:
        digest.update(struct.pack("<IIQ", len(name), info, len(content)) + name + content)
    return digest.hexdigest()[:20]


def _sections(cubin: bytes) -> Iterator[tuple[bytes, int, bytes]]:
    """Name, register field and content of the sections that matter; none for what is no 64-bit ELF file."""
    if cubin[:5] != b"\x7fELF\x02" or len(cubin) < _HEADER.size:
        return
    fields = _HEADER.unpack_from(cubin)
    offset, size, count, names = fields[5], fields[10], fields[11], fields[12]
    if size != _SECTION.size or offset + size * count > len(cubin) or names >= count:
        return
    table = [_SECTION.unpack_from(cubin, offset + size * place) for place in range(count)]
    start = table[names][4]
    for name, kind, _, _, place, length, _, info, _, _ in table:
        text = cubin[start + name : cubin.index(b"\0", start + name)]
        if text.startswith(_CODE):
            nothing = kind == 8  # SHT_NOBITS: only a size
            yield text, info >> 24, b"" if nothing else cubin[place : place + length]
