"""Configurations and plan of the wgmma family, on integers."""

from dataclasses import replace

import pytest

from subbyte.device.arch import arch
from subbyte.errors import InvalidInput
from subbyte.families.mma.config import MmaConfig
from subbyte.families.registry import config_from_key
from subbyte.families.wgmma.check import why_not
from subbyte.families.wgmma.pipeline.config import PipelineConfig
from subbyte.families.wgmma.plan import WgmmaPlan
from subbyte.families.wgmma.single.config import SingleTileConfig
from subbyte.workload import ConvWorkload
from subbyte.workload import workload as named

H200 = arch("sm_90a")
STAGE4 = ConvWorkload(256, 14, 14, 256, 256, 3, 3, 1)
GOOD = PipelineConfig(tile_width=14, tile_rows=2, consumers_m=2, segments=2, stages=6)


def _reason(workload=STAGE4, target=H200, **changes):
    return why_not(WgmmaPlan(workload, replace(GOOD, **changes), target))


def test_a_configuration_is_plain_data_with_a_name():
    assert (GOOD.threads, GOOD.consumers) == (384, 2)
    assert GOOD.key == "wgp-tw14-tr2-cm2-sg2-st6"
    given = {"Tile-Width": "14", "tile_rows": 2, "consumers_m": 2, "segments": 2, "stages": 6}
    assert PipelineConfig.from_dict(given) == GOOD
    for wrong in ({"stages": 0}, {"stagger": 3}, {"unroll": True}):
        with pytest.raises(InvalidInput):
            PipelineConfig(**wrong)
    with pytest.raises(InvalidInput, match="tile_width"):
        GOOD.with_values({"tile_widht": 14})


def test_switches_are_part_of_the_name_and_read_from_text():
    off = GOOD.with_values({"duplicate_aware": "NONE", "register_packing": "off", "layout": "nhwc"})
    assert (off.duplicate_aware, off.register_packing, off.layout) == ("none", False, "nhwc")
    assert off.key == "wgp-tw14-tr2-cm2-sg2-st6-dup.none-rp0-nhwc"
    assert PipelineConfig.from_dict(off.to_dict()) == config_from_key(off.key.upper()) == off
    assert config_from_key(MmaConfig(chunk=2).key) == MmaConfig(chunk=2)
    with pytest.raises(InvalidInput, match="'zz9' is not part of a key"):
        config_from_key("wgp-tw14-zz9")
    for wrong in ({"layout": "hwnc"}, {"duplicate_aware": "shared"}, {"register_packing": "perhaps"}):
        with pytest.raises(InvalidInput, match=next(iter(wrong))):
            GOOD.with_values(wrong)
    with pytest.raises(InvalidInput, match="register_packing"):
        PipelineConfig(register_packing=1)


def test_the_good_one_can_be_built():
    assert _reason() is None


@pytest.mark.parametrize(
    ("kind", "changes"),
    [
        ("tile", {"tile_width": 5}), ("tile", {"tile_width": 28}), ("divisibility", {"segments": 15}),
        ("divisibility", {"tile_rows": 8}), ("threads", {"consumers_rows": 2}), ("divisibility", {"m_iterations": 4}),
        ("divisibility", {"unroll": 3}), ("cluster", {"cluster_split_k": 2}), ("stages", {"stages": 3}), ("stages",
                          {"stages": 9}),
        ("registers", {"tile_rows": 3}), ("stages", {"row_reuse": 0}), ("stages", {"row_reuse": 3}),
        ("stages", {"load_ahead": 3}), ("same program", {"in_flight": 3}),
        ("same program", {"duplicate_aware": "none", "row_reuse": 0}),
        ("stages", {"duplicate_aware": "none", "consumers_m": 1, "consumers_rows": 2}),
        ("stages", {"duplicate_aware": "none", "stages": 2, "stagger": 0}),
        ("shared memory", {"register_packing": False, "stages": 7}),
    ],
)  # fmt: skip
def test_what_cannot_be_built_has_a_reason(kind, changes):
    assert str(_reason(**changes)).startswith(f"{kind}: ")


ALONE = ConvWorkload(8, 14, 14, 256, 256, 3, 3, 1)
ONCE = SingleTileConfig(tile_width=14, segments=14, cluster_split_k=2)


