"""Where taps begin in shared memory: what the record says and what the generated kernel's instructions are given."""

from __future__ import annotations

from dataclasses import replace

import pytest

import subbyte
from subbyte.emulator.trace import of_kind
from subbyte.errors import InvalidInput
from subbyte.families.wgmma.config import WgmmaConfig
from subbyte.families.wgmma.pipeline.config import PipelineConfig
from subbyte.families.wgmma.single.config import SingleTileConfig
from subbyte.families.wgmma.sparse.config import SparseConfig
from subbyte.kernel import Kernel
from subbyte.kernel.build import make_plan
from subbyte.technique.taps import Tap, TapAddresses, tap_addresses
from subbyte.workload import ConvWorkload

SMALL = {
    "3x3": (ConvWorkload(8, 8, 8, 64, 64, 3, 3, 1), PipelineConfig(tile_width=8, segments=2, stages=5, stagger=0)),
    "stride 2": (
        ConvWorkload(8, 16, 16, 64, 64, 3, 3, 1, 2),
        PipelineConfig(tile_width=8, tile_rows=2, segments=2, stages=6, stagger=0),
    ),
    "dilation": (
        ConvWorkload(8, 10, 10, 64, 64, 3, 3, 2, 1, 2),
        PipelineConfig(tile_width=10, segments=2, stages=6, stagger=0),
    ),
    "one load ahead": (ConvWorkload(8, 6, 6, 64, 64, 3, 3, 1), PipelineConfig(tile_width=6, stages=6, load_ahead=1)),
}


def _given(workload: ConvWorkload, config: WgmmaConfig) -> set[tuple[int, int]]:
    """First byte and descriptor of every instruction of the first block, without the block's address."""
    kernel = Kernel(make_plan(workload, config, "sm_90a", None, None, "fixed"))
    rows = of_kind(kernel.trace().trace, "wgmma")
    return {(int(row["shared"]), int(row["value"])) for row in rows}


def _stray(record: TapAddresses, given: set[tuple[int, int]]) -> list[Tap]:
    return [tap for tap in record.taps if (tap.start, tap.descriptor) not in given]


@pytest.mark.deep
@pytest.mark.parametrize(
    ("name", "sharing"), [*((name, "full") for name in SMALL), ("3x3", "none"), ("stride 2", "none")]
)
def test_the_kernel_is_given_these_descriptors(name: str, sharing: str) -> None:
    workload, config = SMALL[name]
    config = replace(config, duplicate_aware=sharing, stagger=0)
    given = _given(workload, config)
    for output_row in range(workload.p // config.segments):
        record = tap_addresses(workload, config, output_row)
        assert not _stray(record, given)
        for tap in record.taps:
            row = next(one for one in record.stored if (one.buffer, one.input_row) == (tap.buffer, tap.input_row))
            step = workload.stride if sharing == "full" and name == "stride 2" else 1
            columns = row.columns + (-1,) * workload.pad  # the zeros right of a row are those left of the next one
            seen = [columns[tap.column + q * step] for q in range(workload.q)] if record.shared else tap.pixels
            assert tuple(seen[: workload.q]) == tap.pixels[: workload.q]
    other = replace(record, taps=(replace(record.taps[0], start=record.taps[0].start + 16),))
    assert _stray(other, given)  # a start that no instruction has is noticed


MODES: dict[str, tuple[str, dict[str, int]]] = {
    "two groups of images": ("n16h7w7c64k64r3s3p1", {"tile_width": 7, "pixels": 4, "stages": 5}),
    "early release": ("n8h6w14c64k64r3s3p1", {"tile_rows": 2, "row_reuse": 2}),
    "bulk weights": ("n8h6w14c64k64r3s3p1", {"segments": 6, "multicast": 2}),
    "two tiles": ("n8h6w14c64k128r3s3p1", {"tiles_m": 2}),
    "two producers": ("n8h14w14c64k64r3s3p1", {"producers": 2, "stages": 6}),
    "2:4 weights": ("n8h6w14c96k64r3s3p1:w4a4:signed-2of4.signed", {"resident": 1}),
    "a cluster": ("n8h6w14c128k64r3s3p1", {"segments": 6, "stages": 3, "cluster_split_k": 2}),
}  # fmt: skip


@pytest.mark.deep
@pytest.mark.parametrize("mode", MODES)
def test_every_way_of_working_is_given_these_descriptors(mode: str) -> None:
    spec, knobs = MODES[mode]
    usual = {"stages": 4, "stagger": 0} if "multicast" not in knobs else {}
    kind = SparseConfig if "resident" in knobs else PipelineConfig if usual else SingleTileConfig
    config = kind().with_values({"tile_width": 14, "segments": 2, **usual, **knobs})
    workload = subbyte.workload(spec)
    given = _given(workload, config)
    for output_row in range(min(2, workload.p // config.segments)):
        assert not _stray(tap_addresses(workload, config, output_row), given)


def test_sharing_stores_each_pixel_once() -> None:
    workload, config = SMALL["3x3"]
    shared, lowered = (tap_addresses(workload, replace(config, duplicate_aware=way), 1) for way in ("full", "none"))
    assert shared.loads == 3 * 8
    assert lowered.loads == 3 * (7 + 8 + 7)
    assert "each pixel stored once" in shared.title()
    written = shared.to_dict()
    assert written["slot_bytes"] == shared.buffer_bytes  # JSON keeps the names it had
    assert [one["slot"] for one in written["taps"]] == [tap.buffer for tap in shared.taps]
    assert "each tap stored anew" in lowered.text()
    assert len(shared.table().rows) == 9
    assert len(tap_addresses(workload, config, 0).taps) == 6  # kernel row 0 meets padding alone


def test_what_has_no_taps_is_refused() -> None:
    workload, config = SMALL["3x3"]
    with pytest.raises(InvalidInput, match="rows 0 to 3"):
        tap_addresses(workload, config, 4)
    with pytest.raises(InvalidInput, match="cannot be built"):
        tap_addresses(workload, replace(config, stages=2))
    with pytest.raises(InvalidInput, match="kernels that see rows"):
        tap_addresses(ConvWorkload(8, 7, 7, 128, 256, 1, 1, 0), PipelineConfig(tile_width=26, stages=2))
