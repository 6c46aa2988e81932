"""Configuration dictionaries and keys of both families: right ones come back, wrong ones are named."""

from __future__ import annotations

import random
from collections.abc import Callable, Iterator
from functools import partial
from typing import Any

from hostile.corpus import corpus
from hostile.harness import Case

WRONG_KNOBS: tuple[Any, ...] = (
    -1, 10**400, 1.0, 2.5, float("nan"), None, True, "two", "1.5", "", "1_0", "٣", "9" * 5000, b"1", [1], {"a": 1},
)  # fmt: skip
WRONG_TEXTS: tuple[Any, ...] = (None, 5, b"full", "fulll", "", "x" * 200_000, ["full"], True)
WRONG_KEYS: tuple[Any, ...] = (
    None,
    5,
    b"wg-tw28",
    [],
    {},
    object(),
    "",
    "-",
    "wg-",
    "brw",
    "brw1-brw2",
    "wg-tw28-tw28",
)
PARTS = (
    "brw1",
    "ch2",
    "dup.none",
    "nhwc",
    "s8.m16n8k32",
    "tw28",
    "ri9",
    "zz1",
    "-",
    "--",
    "wg-",
    "9",
    "ri٣",
    "ri-1",
    "\0",
    "é",
)


def cases(rng: random.Random) -> Iterator[Case]:
    """About 13,500 cases."""
    from subbyte.families.mma.config import MmaConfig
    from subbyte.families.registry import config_from_dict, config_from_key
    from subbyte.families.wgmma.former import RetiredConfig
    from subbyte.families.wgmma.pipeline.config import PipelineConfig
    from subbyte.families.wgmma.single.config import SingleTileConfig

    kinds = (MmaConfig, PipelineConfig, SingleTileConfig)
    for entry in corpus("configurations"):
        made: Callable[..., object] = config_from_key if "key" in entry else config_from_dict
        given = entry.get("key", entry.get("values"))
        yield Case(f"{made.__name__}({given!r})", partial(made, given), entry["must"])
    for _ in range(5_000):
        kind = rng.choice(kinds)
        usual = kind().to_dict()
        values = {name: _right(rng, kind, name) for name in rng.sample(sorted(usual), rng.randint(0, 6))}
        said = {_spelled(rng, name): _as_text(rng, value) for name, value in values.items()}
        right = partial(_same_fields, {**usual, **values})
        yield Case(f"{kind.__name__}.from_dict({said})", partial(kind.from_dict, said), "answer", right, seconds=1.0)
    for _ in range(4_000):
        kind = rng.choice(kinds)
        name = rng.choice(sorted(kind().to_dict()))
        wrong = _wrong(rng, kind, name)
        direct = rng.random() < 0.5
        must = "either" if _means_something(kind, name, wrong, direct) else "refuse"
        call = partial(kind, **{name: wrong}) if direct else partial(kind.from_dict, {name: wrong})
        yield Case(f"{kind.__name__} {name}={_short(wrong)} {direct}", call, must, seconds=1.0)
    for _ in range(500):
        bad: Any = rng.choice(
            (None, 5, "x", [("chunk", 1)], {5: 1}, {"chunk": 1, "CHUNK": 2}, {"chunck": 1}, {None: 1}, {"": 1})
        )
        kind = rng.choice(kinds)
        yield Case(f"{kind.__name__}.from_dict({bad!r})", partial(kind.from_dict, bad), "refuse", seconds=1.0)
    for _ in range(2_000):
        kind = rng.choice(kinds)
        usual = kind().to_dict()
        config = kind.from_dict({n: _right(rng, kind, n) for n in rng.sample(sorted(usual), rng.randint(0, 8))})
        key = rng.choice((config.key, config.key.upper(), f" {config.key} "))
        yield Case(f"from_key({key!r})", partial(config_from_key, key), "answer", partial(_equals, config), seconds=1.0)
    for _ in range(2_000):
        text: Any = (
            rng.choice(WRONG_KEYS) if rng.random() < 0.2 else _damaged(rng, rng.choice((*kinds, RetiredConfig))().key)
        )
        must = "refuse" if not isinstance(text, str) else "either"
        yield Case(f"from_key({_short(text)})", partial(config_from_key, text), must, seconds=1.0)


def _right(rng: random.Random, kind: Any, name: str) -> Any:
    from subbyte.families.mma.config import ATOMS, DUPLICATE_AWARE, LAYOUTS
    from subbyte.families.wgmma.config import SWITCH_VALUES

    usual = kind().to_dict()[name]
    if name == "duplicate_aware":
        return rng.choice(DUPLICATE_AWARE if kind.__name__ == "MmaConfig" else SWITCH_VALUES[name])
    if name in ("layout", "atom"):
        return rng.choice(LAYOUTS if name == "layout" else ATOMS)
    if isinstance(usual, bool):
        return rng.random() < 0.5
    return (
        rng.choice((0, 1))
        if usual == 0 or name in ("reorder_inner", "row_reuse", "dependent_launch", "stagger")
        else rng.choice((1, 2, 28))
    )


def _spelled(rng: random.Random, name: str) -> str:
    return rng.choice((name, name.upper(), name.replace("_", "-")))


def _as_text(rng: random.Random, value: Any) -> Any:
    if isinstance(value, bool):
        return rng.choice((value, str(value), "on" if value else "off"))
    return rng.choice((value, str(value).upper() if isinstance(value, str) else str(value)))


def _wrong(rng: random.Random, kind: Any, name: str) -> Any:
    usual = kind().to_dict()[name]
    return rng.choice(WRONG_KNOBS if isinstance(usual, int) and not isinstance(usual, bool) else WRONG_TEXTS)


def _means_something(kind: Any, name: str, wrong: Any, direct: bool) -> bool:
    usual = kind().to_dict()[name]
    if isinstance(usual, bool):
        return wrong is True
    return isinstance(wrong, int) and not isinstance(wrong, bool) and 0 < wrong <= 2**12


def _damaged(rng: random.Random, key: str) -> str:
    parts = key.split("-")
    for _ in range(rng.randint(1, 3)):
        place = rng.randrange(len(parts))
        parts[place : place + rng.randrange(2)] = [rng.choice((*PARTS, parts[place] + "9" * 30, parts[place] * 2000))]
    return "-".join(parts)


def _short(value: Any) -> str:
    return f"10**400 ({value.bit_length()} bits)" if isinstance(value, int) and value > 10**100 else f"{value!r:.80}"


def _same_fields(wanted: dict[str, Any], found: Any) -> bool:
    return bool(found.to_dict() == wanted)


def _equals(wanted: Any, found: Any) -> bool:
    return bool(found == wanted)
