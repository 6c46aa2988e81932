"""What the papers' kernels do in one launch, in several: one for each pair of planes and one that adds them up, sums
that a second launch compares with thresholds, outputs that a second launch pools, bytes that a first launch packs.

The further launches are plain CUDA texts with the kernel ``second_kernel``. Words are those of the layout ``nhwcnc`` of
planes: 32 channels of one plane of one image a word.
"""

from __future__ import annotations

THREADS = 256
ENTRY = "second_kernel"
_HEAD = 'extern "C" __global__ void __launch_bounds__({threads}) second_kernel({arguments}) {{\n'
_PLACE = f"  int i = ((((int)blockIdx.x) * {THREADS}) + ((int)threadIdx.x));\n"
BLOCK = 128
"""Channels of a block of words."""


def blocks(elements: int) -> int:
    """Blocks of a launch with a thread for each element."""
    return -(-elements // THREADS)


def _text(names: list[str], body: str) -> str:
    arguments = ", ".join(f"unsigned int* __restrict__ {name}_ptr" for name in names)
    return _HEAD.format(threads=THREADS, arguments=arguments) + _PLACE + body + "}\n"


def added_text(factors: list[int], elements: int) -> str:
    """``Out`` = the sum of ``In0``, ``In1`` ... int32 [elements], each times its factor."""
    terms = " + ".join(f"({factor % (1 << 32)}u * In{pair}_ptr[i])" for pair, factor in enumerate(factors))
    names = ["Out", *(f"In{pair}" for pair in range(len(factors)))]
    return _text(names, f"  if (i < {elements}) {{\n    Out_ptr[i] = ({terms});\n  }}\n")


def compared_text(bits: int, channels: int, block: int, elements: int) -> str:
    """``Out``, words of ``bits`` planes, from ``In0``, sums int32 [..., channels / block, 8 images, block], ``Level``
    int32 [2^bits - 1][channels] and ``Flip`` [channels]: how many levels a sum has passed. ``elements`` written."""
    levels, parts = (1 << bits) - 1, -(-channels // BLOCK)
    lines = [
        f"  int lane = (i & 31);\n  int group = (i / {8 * BLOCK});\n  unsigned int rank = 0u;\n",
        f"  int channel = (((group % {parts}) * {BLOCK}) + (i & {BLOCK - 1}));\n",
        f"  int image = ((((group / {parts}) * {channels // block}) + (channel / {block})) * 8) + ((i >> 7) & 7);\n",
        f"  int place = (image * {block}) + (channel % {block});\n",
        f"  if ((i < {elements}) && (channel < {channels})) {{\n",
    ]
    for level in range(levels):
        passed = f"(((int)In0_ptr[place]) >= ((int)Level_ptr[(channel + {level * channels})]) ? 1u : 0u)"
        lines.append(f"    rank = (rank + ({passed} ^ Flip_ptr[channel]));\n")
    lines.append("  }\n")
    for plane in range(bits):
        word = f"word{plane}"
        lines += [f"  unsigned int {word} = (((rank >> {plane}) & 1u) << lane);\n  unsigned int other{plane} = 0u;\n"]
        for by in (1, 2, 4, 8, 16):
            lines += [
                f'  asm volatile("shfl.sync.bfly.b32 %0, %1, {by}, 31, -1;" : "=r"(other{plane}) : "r"({word}));\n',
                f"  {word} = ({word} | other{plane});\n",
            ]
        place = f"((((group * {bits}) + {plane}) * 32) + ((i & 1023) >> 5))"
        lines.append(f"  if ((i < {elements}) && (lane == 0)) {{\n    Out_ptr[{place}] = {word};\n  }}\n")
    return _text(["Out", "In0", "Level", "Flip"], "".join(lines))


def packed_text(depth: int, count: int) -> str:
    """``Out``, ``count`` words of one-bit activations in blocks of 8 rows x 128 bits, from ``In0``, values -1 and 1 as
    bytes [rows, depth], four in a word: a thread for each word, which reads 32 neighbouring bytes."""
    blocks_of_a_row = depth // BLOCK
    lines = [
        f"  int row = ((((i >> 5) / {blocks_of_a_row}) * 8) + ((i >> 2) & 7));\n",
        f"  int first = ((((i >> 5) % {blocks_of_a_row}) * {BLOCK // 4}) + ((i & 3) * 8));\n",
        f"  if (i < {count}) {{\n    unsigned int word = 0u;\n",
    ]
    for four in range(8):
        name = f"in{four}"
        lines.append(f"    unsigned int {name} = (~In0_ptr[(((row * {depth // 4}) + first) + {four})]);\n")
        shifts = ((8 * byte + 7, 4 * four + byte) for byte in range(4))
        lines += [f"    word = (word | ((({name} >> {right}) & 1u) << {left}));\n" for right, left in shifts]
    lines.append("    Out_ptr[i] = word;\n  }\n")
    return _text(["Out", "In0"], "".join(lines))


def xnor_text(rows: int, columns: int, depth: int) -> str:
    """``Out`` int32 [rows, columns], products of values -1 and 1 from their bits ``In0`` [rows, depth / 32] and ``In1``
    [depth / 32, columns]: a thread for each output, exclusive or and popcount of a word after the other."""
    words = depth // 32
    body = (
        f"  if (i < {rows * columns}) {{\n    int left = ((i / {columns}) * {words});\n"
        f"    int right = (i % {columns});\n    int differ = 0;\n"
        f"    for (int k = 0; k < {words}; ++k) {{\n"
        f"      differ = (differ + __popc((In0_ptr[(left + k)] ^ In1_ptr[(right + (k * {columns}))])));\n    }}\n"
        f"    Out_ptr[i] = ((unsigned int)({depth} - (2 * differ)));\n  }}\n"
    )
    return _text(["Out", "In0", "In1"], body)


def pooled_text(rows: int, columns: int, words: int, count: int) -> str:
    """``Out``, the largest of 2 x 2 pixels of one bit each, from ``In0``, [..., rows, columns, words].

    ``count`` words of output."""
    half = columns // 2
    body = (
        f"  if (i < {count}) {{\n    int word = (i % {words});\n    int column = ((i / {words}) % {half});\n"
        f"    int row = (i / {words * half});\n"
        f"    int first = (((((row * 2) * {columns}) + (column * 2)) * {words}) + word);\n"
        f"    Out_ptr[i] = (((In0_ptr[first] | In0_ptr[(first + {words})]) | In0_ptr[(first + {columns * words})]) | "
        f"In0_ptr[(first + {columns * words + words})]);\n  }}\n"
    )
    assert rows % 2 == columns % 2 == 0
    return _text(["Out", "In0"], body)
