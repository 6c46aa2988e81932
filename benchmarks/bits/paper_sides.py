"""The sides of the papers' experiments: what is built of each point, by which kernel.

T3, T4: TCBNN (arXiv 2006.16578). A1 to A3, A5: APNN-TC (arXiv 2106.12169). Sides of several configurations are the
likeliest by estimate, of different tiles where there are; the fastest of them counts.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import islice

from subbyte.device.arch import arch
from subbyte.errors import Unsupported
from subbyte.families import family_named, family_of
from subbyte.families.bmma.config import DOUBLE, ONES, POPCOUNT
from subbyte.kernel.choose import best_known
from subbyte.measure.plane_scaling import MOST_OUTPUT_BITS, PAIRS
from subbyte.spaces.configuration import Configuration
from subbyte.workload import ConvWorkload, gemm, workload
from subbyte.workload.matmul import MatmulWorkload
from subbyte.workload.precision import INT4, SUMS

TARGET = "sm_90a"
BIT = "bipolar1"
BITS, WARP, SOFTWARE = "bits", "bmma", "popc"
APNN_PAIRS = ("w1a1", "w1a2", "w1a3", "w1a4", "w1a5", "w1a8", "w2a2", "w2a6", "w2a8", "w4a4")
APNN_SIZES = tuple(range(128, 1025, 128))
BMM_SIZES = (128, 256, 512, 1024, 2048, 4096, 8192)
MOST_TRIED = 12
"""Configurations, best estimate first, among which different tiles are looked for."""
TILES = tuple(
    dict(zip(("blk_row_warps", "blk_col_warps", "warp_row_tiles", "warp_col_tiles"), values, strict=True))
    for values in ((1, 1, 4, 4), (2, 2, 4, 4), (4, 2, 4, 4), (4, 4, 2, 4))
)
"""Of the ablation: rows x columns of outputs of a block 32x32, 64x64, 128x64 and 64x128."""
SEPARATE, QUANTIZED, POOLED = "separate", "quantized", "pooled"
"""How a composition of several launches ends: planes are added up, sums compared, or pixels pooled."""
PACKED = "packed"
"""A composition that begins with packing activations, bytes before that."""
DEEP = 16384
WIDE = 2048


@dataclass(frozen=True)
class Side:
    """One kernel of a point: what it is called there, and how it is built. ``ends`` says which further launch stands
    behind it, in a composition; ``pairs`` one-bit products of planes are launched in place of the kernel then."""

    point: str
    name: str
    layer: ConvWorkload
    config: Configuration
    output: str
    ends: str = ""

    @property
    def family(self) -> str:
        """The kernel's."""
        return family_of(self.config).name


def output_of(layer: ConvWorkload) -> str:
    """Codes of the output type, sums where they would have more than 15 thresholds."""
    out = layer.precision.output
    return SUMS if out.bits > MOST_OUTPUT_BITS and layer.precision != INT4 else out.name


def likely(family: str, layer: ConvWorkload, output: str, most: int, **fixed: object) -> list[Configuration]:
    """Configurations that can be built, of different tiles first; none where no kernel of the family covers it."""
    one, target = family_named(family), arch(TARGET)
    given = (config.with_values(fixed) for config in one.candidates(layer, target))
    plans = (one.plan(layer, config, target, output) for config in given)
    valid = list(islice((plan for plan in plans if one.check(plan) is None), MOST_TRIED))
    before: Counter[tuple[object, ...]] = Counter()
    order = []
    for place, plan in enumerate(valid):
        kind = plan.tile, plan.columns
        order.append((before[kind], place))
        before[kind] += 1
    return [valid[place].config for _, place in sorted(order)[:most]]


def _sides(
    point: str, name: str, family: str, layer: ConvWorkload, output: str, most: int, **fixed: object
) -> Iterator[Side]:
    for config in likely(family, layer, output, most, **fixed):
        yield Side(point, name, layer, config, output)


def bmm(most: int) -> Iterator[Side]:
    """T3: square products of bits."""
    layers = {str(size): gemm(size, size, size, "w1a1") for size in BMM_SIZES}
    layers["4096x4096x8192"] = gemm(4096, 4096, 8192, "w1a1")
    for point, layer in layers.items():
        for output in (SUMS, layer.precision.output.name):
            said = "int32" if output == SUMS else "bits"
            yield from _sides(point, f"wgmma, {said}", BITS, layer, output, most)
            if point not in map(str, BMM_SIZES):
                continue
            for layout in ("nhwc", "nhwcnc"):
                for staging in ("shared", "direct"):
                    name = f"mma {'fsb' if layout == 'nhwcnc' else 'plain'} {staging}, {said}"
                    yield from _sides(point, name, WARP, layer, output, 2, layout=layout, staging=staging)
            yield from _sides(point, f"popc, {said}", SOFTWARE, layer, output, 1)


