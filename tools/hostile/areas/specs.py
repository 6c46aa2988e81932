"""Texts that name workloads: free specs, names with a batch, networks, and sizes given to ConvWorkload."""

from __future__ import annotations

import random
import re
from collections.abc import Callable, Iterator
from functools import partial

from hostile.corpus import corpus
from hostile.harness import Case

NUMBERS = (
    "0",
    "1",
    "2",
    "3",
    "7",
    "8",
    "17",
    "64",
    "224",
    "999999999",
    "1000000000",
    "-1",
    "1.5",
    "٣",
    "",
    "1e3",
    "0x8",
)
LETTERS = "nhwckrs"


def cases(rng: random.Random) -> Iterator[Case]:
    """About 11,800 cases."""
    from subbyte.workload import LAYERS, NETWORKS, ConvWorkload, workload, workloads

    for entry in corpus("specs"):
        yield Case(f"workload({entry['text']!r})", partial(workload, entry["text"]), entry["must"])
    for _ in range(6_000):
        text, right = _spec(rng)
        must = "either" if right is None else "answer" if right else "refuse"
        judge = _gives_back(text) if right else None
        yield Case(f"workload({text!r})", partial(workload, text), must, judge, seconds=1.0)
    names = [*LAYERS, *NETWORKS]
    for _ in range(2_400):
        text = _damaged(rng, f"{rng.choice(names)}@{rng.choice(NUMBERS)}")
        call: Callable[..., object] = workloads if rng.random() < 0.3 else workload
        yield Case(f"{call.__name__}({text!r})", partial(call, text), seconds=1.0)
    values = (0, -1, 1, 3, 8, 56, 10**9, 10**5000, 1.0, 2.5, "3", None, True, [1], float("nan"))
    for _ in range(1_000):
        sizes = [rng.choice(values[2:6]) for _ in range(10)]
        wrong = rng.random() < 0.7
        if wrong:
            place = rng.randrange(10)
            sizes[place] = rng.choice([v for v in values if v not in (1, 3, 8, 56) or type(v) is not int])
            wrong = not (place == 7 and sizes[place] == 0 and type(sizes[place]) is int)
        yield Case(
            f"ConvWorkload{tuple(map(_short, sizes))}", partial(ConvWorkload, *sizes), "refuse" if wrong else "either"
        )
    for _ in range(2_000):
        name, types = rng.choice(("n1h3w4c5k2r3s3p1", "resnet50.stage2@8", "vgg16@2", "gemm8x9x10")), _types(rng)
        text = f"{name}:{types}"
        call = workloads if name.startswith("vgg") else workload
        judge = None if call is workloads else _reads_back
        yield Case(f"{call.__name__}({text!r})", partial(call, text), right=judge, seconds=1.0)
    for _ in range(400):
        text = _damaged(rng, "gemm" + "x".join(rng.choice(NUMBERS) for _ in range(rng.randint(1, 4))))
        yield Case(f"workload({text!r})", partial(workload, text), right=_reads_back, seconds=1.0)
    for name in (None, 5, b"x", ["a"], object()):
        yield Case(f"ConvWorkload(name={name!r})", partial(ConvWorkload, 1, 4, 4, 8, 8, 1, 1, name=name), "refuse")


def _types(rng: random.Random) -> str:
    """Types of operands, of parts that exist and parts that do not."""
    codes = ("signed", "unsigned", "offset", "bipolar", "offset-z3", "signed-z-1", "signed-2of4", "offset-z1-1of2",
             "float", "z3", "signed-4of2", "unsigned-z99", "-", "")  # fmt: skip
    bits = "".join(letter + rng.choice(("1", "2", "3", "4", "8", *NUMBERS)) for letter in "wao"[: rng.randint(1, 3)])
    parts = [rng.choice((bits, "w1a2", "w4a4", "w3a5"))]
    if rng.random() < 0.7:
        parts.append(".".join(rng.choice(codes) for _ in range(rng.choice((2, 2, 2, 3, 1, 4)))))
    if rng.random() < 0.3:
        parts.append(rng.choice(("zero", "minus", "plus", "one", "")))
    return ":".join(parts)


def _reads_back(found: object) -> bool:
    """The spec of what was understood means the same."""
    from subbyte.workload import ConvWorkload, workload

    return isinstance(found, ConvWorkload) and workload(found.spec) == found


def _short(value: object) -> str:
    return "10**5000" if isinstance(value, int) and value > 10**100 else repr(value)


def _spec(rng: random.Random) -> tuple[str, bool | None]:
    """A spec, and whether it is right: None where that depends on the sizes."""
    sizes = {letter: rng.choice(("1", "2", "3", "5", "8", "17", "64")) for letter in LETTERS}
    sizes |= {
        "r": rng.choice("123"),
        "s": rng.choice("123"),
        "h": rng.choice(("3", "8", "56")),
        "w": rng.choice(("4", "9")),
    }
    text = "".join(letter + number for letter, number in sizes.items())
    for letter, number in (("p", "1"), ("u", "2"), ("d", "1")):
        text += f"{letter}{number}" if rng.random() < 0.5 else ""
    chance = rng.random()
    if chance < 0.3:
        return rng.choice((text, text.upper(), f"  {text}\n")), True
    if chance < 0.6:  # one number is replaced
        found = list(re.finditer(r"\d+", text))
        place = rng.choice(found)
        number = rng.choice(NUMBERS)
        made = text[: place.start()] + number + text[place.end() :]
        plain = re.fullmatch(r"[0-9]{1,9}", number)
        return made, None if plain else False
    return _damaged(rng, text), None


def _damaged(rng: random.Random, text: str) -> str:
    letters = list(text)
    for _ in range(rng.randint(1, 3)):
        place = rng.randrange(len(letters) + 1)
        action = rng.randrange(4)
        if action == 0 and place < len(letters):
            del letters[place]
        elif action == 1:
            letters.insert(place, rng.choice("nhwckrspud0123456789@.-+ \0\n\tü٣＠%{}/\\'\""))
        elif action == 2:
            letters[place:place] = letters[:place]
        else:
            letters.insert(place, rng.choice(("9" * 400, "n8", "@8", "../", "<b>", "\ud800")))
    return "".join(letters)


def _gives_back(text: str) -> Callable[[object], bool]:
    wanted = {letter: int(number) for letter, number in re.findall(r"([a-z])(\d+)", text.lower())}
    wanted = {"p": 0, "u": 1, "d": 1} | wanted

    def right(found: object) -> bool:
        names = {"p": "pad", "u": "stride", "d": "dilation"}
        return all(getattr(found, names.get(letter, letter)) == number for letter, number in wanted.items())

    return right
