"""Exported headers of many kernels and names: each compiles as C99 and as C++17 without a warning."""

from __future__ import annotations

import random
import shutil
import subprocess
import tempfile
from collections.abc import Callable, Iterator
from pathlib import Path

from hostile import samples
from hostile.areas.hostile_names import corpus
from hostile.harness import Case
from subbyte.device.arch import arch
from subbyte.errors import MissingDependency, SubbyteError
from subbyte.families.mma.config import MmaConfig
from subbyte.families.mma.plan import Plan, plan
from subbyte.families.wgmma.check import why_not
from subbyte.families.wgmma.pipeline.config import PipelineConfig
from subbyte.families.wgmma.plan import WgmmaPlan
from subbyte.kernel.export import header, stem_of

AnyPlan = Plan | WgmmaPlan
STUB = Path(__file__).resolve().parents[3] / "tests" / "toolkit" / "kernel" / "stub_driver"
STRICT = ("-Wall", "-Wextra", "-Werror", "-pedantic", "-Wconversion", "-Wsign-conversion", "-Wshadow", "-fsyntax-only")
LANGUAGES = {"c99": ("gcc", "-x", "c", "-std=c99"), "c++17": ("g++", "-x", "c++", "-std=c++17")}
C_NAMES = (
    "*/ int evil; /*", "/* /* /*", "**//", "??/", "??/\n*/", "//", "\\", "a\\\nb", "@stem@", "@NAME@@cubin@", "%s%n",
    "int", "9to5", "_", "#define x", '"', "\x00\x01\x1b[2J", "\u202e\u2066*/", "\u00e9\u00e8 \u540d\u524d", "a" * 300,
    "\u2028*/", "//@ end",
)  # fmt: skip
"""Names that mean something in a C file."""
CUBIN = bytes(range(256))
ARCHS = ("sm_75", "sm_80", "sm_86", "sm_89", "sm_90a")
WARP, WARPGROUP = 24, 12
"""Plans of each family; each is compiled in both languages."""


def cases(rng: random.Random) -> Iterator[Case]:
    """Plans of both families first, then hostile names."""
    for made in (*_plans(rng, WARP, _warp), *_plans(rng, WARPGROUP, _warpgroup)):
        for language in LANGUAGES:
            yield _case(f"{made.workload.spec} {made.config.key} {made.arch.name} {made.output}", made, language)
    for number, name in enumerate((*C_NAMES, *corpus())):
        language = list(LANGUAGES)[number % 2]
        yield _case(f"name {name!r:.60}", _named(name), language)


def _named(name: str) -> Plan:
    made = plan(samples.named(name), MmaConfig(1, 1, 1, 1), "sm_80")
    assert isinstance(made, Plan)
    return made


def _plans(rng: random.Random, count: int, make: Callable[[random.Random], AnyPlan | None]) -> Iterator[AnyPlan]:
    """``count`` plans that can be built."""
    while count:
        made = make(rng)
        if made is not None:
            count -= 1
            yield made


def _spec(rng: random.Random, channels: tuple[int, ...]) -> str:
    r = rng.choice((1, 1, 2, 3, 3, 5))
    n, h, w = rng.randint(1, 17), rng.randint(r, 9), rng.randint(r, 9)
    c, k = rng.choice(channels), rng.choice(channels)
    stride, dilation = rng.choice((1, 1, 2)), rng.choice((1, 1, 1, 2))
    return f"n{n}h{h}w{w}c{c}k{k}r{r}s{r}p{r // 2 * dilation}u{stride}d{dilation}"


def _options(rng: random.Random) -> dict[str, object]:
    if rng.random() < 0.25:
        return {"output": "int32"}
    clip = rng.choice(((-8, 7), (-8, 7), (0, 7), (-7, 7), (3, 3)))
    return {"clip": clip, "requant": rng.choice(("fixed", "fixed", "general"))}


def _warp(rng: random.Random) -> Plan | None:
    layout, columns = rng.choice(("nhwcnc", "nhwc")), rng.choice((1, 2, 4, 8))
    config = MmaConfig(1, 1, rng.choice((1, 2)), columns, layout=layout)
    spec, target, options = _spec(rng, (5, 8, 20, 32, 40, 64, 65)), rng.choice(ARCHS), _options(rng)
    try:
        made = plan(samples.named("", spec), config, target, **options)  # type: ignore[arg-type]
    except SubbyteError:
        return None
    return made if isinstance(made, Plan) else None


def _warpgroup(rng: random.Random) -> WgmmaPlan | None:
    knobs = {"tile_width": rng.choice((6, 8)), "stages": rng.choice((3, 4, 5, 6)),
             "load_ahead": rng.choice((1, 2)), "layout": rng.choice(("nhwcnc", "nhwc"))}  # fmt: skip
    clip, output = rng.choice(((-8, 7), (0, 7))), rng.choice(("int4", "int4", "int32"))
    try:
        config = PipelineConfig(stagger=0).with_values(knobs)
        workload = samples.named("", _spec(rng, (32, 40, 64, 128, 192)))
        made = WgmmaPlan(workload, config, arch("sm_90a"), output, clip, rng.choice(("fixed", "general")))
        return None if why_not(made) else made
    except SubbyteError:
        return None


def _case(text: str, made: AnyPlan, language: str) -> Case:
    return Case(f"{text} as {language}", lambda: _compiled(made, language), "answer", lambda errors: errors == "")


def _compiled(made: AnyPlan, language: str) -> str:
    """What the compiler says about a file with the header; empty when it has no complaint."""
    compiler, *flags = LANGUAGES[language]
    if not shutil.which(compiler):
        raise MissingDependency(f"no {compiler} to compile the header with")
    with tempfile.TemporaryDirectory() as folder:
        stem = stem_of(made)
        (Path(folder) / f"{stem}.h").write_text(header(made, CUBIN), encoding="utf-8")
        source = f'#include "{stem}.h"\nint main(void) {{ return {stem.upper()}_OK; }}\n'
        command = [compiler, *flags, *STRICT, "-Wno-unused-function", f"-I{STUB}", f"-I{folder}", "-"]
        return subprocess.run(command, input=source, capture_output=True, text=True, check=False).stderr
