"""Cost of one warp-wide memory access: sectors and lines of global memory, bank conflicts of shared memory.

Sources: CUDA C++ Best Practices Guide, "Coalesced Access to Global Memory" (32-byte sectors, 128-byte lines) and
"Shared Memory and Memory Banks" (32 banks of 4 bytes; one word per bank and cycle, several lanes may read the same
word). An 8-byte access of a warp is served in two halves, a 16-byte access in four quarters.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from subbyte.arguments import checked, is_whole, several, whole
from subbyte.errors import InvalidInput, shown

SECTOR, LINE, BANKS, WORD = 32, 128, 32, 4
SIZES = (4, 8, 16)
"""Bytes that one lane may access at a time."""

Addresses = Sequence[int | None]
"""Byte address of each lane; None for an inactive lane."""


@dataclass(frozen=True)
class SectorUse:
    """The 32-byte sectors that one access touches. ``used`` [sectors]: bytes of each sector that some lane accesses."""

    sectors: tuple[int, ...]
    """Sector numbers (address / 32), ascending."""
    used: tuple[int, ...]
    lines: int
    """128-byte lines touched."""
    useful_bytes: int
    moved_bytes: int
    efficiency: float
    """Used divided by moved bytes; 1 for an access that touches nothing."""


@dataclass(frozen=True)
class BankUse:
    """How an access is spread over the 32 banks of shared memory."""

    degree: int
    """Largest number of distinct words accessed in one bank at a time: 1 means free of conflicts, 0 an idle access."""
    wavefronts: int
    """Cycles that the access takes."""
    ideal: int
    """Cycles it would take without conflicts."""
    words_per_bank: tuple[int, ...]
    """Distinct words accessed in each bank, over all parts of the access."""


@checked
def sectors(addresses: Addresses, sizes: int | Sequence[int]) -> SectorUse:
    """The sectors of global memory touched by lanes at ``addresses`` (bytes) with ``sizes`` (bytes each).

    Bytes that several lanes access count once. Raises InvalidInput for a size other than 4, 8, 16 or an address that is
    not a multiple of its size.
    """
    asked: set[int] = set()
    for address, size in _lanes(addresses, sizes):
        asked.update(range(address, address + size))
    used = Counter(byte // SECTOR for byte in asked)
    numbers = tuple(sorted(used))
    moved = len(numbers) * SECTOR
    return SectorUse(
        sectors=numbers,
        used=tuple(used[number] for number in numbers),
        lines=len({number * SECTOR // LINE for number in numbers}),
        useful_bytes=len(asked),
        moved_bytes=moved,
        efficiency=len(asked) / moved if moved else 1.0,
    )


@checked
def bank_conflicts(addresses: Addresses, sizes: int | Sequence[int]) -> BankUse:
    """The bank conflicts of a warp's shared-memory access: 32 byte addresses with ``sizes`` bytes each.

    Raises InvalidInput like :func:`sectors`, and when there are not 32 lanes or the lanes' sizes differ.
    """
    addresses, sizes = _listed(addresses, sizes)
    if len(addresses) != 32:
        raise InvalidInput(f"{len(addresses)} addresses: a warp has 32 lanes (None for an idle one)")
    size = sizes if isinstance(sizes, int) else sizes[0]
    if not isinstance(sizes, int) and set(sizes) != {size}:
        raise InvalidInput("lanes of one shared-memory access move the same number of bytes")
    together = 32 * WORD // size if size in SIZES else 32
    degree = wavefronts = ideal = 0
    total = [0] * BANKS
    for first in range(0, 32, together):
        words = {
            word
            for address, bytes_ in _lanes(addresses[first : first + together], size)
            for word in range(address // WORD, (address + bytes_) // WORD)
        }
        per_bank = Counter(word % BANKS for word in words)
        for bank, count in per_bank.items():
            total[bank] += count
        most = max(per_bank.values(), default=0)
        degree = max(degree, most)
        wavefronts += most
        ideal += most > 0
    return BankUse(degree, wavefronts, ideal, tuple(total))


def _listed(addresses: Any, sizes: Any) -> tuple[list[Any], Any]:
    """Both as lists of integers (None for a lane without an address). Raises InvalidInput."""
    found = several(addresses, "addresses")
    if not all(address is None or is_whole(address) for address in found):
        raise InvalidInput(f"addresses {shown(addresses)}: expected bytes from 0 on, None for an idle lane")
    return found, sizes if is_whole(sizes) else [whole(size, "size") for size in several(sizes, "sizes")]


def _lanes(addresses: Addresses, sizes: int | Sequence[int]) -> list[tuple[int, int]]:
    """(address, size) of the active lanes, checked."""
    addresses, sizes = _listed(addresses, sizes)
    each = [sizes] * len(addresses) if isinstance(sizes, int) else list(sizes)
    if len(each) != len(addresses):
        raise InvalidInput(f"{len(each)} sizes for {len(addresses)} addresses: give one size or one for each lane")
    found = []
    for lane, (address, size) in enumerate(zip(addresses, each, strict=True)):
        if size not in SIZES:
            raise InvalidInput(f"lane {lane} moves {size} bytes: allowed: 4, 8, 16")
        if address is None:
            continue
        if address < 0 or address % size:
            raise InvalidInput(
                f"lane {lane}: address {address} must be a multiple of its {size} bytes and not negative"
            )
        found.append((int(address), size))
    return found
