"""Packing programs run on data: the words are those of pack_words, the states say truly what is where."""

from __future__ import annotations

import json

import numpy as np
import pytest

from subbyte.errors import InvalidInput
from subbyte.numerics import pack_words
from subbyte.technique import packing_program
from subbyte.technique.packing import PackingTrace

SCHEMES = ("quad", "width8")


def _values(tiles: int, seed: int = 0) -> np.ndarray:
    return np.random.default_rng(seed).integers(-8, 8, (tiles, 8, 8), dtype=np.int8)


@pytest.mark.sample("0-")
@pytest.mark.parametrize("scheme", SCHEMES)
@pytest.mark.parametrize("seed", range(3))
def test_words_equal_pack_words_for_any_number_of_tiles(scheme: str, seed: int) -> None:
    program = packing_program(scheme)
    for tiles in range(1, program.tiles + 1):
        values = _values(tiles, seed)
        trace = program.run(values)
        assert np.array_equal(trace.words(), pack_words(values)[..., 0])
        assert len(trace.stores) == 8 * tiles
        assert trace.states[-1].useful_lanes == min(32, 8 * tiles if scheme == "quad" else 4 * tiles)


@pytest.mark.parametrize("scheme", SCHEMES)
def test_stored_words_fill_nhwcnc_blocks(scheme: str) -> None:
    program = packing_program(scheme)
    values = _values(program.tiles)
    blocks = np.zeros(8 * program.tiles, np.uint32)
    for store in program.run(values).stores:
        blocks[store.word] = store.value
    # [tile of 8 channels][image][channel] -> [block][image][32 channels], packed along the channels
    images = values.reshape(-1, 4, 8, 8).transpose(0, 2, 1, 3).reshape(-1, 8, 32)
    assert np.array_equal(blocks, pack_words(np.ascontiguousarray(images)).ravel())


def test_quad_stores_word_lane() -> None:
    for store in packing_program("quad").run(_values(4)).stores:
        assert store.word == store.lane
        assert (store.tile, store.row) == (store.lane % 4, store.lane // 4)


@pytest.mark.parametrize("scheme", SCHEMES)
def test_values_beyond_int4_are_saturated(scheme: str) -> None:
    values = np.random.default_rng(1).integers(-100, 100, (4, 8, 8)).astype(np.int32)
    values[0, 0, :2] = (np.iinfo(np.int32).min, np.iinfo(np.int32).max)
    expected = pack_words(np.clip(values, -8, 7).astype(np.int8))[..., 0]
    assert np.array_equal(packing_program(scheme).run(values).words(), expected)


@pytest.mark.parametrize("scheme", SCHEMES)
def test_states_hold_the_values_their_origins_name(scheme: str) -> None:
    program = packing_program(scheme)
    values = _values(program.tiles, 5)
    trace = program.run(values)
    assert [state.step for state in trace.states] == [step.name for step in program.steps]
    for state in trace.states:
        for register in state.registers:
            assert len(register.words) == len(register.values) == len(register.origins) == 32
            for word, held, origins in zip(register.words, register.values, register.origins, strict=True):
                for nibble, (value, origin) in enumerate(zip(held, origins, strict=True)):
                    assert (value is None) == (origin is None)
                    if origin is None or value is None:
                        continue
                    assert value == values[origin // 64, origin // 8 % 8, origin % 8]
                    if register.kind == "nibbles":
                        assert word >> (4 * nibble) & 0xF == value & 0xF


def test_width8_is_the_papers_iteration() -> None:
    program = packing_program("width8")
    shuffles = [step for step in program.steps if step.name.startswith("gather")]
    for step, offset in zip(shuffles, (4, 2, 1), strict=True):
        assert step.source is not None
        for lane in range(32):
            assert step.source[lane] == (lane + offset if lane % 8 + offset < 8 else lane)
    useful = {state.step: state.useful_lanes for state in program.run(_values(8)).states}
    assert useful["gather 2"] == 0
    assert useful["gather 1"] == useful["place tile 0"] == 4
    assert [useful[f"place tile {t}"] for t in range(8)] == [4, 8, 12, 16, 20, 24, 28, 32]


def test_counts() -> None:
    quad, width8 = (packing_program(scheme) for scheme in SCHEMES)
    assert (quad.tiles, quad.shuffles, quad.stores) == (4, 2, 1)
    assert quad.shuffles_per_tile == 0.5
    assert (width8.tiles, width8.shuffles, width8.stores) == (8, 8 * 2 * 3 + 7 * 2, 2)
    assert {(p.shared_bytes_before, p.shared_bytes_after) for p in (quad, width8)} == {(256, 32)}


def test_quad_is_the_generated_kernels_program() -> None:
    text = packing_program("quad").text()
    for selector in ("0x6240", "0x3715", "0x5410", "0x3276"):
        assert selector in text
    sources = [step.source for step in packing_program("quad").steps if step.source]
    assert sources == [tuple(lane ^ distance for lane in range(32)) for distance in (1, 2)]


def test_a_wrong_selector_is_noticed(monkeypatch: pytest.MonkeyPatch) -> None:
    from subbyte.families.mma.explain import packing_schemes

    monkeypatch.setattr(packing_schemes, "EXCHANGES", ((1, 0x6240, 0x3715), (2, 0x5410, 0x7632)))
    values = _values(4)
    trace = packing_program("quad").run(values)
    assert trace.states[-1].useful_lanes < 32
    assert not np.array_equal(trace.words(), pack_words(values)[..., 0])


def test_records_go_to_json_and_tables() -> None:
    program = packing_program("quad")
    trace = program.run(_values(4))
    assert isinstance(trace, PackingTrace)
    assert json.loads(program.to_json())["shuffles"] == 2
    assert len(json.loads(trace.to_json())["states"]) == len(program.steps)
    assert len(trace.to_frame()) == 32
    assert "32 of 32 lanes" in trace.text()
    assert "<table>" in program._repr_html_()


@pytest.mark.parametrize(
    "values",
    [np.zeros((5, 8, 8), np.int8), np.zeros((8, 8), np.int8), np.zeros((0, 8, 8), np.int8), np.zeros((4, 8, 8))],
)
def test_wrong_values_are_refused(values: np.ndarray) -> None:
    with pytest.raises(InvalidInput, match="quad takes integers"):
        packing_program("quad").run(values)


def test_unknown_scheme_is_refused() -> None:
    with pytest.raises(InvalidInput, match="quad, width8"):
        packing_program("octet")
