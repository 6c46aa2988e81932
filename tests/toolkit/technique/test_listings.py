"""Lines that pictures light: each has the instruction that made the access, and is what a run says today."""

from __future__ import annotations

import shutil
from dataclasses import replace

import numpy as np
import pytest

from subbyte.emulator.trace import warp_groups
from subbyte.errors import InvalidInput
from subbyte.families.mma.config import MmaConfig
from subbyte.families.shared.listing import Listing
from subbyte.kernel import Kernel
from subbyte.numerics import to_nhwcnc
from subbyte.numerics.layout import to_nhwc_words
from subbyte.technique.accesses import accesses
from subbyte.technique.layout_order import LayoutOrder, layout_order
from subbyte.technique.listings import EXAMPLES, fresh_listing, listing
from subbyte.technique.load_steps import LoadSteps, load_steps
from subbyte.technique.packed_stores import packed_stores, worked_stores
from subbyte.technique.topics import plan_of

needs_compiler = pytest.mark.skipif(
    not (shutil.which("g++") or shutil.which("clang++")), reason="the emulator needs g++ or clang++"
)
WORDS = {
    "copy": ("cp_async", "A_ptr"), "shared_load": ("shared",), "shared_store": ("shared",), "mma": ("_mma_",),
    "wgmma": ("wgmma",), "shuffle": ("shfl_sync",), "global_store": ("Out_ptr",), "global_load": ("_ptr",),
}  # fmt: skip
"""What stands in a line that makes an access of a kind."""


def wrong_lines(found: Listing) -> list[int]:
    """Lines of accesses whose text has no instruction of the kind."""
    texts = dict(zip(found.numbers, found.texts, strict=True))
    return [a.line for a in found.accesses if any(word not in texts.get(a.line, "") for word in WORDS[a.kind])]


@pytest.fixture(scope="module")
def steps() -> LoadSteps:
    config = MmaConfig(2, 1, 4, 2, tile_height=2)
    return load_steps("n8h9w9c32k32r3s3p1", config)


@needs_compiler
def test_the_line_of_a_step_made_its_access(steps: LoadSteps) -> None:
    kinds = {"copy": "copy", "load": "shared_load", "mma": "mma"}
    assert not wrong_lines(steps.listing)
    for step, access in zip(steps.steps, steps.listing.accesses, strict=True):
        assert (access.line, access.kind) == (step.line, kinds[step.kind])
        shared = [lane[1] for lane in access.lanes if lane is not None]
        if step.kind == "load":
            assert shared == [128 * step.slots[0] + 4 * lane for lane in range(32)]
        elif step.kind == "copy":
            assert shared == [128 * step.slots[0] + 16 * lane for lane in range(32)]
            read = [lane is not None and lane[0] is not None for lane in access.lanes]
            assert read == [not steps.padding[datum] for datum in step.data for _ in range(8)]
        assert access.active == 32


@needs_compiler
def test_lines_of_another_numbering_are_refused(steps: LoadSteps) -> None:
    """One line less behind each loop that begins with a blank line: what the emulator once said."""
    good = steps.listing
    for by in (-1, 1):
        moved = tuple(replace(access, line=access.line + by) for access in good.accesses)
        assert wrong_lines(replace(good, accesses=moved))
    other = (replace(good.accesses[0], line=good.accesses[-1].line), *good.accesses[1:])
    assert wrong_lines(replace(good, accesses=other)) == [good.accesses[-1].line]


@pytest.mark.parametrize("name", EXAMPLES)
def test_recorded_lines_have_their_instructions(name: str) -> None:
    found = listing(name)
    assert not wrong_lines(found)
    assert all(line in found.numbers for lines in found.steps.values() for line in lines)
    moved = tuple(replace(access, line=access.line + 1) for access in found.accesses)
    assert wrong_lines(replace(found, accesses=moved))


@pytest.mark.sample("packing", "taps")
@needs_compiler
@pytest.mark.parametrize("name", EXAMPLES)
def test_recorded_lines_are_those_of_a_run_today(name: str) -> None:
    assert fresh_listing(name) == listing(name)


def test_no_other_listing() -> None:
    with pytest.raises(InvalidInput, match="unknown listing 'pack'"):
        listing("pack")


def test_worked_stores_pack_what_was_requantized() -> None:
    record = packed_stores(2)
    numbers = worked_stores(record, seed=3)
    for sums, values, byte, word, place in zip(
        numbers.sums, numbers.values, numbers.bytes, numbers.words, record.bytes, strict=True
    ):
        assert values == tuple(max(-8, min(7, (total + 32) >> 6)) for total in sums)
        assert byte == (values[0] & 15) | (values[1] & 15) << 4
        assert word >> 8 * place.word_byte & 255 == byte
    assert {value for pair in numbers.values for value in pair} == set(range(-8, 8))


def misplaced(record: LayoutOrder) -> list[str]:
    """Data that do not lie where the record says, by packing a tensor in which one datum alone is not zero."""
    found = []
    pack = {"nhwc": to_nhwc_words, "nhwcnc": to_nhwcnc}
    for layout, places in record.bytes.items():
        for datum, (image, pixel, block) in enumerate(record.data):
            x = np.zeros((8, 1, record.pixels, 32 * record.blocks), np.int8)
            x[image, 0, pixel, 32 * block : 32 * block + 32] = 1
            (words,) = np.nonzero(pack[layout](x).reshape(-1))
            if words.tolist() != [places[datum] // 4 + i for i in range(4)]:
                found.append(f"{layout} {datum}")
    return found


def test_orders_are_those_of_packed_tensors() -> None:
    record = layout_order()
    assert not misplaced(record)
    swapped = {**record.bytes, "nhwcnc": (record.bytes["nhwcnc"][1], record.bytes["nhwcnc"][0])}
    swapped["nhwcnc"] += record.bytes["nhwcnc"][2:]
    assert misplaced(replace(record, bytes=swapped)) == ["nhwcnc 0", "nhwcnc 1"]
    assert (record.moved["nhwc"][-1], record.moved["nhwcnc"][-1]) == (32, 16)
    assert not misplaced(layout_order(32))
    with pytest.raises(InvalidInput, match="32 or 64 channels"):
        layout_order(128)


@pytest.mark.sample("nhwc-32", "nhwcnc-64")
@needs_compiler
@pytest.mark.parametrize("channels", [32, 64])
@pytest.mark.parametrize("layout", ["nhwc", "nhwcnc"])
def test_the_access_over_both_orders_is_the_kernels(layout: str, channels: int) -> None:
    """The bytes of the record's lanes are those that a warp of the generated kernel copies first."""
    record = layout_order(channels)
    load = accesses(record.workload, _config(layout), layout, arch="sm_80").of("activation load")[0]
    own = [record.bytes[layout][datum] for datum in record.lanes]
    assert own == list(load.addresses)
    run = _traced(record.workload, layout)
    assert own in run
    assert own[::-1] not in run


def _config(layout: str) -> MmaConfig:
    return MmaConfig(1, 1, 4, 1, tile_height=1, chunk=1, layout=layout)


def _traced(layer: str, layout: str) -> list[list[int]]:
    """Bytes that the lanes of each copy of a warp read of the activations."""
    run = Kernel(plan_of(layer, _config(layout), "sm_80")).trace(blocks=(0,))
    assert run.trace is not None
    groups = [run.trace[group[group >= 0]] for group in warp_groups(run.trace, "copy")]
    mine = run.arguments.index("A")
    return [rows["offset"].tolist() for rows in groups if (rows["buffer"] == mine).all()]
