"""Digests of what is valid in the spaces of sample layers, beside the version of the rules they were found with.

Small spaces are taken whole. Of a large one a sample is taken: indices drawn by a seed, and ``seeds``, valid indices
that the file holds, with all indices that differ from one of them in one knob: there most rules end.
"""

from __future__ import annotations

import hashlib
import json
import random
from collections.abc import Iterator
from dataclasses import dataclass
from math import prod
from pathlib import Path
from typing import Any

from golden import FOLDER, library

FILE = FOLDER / "spaces.json"
ARCHS = ("sm_90a", "sm_80", "sm_75", "sm_86", "sm_89")
WHOLE = 120_000
"""Products up to which all indices are looked at."""
DRAWN = 300
SEEDS = 6
QUICK = {"paper": 5, "extended": 12, "wgmma": 4, "wgmma-small": 30}
"""Of each kind every so many-th space is looked at in a test run."""


@dataclass(frozen=True)
class Sample:
    """A space, how much of it was looked at, and the digest of what is valid there."""

    spec: str
    arch: str
    kind: str
    size: int
    index_hash: str
    seeds: tuple[int, ...] | None
    valid: int
    digest: str

    @property
    def label(self) -> str:
        """What names it in messages."""
        return f"{self.kind} space of {self.spec} on {self.arch}"


def versions() -> dict[str, int]:
    """The version of each family's spaces."""
    return library.space_versions()


def read(path: Path = FILE) -> tuple[dict[str, int], list[Sample]]:
    """The recorded versions and samples."""
    data = json.loads(path.read_text(encoding="utf-8"))
    made = [Sample(*row[:5], None if row[5] is None else tuple(row[5]), *row[6:]) for row in data["spaces"]]
    return data["space_versions"], made


def write(samples: list[Sample], made_with: dict[str, str], path: Path = FILE) -> None:
    """The file, one line for each space."""
    rows = ",\n".join(json.dumps(list(vars(one).values()), separators=(",", ":")) for one in samples)
    head = f'{{"space_versions": {json.dumps(versions())},\n"made_with": {json.dumps(made_with)},\n'
    path.write_text(f'{head}"columns": {json.dumps(list(Sample.__annotations__))},\n"spaces": [\n{rows}]}}\n')


def layers(count: int = 50) -> list[str]:
    """Specs of sample layers: half of networks in several batches, half drawn."""
    from subbyte.errors import InvalidInput
    from subbyte.workload import ConvWorkload
    from subbyte.workload.networks import LAYERS

    rng = random.Random("sample layers")
    named = [LAYERS[name].workload(rng.choice((1, 8, 16, 64, 256))).spec for name in rng.sample(sorted(LAYERS), 24)]
    found = list(dict.fromkeys(["n8h56w56c64k64r3s3p1", "n8h14w14c256k256r3s3p1", *named]))
    while len(found) < count:
        r, size = rng.choice((1, 1, 3, 3, 3, 5, 7)), rng.choice((5, 7, 9, 12, 14, 20, 28, 33, 56, 64))
        sizes = rng.choice((1, 3, 8, 9, 16, 24, 40, 64)), size, size + rng.choice((0, 0, 0, 1, 5))
        channels = rng.choice((3, 32, 40, 64, 96, 128, 256, 512)), rng.choice((24, 64, 65, 96, 128, 320, 512))
        try:
            made = ConvWorkload(*sizes, *channels, r, r, rng.choice((0, r // 2)), rng.choice((1, 1, 2)),
                                rng.choice((1, 1, 1, 2)))  # fmt: skip
        except InvalidInput:
            continue
        if made.spec not in found:
            found.append(made.spec)
    return found


def found_now(one: Sample) -> Sample:
    """The same sample of the library's space as it is."""
    from subbyte.families import space

    made = space(one.spec, one.arch, one.kind)
    if one.seeds is None:
        looked_at = list(made.valid)
    else:
        looked_at = [index for index in _sampled(made, one.seeds, one.label) if made.check(index) is None]
    text = f"{json.dumps({k: list(v) for k, v in made.knobs.items()})} {','.join(map(str, looked_at))}"
    digest = hashlib.sha256(text.encode()).hexdigest()[:12]
    return Sample(one.spec, one.arch, one.kind, len(made), made.index_hash, one.seeds, len(looked_at), digest)


def _sampled(made: Any, seeds: tuple[int, ...], label: str) -> list[int]:
    rng = random.Random(label)
    found = {rng.randrange(len(made)) for _ in range(DRAWN)}
    sizes = [len(values) for values in made.knobs.values()]
    for seed in seeds:
        for place, size in enumerate(sizes):
            weight = prod(sizes[:place])
            digit = seed // weight % size
            found.update(seed + (other - digit) * weight for other in range(size))
    return sorted(found)


def drawn() -> Iterator[Sample]:
    """The samples of all layers, with the digests of the library as it is."""
    from subbyte.errors import InvalidInput
    from subbyte.families import space

    for number, spec in enumerate(layers()):
        for kind in QUICK:
            arch = "sm_90a" if kind.startswith("wgmma") else ARCHS[number % len(ARCHS)]
            try:
                made = space(spec, arch, kind)
            except InvalidInput:  # the small space is for kernels of several rows
                continue
            whole = len(made) <= WHOLE and (kind != "wgmma-small" or number % 5 == 0)
            yield found_now(Sample(spec, arch, kind, 0, "", None if whole else _seeds(made), 0, ""))


def _seeds(made: Any) -> tuple[int, ...]:
    """A few valid indices: those of the estimate's favourites that the space holds, else of drawn ones."""
    from subbyte.errors import InvalidInput

    rng = random.Random(made.workload.spec)
    found: list[int] = []
    if made.kind == "wgmma":
        for config in library.candidates(made):
            try:
                index = made.index(config)
            except InvalidInput:
                continue
            if made.check(index) is None:
                found.append(index)
    for _ in range(4000):
        if len(found) >= SEEDS:
            break
        index = rng.randrange(len(made))
        if made.check(index) is None:
            found.append(index)
    return tuple(sorted(set(found[: 4 * SEEDS : max(1, len(found[: 4 * SEEDS]) // SEEDS)][:SEEDS])))


def quick(samples: list[Sample]) -> list[Sample]:
    """The part that a test run looks at."""
    return [one for kind, every in QUICK.items() for one in [s for s in samples if s.kind == kind][1::every]]


def differences(samples: list[Sample], recorded: dict[str, int]) -> list[str]:
    """A sentence for each space that has changed; raising the version and recording anew makes that right."""
    now = versions()
    other = [f"{name} (recorded {recorded.get(name)}, now {now.get(name)})" for name in {**recorded, **now}
             if recorded.get(name) != now.get(name)]  # fmt: skip
    if other:
        return [f"other versions of the spaces of {', '.join(other)}: run `python tools/golden spaces --record`"]
    remedy = "raise the family's space_version and run `python tools/golden spaces --record`, or undo the change"
    changed = ((one, now) for one in samples if (now := found_now(one)) != one)
    return [
        f"{one.label}: other valid indices ({one.valid} of those looked at, now {now.valid}): {remedy}"
        for one, now in changed
    ]
