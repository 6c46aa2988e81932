"""The plan's index maps: against a plain search, against the duplicates record, and as bijections."""

from __future__ import annotations

from functools import cache
from itertools import product
from math import prod

import pytest

from subbyte.device.arch import ARCHS
from subbyte.device.atoms import ATOMS
from subbyte.families.mma.config import MmaConfig
from subbyte.families.mma.plan import Plan, plan
from subbyte.technique import duplicates
from subbyte.workload import ConvWorkload

KERNELS = ((1, 1), (1, 7), (7, 1), (3, 3), (5, 2), (2, 4), (7, 7))
STEPS = tuple(product((1, 2), (1, 2)))
CONFIGS = (
    MmaConfig(1, 1, 1, 1), MmaConfig(1, 1, 4, 4), MmaConfig(2, 1, 4, 2), MmaConfig(4, 2, 2, 4),
    MmaConfig(2, 1, 7, 1),
    MmaConfig(2, 1, 8, 4, tile_height=4), MmaConfig(4, 1, 4, 1, tile_height=16), MmaConfig(1, 1, 16, 2),
    MmaConfig(4, 1, 4, 2, tile_height=1),
)  # fmt: skip
WAYS = (("none", 0), ("shared", 1), ("full", 0), ("full", 1))


def _plan(kernel: tuple[int, int], steps: tuple[int, int], config: MmaConfig, **changed: object) -> Plan:
    workload = ConvWorkload(9, 31, 29, 64, 64, *kernel, 2, *steps)
    return plan(workload, config.with_values(changed), "sm_80")


def _rectangular(planned: Plan) -> bool:
    width, warp = planned.tile[1], planned.config.warp_row_tiles
    return width % warp == 0 or warp % width == 0


@cache
def cases() -> list[Plan]:
    """Computed by the first test that asks."""
    plans = [
        _plan(kernel, steps, config, duplicate_aware=way, reorder_inner=inner)
        for kernel, steps, config, (way, inner) in product(KERNELS, STEPS, CONFIGS, WAYS)
    ]
    return [planned for planned in plans if _rectangular(planned)]


def _warp_pixels(planned: Plan, warp: int) -> list[tuple[int, int]]:
    first = warp * planned.config.warp_row_tiles
    return [divmod(first + i, planned.tile[1]) for i in range(planned.config.warp_row_tiles)]


def test_cases_are_many() -> None:
    assert len(cases()) > 700


def test_slots_hold_the_input_pixel_of_every_tap() -> None:
    """The slot a tap reads is the slot that was filled with its input pixel; and every slot is read."""
    for planned in cases():
        w, (height, width) = planned.workload, planned.tile
        read = set()
        for row, col, r, s in product(range(height), range(width), range(planned.rows_staged), range(w.s)):
            slot = planned.slot(row, col, r, s)
            wanted = row * w.stride + r * w.dilation, col * w.stride + s * w.dilation
            assert planned.slot_pixel(slot) == wanted, planned.config.key
            read.add(slot)
        assert read == set(range(planned.slots)), planned.config.key
        if not planned.lowered:
            pixels = [planned.slot_pixel(slot) for slot in range(planned.slots)]
            assert len(set(pixels)) == planned.slots


def test_slots_and_fragments_equal_the_duplicates_record() -> None:
    for planned in cases():
        if planned.config.reorder_inner:
            continue
        record = duplicates(planned.workload, planned.tile)
        if planned.lowered:
            assert planned.slots == record.loads.none
            continue
        assert planned.slots == record.loads.full == record.genuine
        assert [planned.slot(*entry) for entry in record.index] == list(record.slot)
        for number in range(planned.config.blk_row_warps):
            warp = record.warp(number, planned.config.warp_row_tiles)
            first = _warp_pixels(planned, number)[0]
            inside = [(ph - first[0], pw - first[1], r, s) for ph, pw, r, s in warp.index]
            assert [planned.fragment(*entry) for entry in inside] == list(warp.fragment), planned.config.key
            assert planned.fragments == warp.genuine


