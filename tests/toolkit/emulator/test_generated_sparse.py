"""Kernels on 2:4 weights as TVM generates them: clean and exact beside the dense reference of the pruned weights, and
faults in them are found."""

from __future__ import annotations

import re

import numpy as np
import pytest
from generated import Generated

from subbyte.errors import InvalidInput, Unsupported
from subbyte.families.wgmma.sparse.weights import prepare_sparse_weights
from subbyte.kernel import Kernel

WEIGHTS = "w4a4:signed-2of4.signed"
KERNELS = {
    "one block": Generated(f"n8h6w8c64k64r3s3p1:{WEIGHTS}", "wg24-tw8-tr1-cm1-sg1-st4-res0"),
    "an odd block, int32 sums, weights stay": Generated(
        f"n9h7w9c96k200r3s3p1:{WEIGHTS}", "wg24-tw10-tr1-cm2-sg2-st5-res1", output="int32"
    ),
    "two rows of two segments": Generated(f"n8h9w7c64k70r3s3p1:{WEIGHTS}", "wg24-tw8-tr2-cm1-cr2-sg2-st6-sta2-res1"),
    "groups of channels": Generated(
        f"n16h7w7c256k64r3s3p1:{WEIGHTS}", "wg24-tw7-tr2-cm1-cr2-sg1-cg4-st3-rr3-la1-sta2-ig2-ls1-res0"
    ),
    "all kernel rows ahead": Generated(
        f"n16h7w7c128k64r3s3p1:{WEIGHTS}", "wg24-tw7-tr2-cm1-cr2-sg1-cg2-st3-rr3-la1-sta0-ig2-ls1-res2"
    ),
    "all kernel rows ahead, a stage each": Generated(
        f"n8h6w7c128k64r3s3p1:{WEIGHTS}", "wg24-tw8-tr3-cm1-sg1-cg2-st10-rr0-la1-sta0-res2"
    ),
    "three consumers": Generated(f"n8h7w14c64k64r3s3p1:{WEIGHTS}", "wg24-tw14-tr1-cm1-cr3-sg1-st6-la1-res1"),
    "stride, lean start": Generated(f"n8h9w9c128k64r3s3p1u2:{WEIGHTS}", "wg24-tw6-tr1-cm1-sg2-st4-if2-ls3-res1"),
    "1x1": Generated(f"n8h6w6c192k96r1s1p0:{WEIGHTS}", "wg24-tw10-tr1-cm2-sg2-st2-res0"),
}


@pytest.mark.sample("an odd block")
@pytest.mark.parametrize("name", KERNELS)
def test_generated_kernels_are_clean_and_exact(name: str) -> None:
    KERNELS[name].require_exact(1)


def _left(text: str) -> str:
    """The registers of A in a kernel's only matrix instruction."""
    found = re.search(r"k64\.s32\.s8\.s8 \{[^}]*\}, \{([^}]*)\}", text)
    assert found
    return found[1]


def _swapped(text: str) -> str:
    a, b, c, d = (one.strip() for one in _left(text).split(","))
    return text.replace(f"{{{_left(text)}}}", f"{{{c}, {d}, {a}, {b}}}")


FAULTS = {
    "metadata of the other row": lambda text: re.sub(r"(_ld_global_nc_b32\(\w+\[\d+\], \(&\(Wt_ptr\[)(.*)(\]\)\)\);)",
                                                     r"\1(\2) ^ (int64_t)1\3", text),
    "metadata of the other half": lambda text: re.sub(r"(_ld_global_nc_b32\(\w+\[\d+\], \(&\(Wt_ptr\[)(.*)(\]\)\)\);)",
                                                      r"\1(\2) ^ (int64_t)2\3", text),
    "halves of k swapped": _swapped,
    "the same half of B": lambda text: text.replace("(uint)524288", "(uint)0"),
    "channels as they are unpacked": lambda text: text.replace("(uint)20800", "(uint)12816").replace(
        "(uint)29538", "(uint)30292"),
}  # fmt: skip


@pytest.mark.sample("metadata of the other row")
@pytest.mark.parametrize("name", FAULTS)
def test_planted_faults_are_found(name: str) -> None:
    kernel = KERNELS["one block"]
    text = FAULTS[name](kernel.text)
    assert text != kernel.text
    assert kernel.run(0, text)[1] > 1000


def test_another_selector_is_found() -> None:
    kernel = KERNELS["one block"]
    assert ", 0, p; }" in kernel.text
    with pytest.raises(Unsupported, match="the selector 0"):
        kernel.run(0, kernel.text.replace(", 0, p; }", ", 1, p; }"))


@pytest.mark.deep
def test_metadata_written_while_it_is_read_is_found() -> None:
    """The reason why it is inverted: what is loaded is not what the instruction reads."""
    kernel = KERNELS["one block"]
    stays = r"_not_b32\(operand_(\d+_)?ptr\[4\], (fetched_ptr\[\d+\])\);"
    text, count = re.subn(stays, r"_not_b32(\2, \2);", kernel.text)
    text = re.sub(r"operand_(\d+_)?ptr\[4\]", "fetched_ptr[2]", text)
    assert count
    run, *_ = kernel.run(0, text)
    assert {"register_in_flight", "bad_wgmma"} & {one.kind for one in run.findings}


def test_three_of_four_are_refused_with_their_index() -> None:
    w = np.zeros((64, 3, 3, 64), np.int8)
    w[5, 1, 2, [8, 9, 11]] = 1
    with pytest.raises(InvalidInput, match=r"w\[5, 1, 2, 8:12\] has 3 values other than 0: expected at most 2 of 4"):
        prepare_sparse_weights(w)


@pytest.mark.deep
def test_machine_code_has_the_sparse_instruction_and_no_local_memory() -> None:
    kernel = Kernel(KERNELS["one block"].plan)
    counts = kernel.instructions
    found = {opcode: count for opcode, count in counts.items() if "IGMMA" in opcode}
    assert set(found) == {"IGMMA.SP.64x64x64.S8.S8"}
    assert sum(found.values()) == 9  # a tap each
    assert not any(opcode.startswith(("LDL", "STL", "IMMA")) for opcode in counts)
    assert kernel.resources.local_bytes == 0