def packing(most: int) -> Iterator[Side]:
    """T3 with packing of activations in the time, and without."""
    for size in BMM_SIZES:
        yield from _packing(gemm(size, size, size, "w1a1"), most)


def deep(_most: int) -> Iterator[Side]:
    """T3, the largest product."""
    layer = gemm(DEEP, DEEP, DEEP, "w1a1")
    yield from _packing(layer, 1)
    yield from _sides(str(DEEP), "mma plain, bits", WARP, layer, BIT, 1, layout="nhwc", staging="shared")
    yield from _sides(str(DEEP), "popc, bits", SOFTWARE, layer, BIT, 1)
    yield from _sides(str(DEEP), "wgmma, int32", BITS, layer, SUMS, 1)


def _packing(layer: MatmulWorkload, most: int) -> Iterator[Side]:
    point = str(layer.rows)
    for family, name in ((BITS, "wgmma, bits"), (WARP, "mma fsb, bits")):
        fixed = {"layout": "nhwcnc", "staging": "shared"} if family == WARP else {}
        for config in likely(family, layer, BIT, min(most, 2), **fixed):
            yield Side(point, name, layer, config, BIT)
            yield Side(point, f"{name}, packing", layer, config, BIT, PACKED)


def wide(most: int) -> Iterator[Side]:
    """T4 with the most channels."""
    layer = workload(f"n16h64w64c{WIDE}k{WIDE}r3s3p1:w1a1")
    yield from _sides(f"channels {WIDE}", "wgmma, bits", BITS, layer, BIT, most)
    for layout in ("nhwc", "nhwcnc"):
        name = f"mma {'fsb' if layout == 'nhwcnc' else 'plain'}, bits"
        yield from _sides(f"channels {WIDE}", name, WARP, layer, BIT, 2, layout=layout)


def corrections(most: int) -> Iterator[Side]:
    """What counting the activations' bits costs ``mma``: by the instruction, by integer units, by two products."""
    layers = {str(size): gemm(size, size, size, "w1a1") for size in (512, 1024, 2048, 4096)}
    layers |= {f"w1a2 {size}": gemm(size, size, size, "w1a2") for size in (1024, 4096)}
    for name, spec in (("layer", "n16h64w64c128k128r3s3p1:w1a1"), ("layer w1a2", "n16h64w64c128k128r3s3p1:w1a2")):
        layers[name] = workload(spec)
    for point, layer in layers.items():
        output = layer.precision.output.name
        for config in likely(WARP, layer, output, most):
            for how in (ONES, POPCOUNT, DOUBLE):
                one = config.with_values({"correction": how})
                if _valid(layer, one, output):
                    yield Side(point, how, layer, one, output)


def few_pixels(most: int) -> Iterator[Side]:
    """A2 anew: more schedules of each layer, also in parts of rows."""
    for size in APNN_SIZES[3::2]:
        for pair in ("w1a1", "w1a2"):
            layer = workload(f"n1h16w16c{size}k{size}r3s3p1:{pair}")
            output = output_of(layer)
            yield from _sides(str(size), pair, BITS, layer, output, most)
            for parts in (2, 4):
                yield from _sides(str(size), f"{pair}, {parts} parts", BITS, layer, output, most, row_parts=parts)
            yield from _sides(str(size), f"{pair}, counted", BITS, layer, output, 2, counted=1)
            yield from _sides(str(size), f"{pair}, mma", WARP, layer, output, most)


def convolutions(most: int) -> Iterator[Side]:
    """T4: a 3x3 convolution of 64x64 pixels, 16 images, 128 channels, with one size at a time changed."""
    base = {"n": 16, "h": 64, "c": 128, "r": 3}
    sweeps = {"h": (32, 64, 128), "r": (3, 5, 7, 9, 11), "n": (8, 16, 32, 64, 128), "c": (128, 256, 512, 1024)}
    spoken = {"h": "size", "r": "filter", "n": "batch", "c": "channels"}
    for letter, values in sweeps.items():
        for value in values:
            of = {**base, letter: value}
            spec = f"n{of['n']}h{of['h']}w{of['h']}c{of['c']}k{of['c']}r{of['r']}s{of['r']}p{of['r'] // 2}:w1a1"
            layer, point = workload(spec), f"{spoken[letter]} {value}"
            bits = layer.precision.output.name
            yield from _sides(point, "wgmma, bits", BITS, layer, bits, most)
            yield from _sides(point, "wgmma, int32", BITS, layer, SUMS, 1)
            for layout in ("nhwc", "nhwcnc"):
                name = f"mma {'fsb' if layout == 'nhwcnc' else 'plain'}, bits"
                yield from _sides(point, name, WARP, layer, bits, 2, layout=layout)
            if letter != "c" or value < 1024:
                yield from _sides(point, "popc, bits", SOFTWARE, layer, bits, 1)


