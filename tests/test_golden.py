"""A small part of what tools/golden holds: kernels, spaces and planted faults are what they were.

All of it: ``python tools/golden check`` (``--machine-code`` where texts change on purpose), ``spaces`` and ``faults``.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest
from golden import faults, kernels, library, spaces

from subbyte.cache import VARIABLE

GOLDEN = kernels.read()
PATHS = (
    "plain", "alternating, with stagger", "cluster of two", "7x7 stem", "packing through shared memory",
    "bulk weights for two, odd rows", "bulk weights, two columns, early start", "joined images, stride 2",
    "two producers", "two tiles of channels", "own rows, one part", "rows and a half", "a lean start",
)  # fmt: skip
"""Design variants that together go through every part of the generator for wgmma; tools/golden holds all of them."""
SWITCHES: tuple[dict[str, Any], ...] = ({}, {"output": "int32"}, {"requant": "general"}, {"clip": [0, 7]})


BIT_PLANES = (
    "bits, two sums a register", "bits, doubled, signed", "bits, pairs of rows, turns in order", "bits, sums",
    "bits, whole values", "bits, added and kept", "bits, pooled", "bmma, common bits",
    "few channels, phases, segments, turns",
    "bmma, a pair of planes for each warp", "popc",
)  # fmt: skip
"""The same for kernels on bit planes."""
ZEROS = ("condense, one buffer, no lanes share", "2:4, three consumers")
"""And for those that skip zeros."""
WARP = 11
"""Kernels of the mma family that are looked at."""


def chosen() -> list[kernels.Entry]:
    """One kernel for each path, and of the mma family one for each architecture, output and switch."""
    found: list[kernels.Entry] = []
    for name in (*PATHS, *BIT_PLANES, *ZEROS):
        found += [one for one in GOLDEN.entries if name in one.names and "form" not in one.options][:1]
    warp = [one for one in GOLDEN.entries if "gpu mma family" in one.names or "recommended" in one.names]
    parts: list[tuple[str, str, dict[str, Any] | None]] = [("", "sm_90a", options) for options in SWITCHES]
    parts += [("", arch, {}) for arch in ("sm_75", "sm_80")]
    parts += [(part, "sm_90a", None) for part in ("dup.none", "dup.shared", "rp0", "nhwc", "st3")]
    for part, arch, options in parts:
        fitting = [one for one in warp if part in one.key and one.arch == arch]
        found += [one for one in fitting if options in (one.options, None)][:1]
    return found


@pytest.fixture(autouse=True)
def empty_cache(tmp_path, monkeypatch):
    """A text that a cache holds proves nothing."""
    monkeypatch.setenv(VARIABLE, str(tmp_path))


@pytest.mark.sample(12)
@pytest.mark.parametrize("entry", chosen(), ids=lambda entry: f"{entry.names[0]} {entry.spec} {entry.arch}")
def test_texts_are_what_they_were(entry: kernels.Entry) -> None:
    word, message, _ = kernels.state(entry, GOLDEN.retired)
    assert word in kernels.GOOD, f"{word}: {entry.label}: {message}; see tools/golden"


def test_a_kernel_is_held_for_every_path() -> None:
    assert len(chosen()) == len(PATHS) + len(BIT_PLANES) + len(ZEROS) + WARP


def test_another_text_is_reported_with_the_name_of_its_kernel(monkeypatch) -> None:
    entry = next(one for one in GOLDEN.entries if one.code)
    monkeypatch.setattr(library, "text", lambda *_: "changed")
    monkeypatch.setattr(library, "machine_code", lambda *_: b"")
    for code, word in (("same", kernels.TEXT), (entry.code, kernels.CODE)):
        monkeypatch.setattr(kernels, "code_digest", lambda _, code=code: "same")
        found = kernels.state(replace(entry, code=code), code=True)
        assert found[0] == word
    monkeypatch.setattr(kernels, "code_digest", lambda _: "other")
    counts, lines = kernels.report([kernels.state(entry, code=True), kernels.state(entry)])
    assert counts == {kernels.CODE: 1, kernels.NOT_COMPARED: 1}
    assert all(entry.spec in line and entry.key in line and entry.names[0] in line for line in lines)
    assert entry.text in lines[0]


def test_kernels_of_retired_knobs_must_be_refused() -> None:
    entry = next(one for one in GOLDEN.entries if "swizzle" in one.names)
    assert kernels.is_retired(entry.key, GOLDEN.retired)
    assert not kernels.is_retired("wg-tw6-tr1-gm1-sg1-ri6-sta0", GOLDEN.retired)
    assert kernels.is_retired("wg-tw6-tr1-gm1-sg1-ri6-sta0-ov0", GOLDEN.retired)
    assert not kernels.is_retired("wg-tw6-tr1-gm1-sg1-ri6-sta0-ov0-bw1", GOLDEN.retired)
    assert kernels.state(entry, GOLDEN.retired)[0] == kernels.RETIRED
    assert kernels.state(entry)[0] == kernels.REFUSED
    built = next(one for one in GOLDEN.entries if one.key.startswith("wg-") and "plain" in one.names)
    assert kernels.state(built, ("tw",))[0] == kernels.BACK


def test_machine_code_is_known_by_what_it_does_not_by_its_name() -> None:
    text = 'extern "C" __global__ void {name}(int* {out}) {{ {out}[threadIdx.x] = {value}; }}'
    ways = (("conv_kernel", "out", 3), ("another_name", "Out", 3), ("conv_kernel", "out", 4))
    cubins = [library.machine_code(text.format(name=n, out=o, value=v), "sm_90a") for n, o, v in ways]
    first, renamed, other = map(kernels.code_digest, cubins)
    assert first == renamed != other
    with pytest.raises(ValueError, match="hold no machine code"):
        kernels.code_digest(b"\x7fELF\x02" + bytes(0x3B))


def test_the_list_is_read_as_it_was_written(tmp_path) -> None:
    few = replace(GOLDEN, entries=GOLDEN.entries[:40], retired=("ao",))
    kernels.write(few, tmp_path / "kernels.json")
    assert kernels.read(tmp_path / "kernels.json") == few


def test_what_is_valid_changes_only_with_the_version_of_the_spaces() -> None:
    versions, samples = spaces.read()
    assert len({one.spec for one in samples}) == 50
    assert {one.kind for one in samples} == set(spaces.QUICK)
    found = spaces.differences(spaces.quick(samples), versions)
    assert not found, "\n".join(found)


def test_another_valid_index_needs_another_version(monkeypatch) -> None:
    versions, samples = spaces.read()
    one = next(one for one in samples if one.seeds)
    (said,) = spaces.differences([replace(one, digest="0" * 12)], versions)
    assert one.label in said
    assert "space_version" in said
    (said,) = spaces.differences(samples, {**versions, "wgmma": 0})
    assert "spaces --record" in said


def test_every_planted_fault_is_still_there() -> None:
    assert not faults.not_found()
    gone, _ = faults.differences()
    assert not gone, "\n".join([*gone, "on purpose: python tools/golden faults --record"])


def test_a_fault_that_is_gone_is_named(tmp_path, monkeypatch) -> None:
    (tmp_path / "faults.txt").write_text(faults.listing() + "kernel: one more: race [000000000000]\n")
    gone, new = faults.differences(tmp_path / "faults.txt")
    assert (gone, new) == (["no longer there: kernel: one more: race [000000000000]"], [])
    held = faults.mutations()
    held["emulator"][0]["old"] = "text that is nowhere"
    monkeypatch.setattr(faults, "mutations", lambda: held)
    (said,) = faults.not_found()
    assert held["emulator"][0]["name"] in said