@pytest.mark.parametrize(
    ("kind", "changes"),
    [
        ("stages", {"segments": 7, "cluster_split_k": 1}), ("stages", {"duplicate_aware": "none"}),
        ("stages", {"weights_ahead": 4}), ("stages", {"consumers_m": 2, "early_start": 2}),
        ("cluster", {"multicast": 8}), ("cluster", {"parameters": 2}), ("same program", {"in_flight": 3}),
        ("divisibility", {"unroll": 8}),
    ],
)  # fmt: skip
def test_what_cannot_be_a_single_tile_iteration_has_a_reason(kind, changes):
    assert why_not(WgmmaPlan(ALONE, ONCE, H200)) is None
    assert str(why_not(WgmmaPlan(ALONE, replace(ONCE, **changes), H200))).split(":")[0] == kind


def test_every_row_of_a_single_tile_iteration_has_a_stage():
    for config in (ONCE, replace(ONCE, tile_width=8, tile_rows=2, segments=7)):
        plan = WgmmaPlan(ALONE, config, H200)
        assert plan.stages == plan.window == config.tile_rows + 2
        assert plan.weight_bytes == 3 * plan.run * 2048


def test_reasons_of_workload_and_architecture():
    assert str(_reason(target=arch("sm_80"))).startswith("atom: ")
    assert str(_reason(ConvWorkload(8, 14, 14, 16384, 64, 3, 3, 1))).startswith("accumulator: ")
    assert str(_reason(ConvWorkload(8, 4, 4, 64, 64, 3, 3, 4))).startswith("padding: ")
    huge = ConvWorkload(2048, 224, 224, 512, 64, 3, 3, 1)
    whole = PipelineConfig(tile_width=28, channel_groups=4, stages=12, segments=1)
    assert str(why_not(WgmmaPlan(huge, whole, H200))).startswith(("index: ", "shared memory: "))


@pytest.mark.parametrize(
    "workload",
    [STAGE4, ConvWorkload(8, 9, 9, 64, 64, 3, 3, 1, 2), ConvWorkload(8, 24, 24, 3, 64, 7, 7, 3, 2),
     ConvWorkload(8, 14, 14, 64, 64, 1, 1, 0, 2), ConvWorkload(8, 10, 10, 64, 64, 3, 3, 2, 1, 2)],
    ids=lambda w: w.spec,
)  # fmt: skip
@pytest.mark.parametrize("rows", [1, 2, 3])
def test_taps_meet_the_rows_of_the_definition(workload, rows):
    plan = WgmmaPlan(workload, PipelineConfig(tile_width=8, tile_rows=rows), H200)
    w, (first, last) = workload, plan.row_range
    for row, count in plan.iterations:
        touched = set()
        for tap in range(w.r):
            low, high = plan.tap_rows_at(row, count, tap)
            inside = {i for i in range(count) if 0 <= (row + i) * w.stride + tap * w.dilation - w.pad < w.h}
            assert set(range(low, high)) == inside
            touched |= {tap} if inside else set()
            for i in inside:
                staged = (row + i) * plan.rows.pixel_step + tap * plan.rows.tap_step
                assert first <= staged <= last
                assert staged * plan.rows.unit - w.pad == (row + i) * w.stride + tap * w.dilation - w.pad
        begin, end = plan.tap_range(row, count)
        assert set(range(begin, end)) >= touched
        if touched:
            assert (begin, end) == (min(touched), max(touched) + 1)


@pytest.mark.parametrize("workload", [STAGE4, ConvWorkload(8, 9, 9, 64, 64, 3, 3, 1, 2)], ids=lambda w: w.spec)
def test_a_lowered_image_has_a_part_for_every_tap(workload):
    config = PipelineConfig(tile_width=8, tile_rows=2, stagger=0, duplicate_aware="none")
    plan = WgmmaPlan(workload, config, H200)
    assert (plan.tap_rows, plan.tap_cols, plan.window, plan.groups) == (1, 1, 2, 9)
    assert {plan.tap_of(group)[1:] for group in range(9)} == {(r, s) for r in range(3) for s in range(3)}
    assert plan.left_zeros == plan.right_zeros == 0
    assert plan.pitch == plan.columns_loaded <= plan.width_covered
    on = WgmmaPlan(workload, replace(config, duplicate_aware="full"), H200)
    assert plan.buffer_bytes < on.buffer_bytes
    assert [one.shape for one in plan.launch.arguments] == [one.shape for one in on.launch.arguments]


