"""Public functions and methods with one argument of a wrong type: each names it, none lets a foreign error through.

The calls are read from the signatures: a right call of each, and every one of its arguments replaced in turn.
"""

from __future__ import annotations

import inspect
import random
from collections.abc import Callable, Iterator
from functools import cache, partial
from typing import Any

import numpy as np

from hostile.corpus import corpus
from hostile.harness import Case


class Odd:
    """A value that cannot even be shown."""

    def __repr__(self) -> str:
        raise RuntimeError("no text")


VALUES: tuple[Any, ...] = (
    None, True, 0, -1, 2**63, 10**5000, 2.5, float("nan"), "", "x", "x" * 200_000, b"x", [], [1], (1, 2, 3), {},
    {"a": 1}, object(), Odd(), lambda: 1, int, np.zeros(3), np.ma.masked_array([1], [1]), iter(()), 1j, [None], "\0",
    [[]], range(3), {1, 2}, np.int8(3), np.float32(0.5), "../../x", ["x"], [2.5],
)  # fmt: skip
LAYER = "n1h4w6c32k32r3s3p1"
RECORDED = "resnet50.stage2@8"


def cases(rng: random.Random) -> Iterator[Case]:
    """About 5,200 cases: those of the corpus, then every argument of every call with every value, shuffled."""
    calls = right_calls()
    for entry in corpus("python_arguments"):
        function, given = calls[entry["call"]]
        changed = partial(function, **{**given, entry["argument"]: entry["value"]})
        yield Case(f"{entry['call']}({entry['argument']}={entry['value']!r})", changed, "refuse")
    listed = [(name, argument) for name, (_, given) in calls.items() for argument in given]
    pairs = [(name, argument, place) for name, argument in listed for place in range(len(VALUES))]
    rng.shuffle(pairs)
    for name, argument, place in pairs:
        function, given = calls[name]
        value = VALUES[place]
        if argument in ("progress", "callbacks", "stop") and callable(value):
            continue  # what it raises is the caller's
        must = "refuse" if _certainly_wrong(function, argument, value) else "either"
        changed = partial(function, **{**given, argument: value})
        yield Case(f"{name}({argument}={_short(value)})", changed, must, seconds=30.0)


def _certainly_wrong(function: Callable[..., object], argument: str, value: object) -> bool:
    """Nothing that an annotation of these kinds allows is such a value."""
    parameter = inspect.signature(function).parameters.get(argument)
    said = str(parameter.annotation) if parameter is not None else "Any"
    if any(name in said for name in ("Any", "Array", "Words", "Reals", "Entrant", "TypeVar", "Index")):
        return False
    return type(value) in (complex, type, Odd) or (type(value) is float and "float" not in said)


def _short(value: object) -> str:
    if isinstance(value, Odd):
        return "Odd()"
    return "10**5000" if isinstance(value, int) and value > 2**63 else f"{value!r:.60}".replace("\n", " ")