def products(most: int) -> Iterator[Side]:
    """A1: 64 rows, as many columns as depth."""
    for size in APNN_SIZES:
        yield from _pairs(str(size), gemm(64, size, size), APNN_PAIRS, most)


def small_convolutions(most: int) -> Iterator[Side]:
    """A2: one image of 16x16 pixels, 3x3."""
    for size in APNN_SIZES:
        yield from _pairs(str(size), workload(f"n1h16w16c{size}k{size}r3s3p1"), APNN_PAIRS, most)


def by_pairs(most: int) -> Iterator[Side]:
    """A5: time by pairs of planes, of a large product and of a layer."""
    yield from _pairs("4096", gemm(4096, 4096, 4096), PAIRS, most)
    yield from _pairs("stage3@64", workload("resnet50.stage3@64"), PAIRS, most)


def _pairs(point: str, layer: ConvWorkload, pairs: tuple[str, ...], most: int) -> Iterator[Side]:
    for pair in pairs:
        one = workload(f"{layer.sizes}:{pair}")
        output = output_of(one)
        found = list(_sides(point, pair, BITS, one, output, most))
        yield from found or _sides(point, pair, WARP, one, output, most)
        if pair == "w1a2":
            yield from _sides(point, "w1a2, mma", WARP, one, output, 1)
    try:
        config, _ = best_known(layer, arch(TARGET))
    except Unsupported:
        return
    yield Side(point, "int4", layer, config, INT4.output.name)


def ablation(most: int) -> Iterator[Side]:
    """A3: one thing of a kernel switched at a time."""
    for pair in ("w2a2:signed.unsigned", "w1a4:signed.unsigned"):
        layer, point = workload(f"n16h28w28c128k128r3s3p1:{pair}"), f"combine {pair.partition(':')[0]}"
        for family in (BITS, WARP):
            yield from _sides(point, f"{family} registers", family, layer, SUMS, most)
        for config in likely(WARP, layer, SUMS, 1):
            shared = config.with_values({"combine": "shared", "blk_row_warps": 1, "blk_col_warps": 1})
            if _valid(layer, shared, SUMS):
                yield Side(point, "bmma shared", layer, shared, SUMS)
        one = plane_of(layer)
        for family in (BITS, WARP):
            for config in likely(family, one, SUMS, 1):
                yield Side(point, f"{family} separate launches", layer, config, SUMS, SEPARATE)
    for spec, point in (("n16h28w28c128k128r3s3p1:w1a2", "quantize"), ("n64h28w28c128k128r3s3p1:w1a2", "quantize @64")):
        layer = workload(spec)
        bits = layer.precision.output.name
        yield from _sides(point, "bits fused", BITS, layer, bits, most)
        for config in likely(BITS, layer, SUMS, 1):
            yield Side(point, "bits sums alone", layer, config, SUMS)
            yield Side(point, "bits apart", layer, config, bits, QUANTIZED)
    for batch in (16, 256):
        layer = workload(f"n{batch}h56w56c64k64r3s3p1:w1a1")
        bits = layer.precision.output.name
        for config in likely(BITS, layer, bits + "+pool2after", 2, turn_rows=2, run_on=0):
            yield Side(f"pool @{batch}", "bits fused", layer, config, bits + "+pool2after")
        for config in likely(BITS, layer, bits, 1, paired_rows=0):
            yield Side(f"pool @{batch}", "bits unpooled", layer, config, bits)
            yield Side(f"pool @{batch}", "bits apart", layer, config, bits, POOLED)
    for pair in ("w1a2", "w2a2"):
        layer, output = gemm(1024, 1024, 1024, pair), SUMS
        for values in TILES:
            config = family_named(WARP).plain.with_values({**values, "reorder_inner": 0, "chunk": 4})
            if _valid(layer, config, output):
                plan = family_named(WARP).plan(layer, config, arch(TARGET), output)
                yield Side(f"tile {pair}", f"bmma {8 * plan.config.pixels}x{plan.columns}", layer, config, output)
        yield from _sides(f"tile {pair}", "bits", BITS, layer, output, most)


def _valid(layer: ConvWorkload, config: Configuration, output: str) -> bool:
    family = family_of(config)
    return family.check(family.plan(layer, config, arch(TARGET), output)) is None


EXPERIMENTS = {
    "T3": bmm, "T3 packing": packing, "T3 deep": deep, "T4": convolutions, "T4 wide": wide, "A1": products,
    "A2": small_convolutions, "A2 again": few_pixels, "A3": ablation, "A5": by_pairs, "correction": corrections,
}  # fmt: skip
"""The sides of each; ``most`` says how many configurations of a side on ``wgmma``."""


def plane_of(layer: ConvWorkload) -> ConvWorkload:
    """A one-bit product of a plane of each operand, as a layer: counts of ``w and x``."""
    return workload(f"{layer.sizes}:w1a1:unsigned.unsigned")