def test_operands_in_flight_are_fewer_than_those_of_a_loop_body():
    """A loop body writes the registers of its operands again: their instructions must have ended (seen on a GPU)."""
    for unroll, asked, lowered in ((1, 1, False), (1, 2, False), (2, 2, False), (1, 1, True), (2, 2, True)):
        config = PipelineConfig(tile_width=14, unroll=unroll, in_flight=asked, stagger=0, stages=6)
        config = replace(config, duplicate_aware="none" if lowered else "full")
        for channels in (64, 256, 512):
            for taps in (1, 3):
                workload = ConvWorkload(8, 14, 14, channels, 64, taps, taps, taps // 2)
                plan = WgmmaPlan(workload, config, H200)
                assert 0 <= plan.in_flight <= min(asked, plan.unroll * plan.tap_cols - 1)
                assert plan.steps % plan.unroll == 0
                assert plan.run % plan.ahead == 0


def test_layouts_are_index_maps_of_the_same_words():
    workload = ConvWorkload(16, 3, 5, 64, 96, 3, 3, 1)
    for layout in ("nhwcnc", "nhwc"):
        plan = WgmmaPlan(workload, PipelineConfig(tile_width=6, layout=layout), H200)
        words = {
            plan.output_word(group, row, col, block, image) + i
            for group in range(2) for row in range(3) for col in range(5)
            for block in range(3) for image in range(8) for i in range(4)
        }  # fmt: skip
        assert words == set(range(16 * 3 * 5 * 3 * 4))
        assert {argument.form for argument in plan.launch.arguments if argument.name in ("A", "Out")} == {layout}
    assert plan.output_word(0, 0, 0, 0, 1) == 3 * 5 * 3 * 4  # the next image lies a whole image away


def test_registers_never_exceed_what_the_block_was_launched_with():
    for consumers in (1, 2, 3):
        config = PipelineConfig(tile_width=8, consumers_rows=consumers, segments=2)
        plan = WgmmaPlan(STAGE4, config, H200)
        consumer, producer = plan.registers
        launched = min(65536 // config.threads // 8 * 8, 255)
        if consumer != producer:
            assert consumer * consumers + producer <= launched * (consumers + 1)
            assert consumer % 8 == producer % 8 == 0


def test_parts_of_shared_memory_do_not_overlap():
    plan = WgmmaPlan(STAGE4, replace(GOOD, stages=5, register_packing=False), H200)
    edges = [plan.stages * plan.buffer_bytes, plan.parameter_base, plan.weight_base, plan.packing_base,
             plan.exchange_base, plan.barrier_base, plan.shared_bytes]  # fmt: skip
    assert edges == sorted(edges)
    assert plan.barrier_base % 8 == plan.weight_base % 16 == plan.exchange_base % 16 == 0


def test_blocks_that_share_weights_are_neighbours_in_a_cluster() -> None:
    wide = plan_of("n8h28w28c128k128r3s3p1", "wgs-tw14-tr1-cm1-sg28-mc4-un2-if3")
    assert (wide.multicast_blocks, wide.grid, wide.launch.cluster, wide.weight_chunks) == (
        4,
        (2 * 4, 28 * 2 // 4),
        4,
        3,
    )
    split = plan_of("n8h14w14c256k256r3s3p1", "wgs-tw14-tr1-cm1-sg14-sk2-mc2")
    assert (split.grid, split.launch.cluster, split.weight_chunks) == ((4 * 2 * 2, 7), 4, 6)


def test_an_odd_number_of_rows_pairs_tiles_of_channels_in_the_last_clusters() -> None:
    odd = plan_of("n8h7w7c512k512r3s3p1", "wgs-tw8-tr1-cm1-sg7-sk2-mc2-un2-if3")
    assert (odd.odd_places, odd.places) == (True, 7)
    assert (odd.grid, odd.grid_blocks, odd.launch.cluster) == ((4, 8 * 7 // 2), 8 * 7 * 2, 4)


def plan_of(spec: str, key: str) -> WgmmaPlan:
    plan = WgmmaPlan(named(spec), config_from_key(key), arch("sm_90a"))
    assert why_not(plan) is None
    return plan