@cache
def right_calls() -> dict[str, tuple[Callable[..., object], dict[str, Any]]]:
    """By name a public function or method and arguments that it takes."""
    import subbyte
    from subbyte import analysis, device, exercises, families, kernel, technique, tune
    from subbyte import numerics as data
    from subbyte.families.mma.config import MmaConfig
    from subbyte.families.mma.values import value_lists
    from subbyte.families.mma.weights import prepare_weights
    from subbyte.families.wgmma.pipeline.config import PipelineConfig
    from subbyte.families.wgmma.weights import prepare_warpgroup_weights
    from subbyte.kernel.build import make_plan
    from subbyte.kernel.coverage import covered
    from subbyte.measure.fake import FakeRunner

    layer, config, wide = subbyte.workload(LAYER), MmaConfig(blk_col_warps=1), PipelineConfig(tile_width=6, stages=3)
    x, w = np.ones((1, 4, 6, 32), np.int8), np.ones((32, 3, 3, 32), np.int8)
    words, requant = data.to_nhwc_words(x), data.Requantization.per_tensor(32, 1, 4)
    built = kernel.Kernel(make_plan(layer, config, "sm_80", "int4", (-8, 7), "fixed"))
    layers, paper, one = kernel.Chain([built], [w], [requant]), families.space(layer), {"workload": layer}
    found: dict[str, tuple[Callable[..., object], dict[str, Any]]] = {}

    def add(function: Callable[..., object], called: str = "", /, **given: Any) -> None:
        found[called or function.__name__] = function, given

    add(subbyte.workload, given=LAYER)
    add(subbyte.workloads, given=[LAYER])
    add(subbyte.ConvWorkload, n=1, h=4, w=4, c=8, k=8, r=1, s=1, pad=0, stride=1, dilation=1, name="a")
    add(subbyte.MmaConfig, **MmaConfig().to_dict())
    add(MmaConfig.from_dict, "MmaConfig.from_dict", data={"chunk": 1})
    add(MmaConfig.from_key, "MmaConfig.from_key", key=config.key)
    add(config.with_values, "with_values", values={"chunk": 2})
    add(PipelineConfig.from_key, "PipelineConfig.from_key", key=wide.key)
    add(PipelineConfig.from_dict, "PipelineConfig.from_dict", data={"stages": 4})
    add(device.arch, name="sm_80")
    add(device.measured_peaks, device="NVIDIA H200")
    add(device.measured_peaks().peak, "peak", atom="s8.m16n8k32")
    add(data.accumulator_bound, **one)
    add(data.check_int4, array=x, name="x", shape=(1, 4, 6, 32))
    add(data.float_words, requant=requant, k_padded=32, scale_log2=8, terms=288)
    for function in (data.from_nhwc_words, data.from_hwnc_words, data.from_nhwcnc):
        layout = function.__name__.removeprefix("from_").removesuffix("_words")
        add(function, words=data.relayout(words, "nhwc", layout), n=1, c=32)
    add(data.pack_words, values=np.ones((2, 8), np.int8))
    add(data.unpack_words, words=words)
    add(prepare_weights, w=w, vec=4)
    add(prepare_warpgroup_weights, w=w, split=1, groups=1, order="rows", tiles=1)
    add(data.quantize, array=[0.5, 1.0], scale=0.25)
    add(data.scale_for, array=[0.5, 1.0])
    add(data.relayout, words=words, source="nhwc", target="nhwcnc")
    add(data.reference, **one, x=x, w=w)
    for function in (data.to_nhwc_words, data.to_hwnc_words, data.to_nhwcnc):
        add(function, x=x)
    add(
        data.Requantization,
        bias=requant.bias,
        multiplier=requant.multiplier,
        shift=requant.shift,
        clip=(0, 7),
        scale_error=0.0,
    )
    add(data.Requantization.per_tensor, k=2, multiplier=1, shift=1, bias=0, relu=False)
    add(data.Requantization.from_scale, scale=0.1, bias=0, relu=False, k=32, workload=layer)
    add(
        data.Requantization.random, "Requantization.random", **one, rng=np.random.default_rng(0), relu=False, wide=False
    )
    add(requant.apply, "apply", acc=np.ones((2, 32), np.int32))
    add(requant.words, "words", k_padded=32)
    add(requant.fixed_words, "fixed_words", k_padded=32, scale_log2=8)
    add(families.space, **one, arch="sm_80", kind="paper", layout="nhwc")
    add(value_lists, kind="paper", **one)
    add(paper.config, "space.config", index=3)
    add(paper.index, "space.index", config=paper.config(3))
    add(paper.plan, "space.plan", which=3)
    add(paper.check, "space.check", which=3)
    add(covered, **one, arch="sm_80", family="auto")
    add(technique.accesses, **one, config=config, layout="nhwc", arch="sm_80", block=(0, 0), warp=0, iteration=0)
    add(technique.access_map, access=technique.accesses(layer, config, arch="sm_80").tile)
    add(technique.bank_conflicts, addresses=[0, 4, 8], sizes=4)
    add(technique.sectors, addresses=[0, 4, 8], sizes=4)
    add(technique.duplicates, **one, tile=(1, 4), at=(0, 0))
    add(technique.fragments, instruction="s4.m16n8k32")
    add(technique.check_fragments, record=technique.fragments("s4.m16n8k32"), seed=0)
    add(technique.packed_stores, warp=0)
    add(technique.packing_program, scheme="quad")
    add(technique.tap_addresses, **one, config=wide, output_row=0)
    add(technique.tiling, **one, config=config, arch="sm_80")
    add(technique.warpgroup_tiling, **one, config=wide, arch="sm_90a")
    add(technique.kernel_reading, kernel=built, other=None)
    add(technique.load_steps, source=layer, config=config, arch="sm_80", block=0, warp=0)
    options = {"output": "int4", "clip": (-8, 7), "requant": "fixed"}
    add(make_plan, **one, config=config, arch="sm_80", **options)
    add(kernel.build, **one, config=config, arch="sm_80", **options)
    add(kernel.compile, **one, arch="sm_80", family="mma", **options)
    add(kernel.Chain, kernels=[built], weights=[w], requants=[requant])
    add(layers.run, "Chain.run", x=x, device="emulator")
    add(
        kernel.conv2d,
        x=x,
        w=w,
        requant=requant,
        pad=1,
        stride=1,
        dilation=1,
        device="emulator",
        arch="sm_80",
        config=config,
    )
    add(built.argument, "Kernel.argument", name="A")
    add(built.for_requantization, "Kernel.for_requantization", requant=requant)
    add(built.pack, "Kernel.pack", x=x, w=w, requant=requant)
    add(built.unpack, "Kernel.unpack", words=np.zeros(built.argument("Out").shape, np.uint32))
    add(built.run, "Kernel.run", x=x, w=w, requant=requant, device="emulator")
    add(built.trace, "Kernel.trace", blocks=(0,), seed=0)
    add(built.time, "Kernel.time", protocol=None, device="emulator", seed=0)
    study = tune.Study(paper, "random", 0)
    add(tune.Study, space=paper, strategy="genetic", seed=0, log=None, resume=False)
    add(study.ask, "Study.ask", n=1)
    add(study.queue, "Study.queue", configs=[config])
    add(study.run, "Study.run", runner=FakeRunner(), trials=1, batch=1, callbacks=(), stop=())
    add(tune.make_strategy, text="random", space=paper, seed=0)
    add(tune.network_layers, network="resnet18@8")
    add(tune.find_landscape, workload=subbyte.workload(RECORDED), arch="sm_90a", kind="paper", fixed={})
    add(tune.tune, workloads=layer, runner="fake", strategy="random", trials=2, seed=0, resume=False, arch="sm_80",
        kind="paper", fixed={}, batch=2, callbacks=(), stop=(), device=0, timeout=1.0, top_k=0)  # fmt: skip
    add(analysis.speed_of_light, workload=RECORDED, device="NVIDIA H200", microseconds=10.0)
    add(analysis.roofline, device="NVIDIA H200")
    add(analysis.studied_workloads, device="NVIDIA H200")
    add(analysis.recorded_workloads, device="NVIDIA H200")
    add(analysis.recorded_ablation, spec=layer.spec, device="NVIDIA H200", family="mma")
    add(analysis.paired_interval, differences=[np.array([0.1, 0.2, 0.3])], level=0.9, seed=0, resamples=10)
    add(analysis.race, workloads=RECORDED, strategies="random", trials=2, seeds=2, workers=1, batch=1, traces=(),
        statistics_seed=0, command="", progress=None)  # fmt: skip
    add(exercises.check_byte, answer=0, **one, place=(0, 0, 0, 0))
    add(exercises.check_chunk, answer=1, **one, config=config)
    add(exercises.check_block, answer=config, **one, pixels=4, filters=32, warps=1, arch="sm_80")
    add(exercises.check_pixels, answer=12, **one, tile=(1, 4))
    add(exercises.check_tiling, answer={"rows": 1}, **one, config=config, arch="sm_80")
    add(exercises.check_grid, answer=1, **one, config=wide)
    add(exercises.check_floors, answer={"moving": 1.0}, **one, terabytes_per_second=4.0, tops=1000.0)
    add(exercises.check_random_trials, answer=3, good=5, total=100, chance=0.9)
    add(exercises.check_rate, answer=1.0, **one, microseconds=2.0)
    add(exercises.check_waves, answer=1, blocks=10, blocks_per_sm=1, multiprocessors=4)
    add(exercises.check_padding, answer=0.1, **one)
    add(exercises.check_sectors, answer={"nhwc": 8}, **one)
    add(exercises.check_datum, answer=(0, 0, 0, 0), **one, row=0, column=0)
    return found
