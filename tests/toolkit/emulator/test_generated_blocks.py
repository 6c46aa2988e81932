"""Kernels on weights with blocks of zeros as TVM generates them: exact at every density; faults in lists are found."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from generated import Generated
from numpy.typing import NDArray

from subbyte.emulator import require_clean
from subbyte.families.wgmma.listed import HEAD_WORDS, LISTED_WORDS, ROW_BIT, VALUE_WORDS
from subbyte.kernel import Kernel

KERNELS = {
    "one block": Generated("n8h6w8c64k64r3s3p1:w4a4:signed-blocks50.signed", "wgb-tw8-tr1-cm1-sg1-st4-lp2"),
    "two warpgroups of channels, int32 sums": Generated(
        "n9h7w9c96k200r3s3p1:w4a4:signed-blocks25.signed", "wgb-tw10-tr1-cm2-sg2-st5-lp1", output="int32"
    ),
    "two rows of two segments, skewed": Generated(
        "n8h9w7c64k70r3s3p1:w4a4:signed-blocks40.signed", "wgb-tw8-tr2-cm1-cr2-sg2-st6-sta2-lp3"
    ),
    "stride, lean start, two in flight": Generated(
        "n8h9w9c128k64r3s3p1u2:w4a4:signed-blocks30.signed", "wgb-tw6-tr1-cm1-sg2-st4-if2-ls3-lp3"
    ),
    "groups of images, in turns": Generated(
        "n16h7w7c64k128r3s3p1:w4a4:signed-blocks60.signed", "wgb-tw7-tr1-cm2-sg1-st4-la1-sta1-ig2-lp2"
    ),
    "1x1": Generated("n8h6w6c192k96r1s1p0:w4a4:signed-blocks50.signed", "wgb-tw10-tr1-cm2-sg2-st2-lp2"),
    "nothing live": Generated("n8h6w8c64k64r3s3p1:w4a4:signed-blocks0.signed", "wgb-tw8-tr1-cm1-sg1-st4-lp2"),
    "all live": Generated("n8h6w8c32k64r3s3p1:w4a4:signed-blocks100.signed", "wgb-tw8-tr1-cm1-cr2-sg1-st4-lp2"),
}


@pytest.mark.sample("two rows of two segments, skewed", "nothing live")
@pytest.mark.parametrize("name", KERNELS)
def test_generated_kernels_are_clean_and_exact(name: str) -> None:
    KERNELS[name].require_exact(1)


class Uneven(Generated):
    """Live blocks of the first tile of filters and the last kernel row alone: tiles with all work and with none."""

    def operands(self, kernel: Kernel) -> Any:
        x, w, requant = super().operands(kernel)
        values = np.random.default_rng(5).integers(-8, 8, w.shape, np.int8)
        mask = np.zeros(w.shape, bool)
        mask[:64, 2] = True
        return x, np.where(mask, values, np.int8(0)), requant


@pytest.mark.deep
def test_lists_of_any_lengths_and_kernel_rows_are_exact() -> None:
    kernel = Uneven("n8h4w8c64k128r3s3p1:w4a4:signed-blocks25.signed", "wgb-tw8-tr1-cm2-sg1-st4-sta1-lp2")
    kernel.require_exact(1)


def _lists(words: NDArray[np.uint32]) -> NDArray[np.uint32]:
    """The fragments of the one tile, to change in place."""
    return words[HEAD_WORDS:].reshape(-1, LISTED_WORDS)


def _shifted(words: NDArray[np.uint32]) -> None:
    places = _lists(words)[:, VALUE_WORDS : VALUE_WORDS + 2]
    places[...] = np.roll(places.reshape(-1), 1).reshape(places.shape)


def _dropped(words: NDArray[np.uint32]) -> None:
    words[4] -= 4  # all live blocks: a loop body fewer


def _swapped(words: NDArray[np.uint32]) -> None:
    values = _lists(words)[:, :VALUE_WORDS]
    values[[0, 1]] = values[[1, 0]]


def _outside(words: NDArray[np.uint32]) -> None:
    _lists(words)[0, VALUE_WORDS] += np.uint32(2 << ROW_BIT)  # two kernel rows further


FAULTS: dict[str, Callable[[NDArray[np.uint32]], None]] = {
    "the list shifted by one": _shifted, "live blocks dropped": _dropped, "fragments of other steps": _swapped,
    "another kernel row": _outside,
}  # fmt: skip


@pytest.mark.sample("the list shifted by one", "live blocks dropped")
@pytest.mark.parametrize("name", FAULTS)
def test_planted_faults_are_found(name: str) -> None:
    class Faulty(Generated):
        def buffers(self, kernel: Kernel, operands: Any) -> dict[str, NDArray[Any]]:
            found = super().buffers(kernel, operands)
            FAULTS[name](found["Wt"])
            return found

    right = KERNELS["one block"]
    run, wrong, _ = Faulty(right.plan.workload, "wgb-tw8-tr1-cm1-sg1-st4-lp2").run(0)
    assert wrong > 100
    if name != "another kernel row":  # which may not have arrived yet
        require_clean(run)  # it is the answer alone that says so


@pytest.mark.deep
def test_rows_outside_the_image_are_not_read() -> None:
    kernel = KERNELS["one block"]
    text = kernel.text.replace("(uint)16777215", "(uint)33554431")  # a place's kernel row gets into its distance
    assert text != kernel.text
    assert kernel.run(0, text)[1] > 100 or kernel.run(0, text)[0].findings


@pytest.mark.deep
def test_machine_code_multiplies_pairs_and_needs_no_local_memory() -> None:
    kernel = Kernel(KERNELS["one block"].plan)
    found = {opcode: count for opcode, count in kernel.instructions.items() if "IGMMA" in opcode}
    assert set(found) == {"IGMMA.64x64x32.S8.S8"}
    # two pairs in each of two loop bodies, inside the image and at its edge, whose first turn may be written out
    assert sum(found.values()) in (8, 12, 16)
    assert not any(opcode.startswith(("LDL", "STL", "IMMA")) for opcode in kernel.instructions)
    assert kernel.resources.local_bytes == 0