def test_row_by_row_stages_what_the_record_counts_for_sharing_along_the_width() -> None:
    for planned in cases():
        if planned.config.reorder_inner and not planned.lowered:
            loads = duplicates(planned.workload, planned.tile).loads
            assert planned.slots * planned.workload.r == loads.width


def test_fragments_lie_in_the_slots_the_taps_read() -> None:
    """Loading fragment f from ``fragment_slot(f)`` gives each tap the word at its own slot."""
    for planned in cases():
        if planned.lowered:
            continue
        high, wide = planned.warp_tile
        for number in range(planned.config.blk_row_warps):
            top, left = _warp_pixels(planned, number)[0]
            base = planned.slot(top, left, 0, 0)
            taps = product(range(planned.rows_staged), range(planned.workload.s))
            for (row, col), (r, s) in product(product(range(high), range(wide)), list(taps)):
                place = divmod(planned.fragment(row, col, r, s), planned.warp_cols.count)
                assert base + planned.fragment_slot(*place) == planned.slot(top + row, left + col, r, s)


def test_warps_own_consecutive_pixels_in_a_rectangle() -> None:
    for planned in cases():
        high, wide = planned.warp_tile
        assert high * wide == planned.config.warp_row_tiles
        pixels = [pixel for warp in range(planned.config.blk_row_warps) for pixel in _warp_pixels(planned, warp)]
        assert pixels == list(product(range(planned.tile[0]), range(planned.tile[1])))
        top, left = _warp_pixels(planned, planned.config.blk_row_warps - 1)[0]
        rectangle = [(top + i // wide, left + i % wide) for i in range(planned.config.warp_row_tiles)]
        assert rectangle == _warp_pixels(planned, planned.config.blk_row_warps - 1)


def test_fresh_rows_load_each_genuine_fragment_once_and_in_time() -> None:
    for planned in cases():
        assert len(planned.fresh_rows) == planned.rows_staged
        loaded = [row for fresh in planned.fresh_rows for row in fresh]
        assert sorted(loaded) == sorted(set(loaded))
        seen: set[int] = set()
        for r, fresh in enumerate(planned.fresh_rows):
            seen |= set(fresh)
            assert {planned.warp_rows.position(row, r) for row in range(planned.warp_tile[0])} <= seen
        used = {
            planned.warp_rows.position(row, r)
            for row in range(planned.warp_tile[0])
            for r in range(planned.rows_staged)
        }
        assert used == set(loaded)
        if planned.workload.stride == planned.workload.dilation:
            assert used == set(range(planned.warp_rows.count))


@pytest.mark.parametrize("atom", ATOMS)
def test_partners_and_accumulators_are_bijections(atom: str) -> None:
    for rows, columns in product((1, 2, 3, 4, 7, 8, 14, 16), (1, 2, 4, 8)):
        _check_bijections(atom, rows, columns)


def _check_bijections(atom: str, rows: int, columns: int) -> None:
    planned = plan(ConvWorkload(8, 16, 16, 64, 64, 3, 3, 1), MmaConfig(1, 1, rows, columns, atom=atom), "sm_80")
    places = [
        (pair, half, planned.partner(pair, half))
        for pair in range(planned.pairs)
        for half in range(planned.atom.pixels)
    ]
    assert {pixel for *_, pixel in places} == set(range(rows))
    spare = planned.pairs * planned.atom.pixels - rows
    assert spare in (0, 1)
    assert len(places) - len({pixel for *_, pixel in places}) == spare
    used = set()
    for pixel, column in product(range(rows), range(columns)):
        register = planned.accumulator(pixel, column)
        assert 0 <= register <= planned.accumulators - 2
        used |= {register, register + 1}
        pair, half = next((pair, half) for pair, half, owner in places if owner == pixel)
        # The matrix instruction writes rows 0 to 7 of D to its first two registers, rows 8 to 15 to the others.
        assert register == (pair * columns + column) * planned.atom.accumulators + 2 * half
    assert len(used) == 2 * rows * columns


@pytest.mark.parametrize("kernel", KERNELS)
@pytest.mark.parametrize("steps", STEPS)
def test_tile_wastes_least_then_stages_least_then_is_widest(kernel: tuple[int, int], steps: tuple[int, int]) -> None:
    workload = ConvWorkload(8, 31, 29, 32, 32, *kernel, 2, *steps)
    for pixels in (1, 2, 4, 7, 8, 14, 16, 28, 64):
        planned = plan(workload, MmaConfig(1, 1, pixels, 1))

        def cost(height: int, pixels: int = pixels) -> tuple[int, int, int]:
            width = pixels // height
            covered = -(-workload.p // height) * -(-workload.q // width)
            halo = len({p * workload.stride + r * workload.dilation for p in range(height) for r in range(workload.r)})
            halo *= len({q * workload.stride + s * workload.dilation for q in range(width) for s in range(workload.s)})
            return covered, halo, height

        heights = [height for height in range(1, pixels + 1) if pixels % height == 0]
        assert planned.tile[0] * planned.tile[1] == pixels
        assert cost(planned.tile[0]) == min(map(cost, heights))


def test_tile_height_is_obeyed() -> None:
    workload = ConvWorkload(8, 31, 29, 32, 32, 3, 3, 1)
    for height in (1, 2, 4, 8):
        assert plan(workload, MmaConfig(2, 1, 8, 1, tile_height=height)).tile == (height, 16 // height)


def test_copies_fill_a_stage_once_and_from_the_right_place() -> None:
    """Word after word of shared memory: [slot][channel block][image] and [channel block][tap][column word]."""
    for config in (MmaConfig(2, 1, 4, 4, chunk=2), MmaConfig(1, 2, 2, 2, chunk=1, reorder_inner=1)):
        planned = plan(ConvWorkload(8, 9, 9, 64, 64, 3, 2, 1), config, "sm_80")
        places = [planned.activation_copy(copy) for copy in range(planned.activation_copies)]
        assert places == list(product(range(planned.slots), range(config.chunk), range(8)))
        run = planned.column_tiles * 32
        weights = [planned.weight_copy(copy) for copy in range(planned.weight_copies)]
        assert weights == list(product(range(config.chunk), range(planned.taps_staged), range(0, run, 4)))
        assert planned.stage_words == 4 * (len(places) + len(weights))


@pytest.mark.parametrize("layout", ["nhwc", "nhwcnc"])
@pytest.mark.parametrize("kernel", [(3, 3), (1, 1)])
def test_global_words_are_bijections(layout: str, kernel: tuple[int, int]) -> None:
    """Every word of the input, the output and the weights has exactly one place."""
    workload = ConvWorkload(9, 5, 4, 64, 96, *kernel, 1)
    planned = plan(workload, MmaConfig(1, 1, 2, 4, layout=layout), "sm_80")
    sizes = {argument.name: prod(argument.shape) for argument in planned.launch.arguments}
    inputs = [
        planned.activation_word(*place) + i
        for place in product(range(2), range(5), range(4), range(2), range(8))
        for i in range(4)
    ]
    assert sorted(inputs) == list(range(sizes["A"]))
    places = product(range(2), range(workload.p), range(workload.q), range(12), range(8))
    outputs = [planned.output_word(*place) for place in places]
    assert sorted(outputs) == list(range(sizes["Out"]))
    taps = kernel[0] * kernel[1]
    runs = [planned.weight_word(*place) for place in product(range(2), range(taps), range(planned.column_blocks))]
    assert sorted(runs) == list(range(0, sizes["Wt"], planned.column_tiles * 32))


@pytest.mark.parametrize("layout", ["nhwc", "nhwcnc"])
def test_word_order_is_the_layouts(layout: str) -> None:
    """The plan's words are those of the packing functions, which know nothing of it."""
    import numpy as np

    from subbyte.numerics import pack_words, to_nhwc_words, to_nhwcnc

    workload = ConvWorkload(10, 3, 4, 64, 32, 3, 3, 1)
    x = np.random.default_rng(0).integers(-8, 8, (10, 3, 4, 64), np.int8)
    words = (to_nhwcnc(x) if layout == "nhwcnc" else to_nhwc_words(x)).ravel()
    planned = plan(workload, MmaConfig(layout=layout), "sm_80")
    for n, y, col, block in product(range(10), range(3), range(4), range(2)):
        first = planned.activation_word(n // 8, y, col, block, n % 8)
        expected = pack_words(np.ascontiguousarray(x[n, y, col, 32 * block : 32 * block + 32]))
        assert words[first : first + 4].tolist() == expected.tolist()


def test_launch_sizes() -> None:
    workload = ConvWorkload(9, 13, 10, 40, 72, 3, 3, 1)
    planned = plan(workload, MmaConfig(2, 1, 4, 4, split_channels=1), "sm_80")
    launch = planned.launch
    down, right = planned.pixel_tiles
    assert launch.grid == (2 * down * right, 3, 1)
    assert down * planned.tile[0] >= 13
    assert right * planned.tile[1] >= 10
    assert launch.block == (64, 1, 1)
    assert [a.name for a in launch.arguments] == ["A", "Out", "Prm", "Wt"]
    sizes = {a.name: prod(a.shape) for a in launch.arguments}
    assert sizes == {
        "A": 16 * 13 * 10 * 2 * 4, "Out": 16 * 13 * 10 * 3 * 4, "Prm": 3 * 96, "Wt": 2 * 9 * 12 * 32,
    }  # fmt: skip
    raw = plan(workload, MmaConfig(2, 1, 4, 4), "sm_80", output="int32").launch
    assert {a.name: (prod(a.shape), a.dtype) for a in raw.arguments}["Out"] == (16 * 13 * 10 * 3 * 32, "int32")
    assert [a.name for a in raw.arguments] == ["A", "Out", "Wt"]


def test_blocks_of_every_config_cover_the_output() -> None:
    for planned in cases()[::7]:
        w = planned.workload
        down, right = planned.pixel_tiles
        assert (down - 1) * planned.tile[0] < w.p <= down * planned.tile[0]
        assert (right - 1) * planned.tile[1] < w.q <= right * planned.tile[1]
        assert planned.column_blocks * planned.config.columns == w.filter_blocks * 32 or planned.config.columns > 64


def test_shared_memory_regions_do_not_overlap() -> None:
    """Parameters lie behind the stages and behind everything that later reuses the stages' space."""
    for switches in ({}, {"register_packing": False}, {"split_channels": 2, "chunk": 2}):
        config = MmaConfig(2, 1, 4, 4).with_values(switches)
        planned = plan(ConvWorkload(8, 9, 9, 128, 64, 3, 3, 1), config, "sm_80")
        assert planned.parameter_base >= planned.stages * planned.stage_words
        assert planned.shared_bytes == 4 * (planned.parameter_base + 3 * config.columns)
        if not config.register_packing:
            assert planned.parameter_base >= config.pixels * 8 * planned.output_row_words
        if config.split_channels > 1:
            assert planned.parameter_base >= planned.threads_per_split * planned.accumulators
        assert planned.parameter_base % 4 == 0


def test_ring_of_stages_visits_every_step_once() -> None:
    for inner, chunk in product((0, 1), (1, 2, 4)):
        planned = plan(ConvWorkload(8, 9, 9, 128, 64, 3, 3, 1), MmaConfig(chunk=chunk, reorder_inner=inner))
        steps = [planned.step(k) for k in range(planned.iterations)]
        assert sorted(steps) == sorted(product(range(3 if inner else 1), range(4 // chunk)))


def test_architectures_and_atoms_are_data() -> None:
    for arch in ARCHS.values():
        assert ATOMS[arch.default_atom].minimum_sm <= int(arch.name[3:5])
        assert arch.native_s4 == (arch.default_atom.startswith("s4"))
    for atom in ATOMS.values():
        m, n, k = (int(part) for part in atom.name.split("m")[1].replace("n", " ").replace("k", " ").split())
        assert (m, n) == (8 * atom.pixels, 8)
        # An unpacked word of eight int4 values is two words of bytes, so 32 bytes of depth are one block of 32 values.
        assert k == 32 * atom.blocks
        assert atom.ptx.startswith(f"mma.sync.aligned.m{m}n8k{k}.")
        assert atom.accumulators == m * n // 32
