"""Whatever a reader writes, an exercise answers with a sentence: no traceback, and nothing odd is taken for right."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import subbyte
from subbyte import MmaConfig, PipelineConfig, exercises
from subbyte.exercises import bits, hopper
from subbyte.exercises.feedback import Feedback

LAYER = "n8h56w56c64k64r3s3p1"
MORE: dict[str, tuple[Any, ...]] = {
    "check_byte": (LAYER, (1, 2, 3, 4)),
    "check_chunk": ("n8h56w56c128k128r3s3p1", MmaConfig(2, 2, 4, 4)),
    "check_corner": ("n1h4w4c64k1r3s3p1:w1a1",),
    "check_datum": (LAYER, 5, 60),
    "check_floors": (LAYER, 4.2, 1100.0),
    "check_from_shared": (128,),
    "check_grid": (LAYER, PipelineConfig(segments=56, stages=3)),
    "check_instructions": ("n8h8w8c256k64r3s3p1:w2a2",),
    "check_largest_sum": ("tcbnn.resnet18@8", "stage1.1b"),
    "check_load": (1536,),
    "check_padding": ("n4h14w20c48k40r3s3p1",),
    "check_pixels": (LAYER, (2, 4)),
    "check_price": (subbyte.landscape("resnet50.stage2@8.paper.sm_90a"), "chunk", 1),
    "check_random_trials": (5, 1306),
    "check_rate": (LAYER, 4.5),
    "check_residual": ("tcbnn.resnet18@8", "stage3.1b"),
    "check_sides": (3,),
    "check_core": (2.4,),
    "check_sectors": (LAYER,),
    "check_tap_start": (LAYER, PipelineConfig(segments=4), 3, 1, 1),
    "check_waste": ("resnet50.stage5@8",),
    "check_waves": (1568, 5, 132),
    "check_word": ("n20h3w4c300k64r3s3p1:w1a1",),
}
CHECKS = sorted(name for name in exercises.__all__ if name.startswith("check_"))
ANSWERS: dict[str, Any] = {
    "open": ..., "nothing": None, "text": "x", "not a number": float("nan"), "endless": float("inf"), "negative": -1,
    "list": [1, 2], "array": np.arange(3), "numpy number": np.float32(3.5), "huge": 10**400, "complex": 1j, "dict": {},
    "gives nothing": lambda *_: None, "gives text": lambda *_: "x", "gives a list": lambda *_: [],
    "gives an array": lambda *_: np.arange(3), "takes nothing": lambda: 3, "divides by zero": lambda *_: 1 // 0,
}  # fmt: skip


def check(name: str, answer: Any) -> Feedback:
    """The exercise's feedback on an answer."""
    ask: Callable[..., Feedback] = getattr(exercises, name)
    if name == "check_block":
        return ask(answer, LAYER, pixels=16, filters=32, warps=4)
    if name == "check_tiling":
        return ask(answer, LAYER, MmaConfig(2, 2, 4, 4))
    return ask(answer, *MORE.get(name, ()))


@pytest.mark.parametrize("name", CHECKS)
def test_any_answer_is_answered(name: str) -> None:
    for kind, answer in ANSWERS.items():
        feedback = check(name, answer)
        assert isinstance(feedback, Feedback), kind
        assert not feedback, kind
        assert 10 < len(feedback.message) < 400, kind
        assert "Not yet." in feedback._repr_html_(), kind


@pytest.mark.parametrize(
    ("check", "first"),
    [(bits.check_dot, 12345), (bits.check_threshold, (7, False)), (bits.check_word, 3), (bits.check_combine, 12345),
     (bits.check_threshold, (None, False)), (hopper.check_operands, (1, 2)), (hopper.check_operands, (1 << 40, None))],
)  # fmt: skip
def test_a_function_that_fails_in_a_later_case_gets_an_answer(check: Any, first: Any) -> None:
    asked: list[Any] = []

    def answer(*arguments: Any) -> Any:
        asked.append(arguments)
        if len(asked) > 1:
            raise ValueError("mine")
        return first

    rest = ("n8h4w4c256k32r1s1p0:w1a1",) if check is bits.check_word else ()
    assert "your function raised ValueError: mine" in check(answer, *rest).message
    assert not check(lambda *arguments: first, *rest)
