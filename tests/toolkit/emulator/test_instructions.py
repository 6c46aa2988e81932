"""Each instruction against a numpy statement of what the PTX ISA says about it."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest

from subbyte.device.launch import Argument, Launch
from subbyte.emulator import require_clean, run_cuda
from subbyte.errors import Unsupported

LANES = np.arange(32)
GROUP, IN_GROUP = LANES // 4, LANES % 4


def _kernel(outputs: int, inputs: int, body: str) -> str:
    """A one-warp kernel: ``a`` holds the lane's input words, ``d`` the words it stores."""
    loads = "\n".join(f"  a_ptr[{i}] = A_ptr[((((int)threadIdx.x) * {inputs}) + {i})];" for i in range(inputs))
    stores = "\n".join(f"  Out_ptr[((((int)threadIdx.x) * {outputs}) + {i})] = d_ptr[{i}];" for i in range(outputs))
    return f"""#define uint unsigned int
#define uchar unsigned char
extern "C" __global__ void __launch_bounds__(32) one_warp(uint* __restrict__ A_ptr, uint* __restrict__ Out_ptr) {{
  alignas(64) uint a_ptr[{inputs}];
  alignas(64) uint d_ptr[{outputs}];
  extern __shared__ __align__(128) uint smem_ptr[];
{loads}
{body}
{stores}
}}
"""


def _run(outputs: int, a: np.ndarray, body: str) -> np.ndarray:
    """Run ``body`` on one warp with ``a`` uint32 [32, inputs]; the words each lane stored, uint32 [32, outputs]."""
    out = np.zeros((32, outputs), np.uint32)
    arguments = (Argument("A", "uint32", a.shape, "in"), Argument("Out", "uint32", out.shape, "out"))
    launch = Launch("one_warp", (1, 1, 1), (32, 1, 1), 1024, arguments)
    require_clean(run_cuda(_kernel(outputs, a.shape[1], body), launch, {"A": a, "Out": out}))
    return out


def _words(count: int, seed: int = 0) -> np.ndarray:
    return np.random.default_rng(seed).integers(0, 2**32, (32, count), np.uint32)


def _asm(opcode: str, outputs: int, operands: str, inputs: list[str]) -> str:
    outs = ", ".join(f'"=r"(d_ptr[{i}])' for i in range(outputs))
    ins = ", ".join(f'"r"({text})' for text in inputs)
    return f'  asm volatile("{opcode} {operands};" : {outs} : {ins});'


def _matrix_asm(opcode: str, na: int, nb: int, nc: int) -> str:
    names = iter(f"%{i}" for i in range(2 * nc + na + nb))
    groups = ["{" + ", ".join(next(names) for _ in range(n)) + "}" for n in (nc, na, nb, nc)]
    return _asm(opcode, nc, ", ".join(groups), [f"a_ptr[{i}]" for i in range(na + nb + nc)])


def _fields(words: np.ndarray, bits: int, signed: bool) -> np.ndarray:
    """[..., registers] words -> [..., registers * 32 / bits] values, lowest bits first."""
    values = (words[..., None] >> (np.arange(32 // bits, dtype=np.uint32) * bits)) & ((1 << bits) - 1)
    values = values.astype(np.int64).reshape(*words.shape[:-1], -1)
    return np.where(values >= 1 << (bits - 1), values - (1 << bits), values) if signed else values


# PTX ISA, "Matrix Fragments for mma.m..": (row, column) of element i of A, and row of element i of B.
def _s8_k16(i: int) -> tuple[np.ndarray, np.ndarray]:
    return np.where(i < 4, GROUP, GROUP + 8), IN_GROUP * 4 + (i & 3)


def _s8_k32(i: int) -> tuple[np.ndarray, np.ndarray]:
    high = not (i < 4 or 8 <= i < 12)
    return GROUP + 8 * high, IN_GROUP * 4 + (i & 3) + (0 if i < 8 else 16)


def _s4_k32(i: int) -> tuple[np.ndarray, np.ndarray]:
    return np.where(i < 8, GROUP, GROUP + 8), IN_GROUP * 8 + (i & 7)


def _s4_k64(i: int) -> tuple[np.ndarray, np.ndarray]:
    high = not (i < 8 or 16 <= i < 24)
    return GROUP + 8 * high, IN_GROUP * 8 + (i & 7) + (0 if i < 16 else 32)


def _b1_k128(i: int) -> tuple[np.ndarray, np.ndarray]:
    return np.where(i < 32, GROUP, GROUP + 8), IN_GROUP * 32 + (i & 31)


def _b1_k256(i: int) -> tuple[np.ndarray, np.ndarray]:
    high = not (i < 32 or 64 <= i < 96)
    return GROUP + 8 * high, IN_GROUP * 32 + (i & 31) + (0 if i < 64 else 128)


def _b_s8(i: int) -> np.ndarray:
    return IN_GROUP * 4 + (i & 3) + (0 if i < 4 else 16)


def _b_s4(i: int) -> np.ndarray:
    return IN_GROUP * 8 + (i & 7) + (0 if i < 8 else 32)


def _b_b1(i: int) -> np.ndarray:
    return IN_GROUP * 32 + (i & 31) + (0 if i < 32 else 128)


Place = Callable[[int], tuple[np.ndarray, np.ndarray]]
MATRIX: list[tuple[int, int, str, str, str, Place, Callable[[int], np.ndarray]]] = [
    (8, 16, "s8", "s8", "", _s8_k16, _b_s8),
    (16, 16, "s8", "s8", "", _s8_k16, _b_s8),
    (16, 32, "s8", "s8", "", _s8_k32, _b_s8),
    (16, 32, "u8", "s8", "", _s8_k32, _b_s8),
    (8, 32, "s4", "s4", "", _s4_k32, _b_s4),
    (16, 32, "s4", "s4", "", _s4_k32, _b_s4),
    (16, 32, "u4", "s4", "", _s4_k32, _b_s4),
    (16, 64, "s4", "s4", "", _s4_k64, _b_s4),
    (8, 128, "b1", "b1", ".xor.popc", _b1_k128, _b_b1),
    (16, 128, "b1", "b1", ".and.popc", _b1_k128, _b_b1),
    (16, 256, "b1", "b1", ".xor.popc", _b1_k256, _b_b1),
]


@pytest.mark.parametrize(("m", "k", "a_type", "b_type", "operation", "place_a", "place_b"), MATRIX)
def test_matrix_instruction(
    m: int, k: int, a_type: str, b_type: str, operation: str, place_a: Place, place_b: Callable[[int], np.ndarray]
) -> None:
    bits = int(a_type[1])
    na, nb, nc = m * k * bits // 1024, k * bits // 128, m // 4
    words = _words(na + nb + nc)
    opcode = f"mma.sync.aligned.m{m}n8k{k}.row.col.s32.{a_type}.{b_type}.s32{operation}"
    out = _run(nc, words, _matrix_asm(opcode, na, nb, nc))
    a, b = np.zeros((m, k), np.int64), np.zeros((k, 8), np.int64)
    for i, column in enumerate(_fields(words[:, :na], bits, a_type[0] == "s").T):
        a[place_a(i)] = column
    for i, column in enumerate(_fields(words[:, na : na + nb], bits, b_type[0] == "s").T):
        b[place_b(i), GROUP] = column
    product = (a[:, :, None] ^ b[None]).sum(1) if "xor" in operation else a @ b
    for i in range(nc):
        c = words[:, na + nb + i].view(np.int32).astype(np.int64)
        expected = product[GROUP + 8 * (i // 2), IN_GROUP * 2 + i % 2] + c
        np.testing.assert_array_equal(out[:, i], expected.astype(np.uint32))


@pytest.mark.parametrize(
    ("mode", "by", "control", "source"),
    [
        ("bfly", 5, 0x1F, lambda lane: lane ^ 5),
        ("idx", 37, 0x1F, lambda lane: 5),
        ("idx", 2, 0x181F, lambda lane: (lane & 24) | 2),  # segments of eight lanes
        ("down", 3, 0x1F, lambda lane: lane + 3 if lane + 3 < 32 else lane),
        ("down", 3, 0x101F, lambda lane: lane + 3 if (lane + 3) // 16 == lane // 16 else lane),
        ("up", 9, 0x0, lambda lane: lane - 9 if lane >= 9 else lane),
    ],
)
def test_shuffle(mode: str, by: int, control: int, source: Callable[[int], int]) -> None:
    words = _words(1)
    opcode, inputs = f"shfl.sync.{mode}.b32", ["a_ptr[0]", f"(uint){by}", f"(uint){control}", "(uint)4294967295"]
    out = _run(1, words, _asm(opcode, 1, "%0, %1, %2, %3, %4", inputs))
    np.testing.assert_array_equal(out[:, 0], [words[source(lane), 0] for lane in range(32)])


def test_shuffle_intrinsics() -> None:
    words = _words(1)
    body = "\n".join(
        f"  d_ptr[{i}] = {call};"
        for i, call in enumerate(
            [
                "__shfl_sync((uint)4294967295, a_ptr[0], 6, 32)",
                "__shfl_xor_sync((uint)4294967295, a_ptr[0], 3, 32)",
                "__shfl_down_sync((uint)4294967295, a_ptr[0], 4, 8)",
                "__shfl_up_sync((uint)4294967295, a_ptr[0], 1, 32)",
            ]
        )
    )
    out = _run(4, words, body)
    down = np.where(LANES % 8 < 4, LANES + 4, LANES)
    sources = [np.full(32, 6), LANES ^ 3, down, np.maximum(LANES - 1, 0)]
    np.testing.assert_array_equal(out, np.stack([words[source, 0] for source in sources], 1))


def test_permute_and_pack() -> None:
    words = _words(3)
    words[:, 2] &= 0xFFFF
    small = words[:, 0].view(np.int32) >> 27
    body = (
        '  asm volatile("prmt.b32 %0, %1, %2, %3;" : "=r"(d_ptr[0]) : "r"(a_ptr[0]), "r"(a_ptr[1]), "r"(a_ptr[2]));\n'
        '  asm volatile("cvt.pack.sat.s4.s32.b32 %0, %1, %2, %3;" : "=r"(d_ptr[1])'
        ' : "r"(((int)a_ptr[0]) >> 27), "r"(((int)a_ptr[1])), "r"(a_ptr[2]));'
    )
    out = _run(2, words, body)
    for lane, (low, high, selector) in enumerate(words):
        table = low.tobytes() + high.tobytes()
        result = bytearray()
        for i in range(4):
            choice = int(selector) >> (4 * i) & 15
            byte = table[choice & 7]
            result.append((255 if byte > 127 else 0) if choice & 8 else byte)
        assert out[lane, 0] == int.from_bytes(result, "little")
        a, b = (int(np.clip(v, -8, 7)) & 15 for v in (small[lane], np.int32(words[lane, 1].view(np.int32))))
        assert out[lane, 1] == (int(selector) << 8 | a << 4 | b) % 2**32


def test_the_larger_halves() -> None:
    words = _words(2)
    out = _run(1, words, '  asm volatile("max.s16x2 %0, %1, %2;" : "=r"(d_ptr[0]) : "r"(a_ptr[0]), "r"(a_ptr[1]));')
    halves = np.ascontiguousarray(words).view(np.int16).reshape(32, 2, 2)
    np.testing.assert_array_equal(out[:, 0], np.ascontiguousarray(halves.max(axis=1)).view(np.uint32)[:, 0])


def test_multiply_add_rounds_once_and_keeps_denormal_numbers() -> None:
    places = np.random.default_rng(1).integers(0, 2**23, 32, np.uint32)
    a = np.stack([places + np.uint32(95 << 23), np.full(32, 30 << 23), np.full(32, 5)], 1).astype(np.uint32)
    body = (
        "  float f_;\n"
        '  asm volatile("fma.rn.f32 %0, %1, %2, %3;" : "=f"(f_) : "f"((*(float *)(&(a_ptr[0])))), '
        '"f"((*(float *)(&(a_ptr[1])))), "f"((*(float *)(&(a_ptr[2])))));\n'
        "  d_ptr[0] = (*(uint *)(&(f_)));"
    )
    # 2^-32 (1 + p 2^-23) * 2^-97 in units of 2^-149: 2^20 (1 + p 2^-23), rounded to the nearest, ties to even
    expected = np.rint(2.0**20 + places / 8.0 + 5)
    np.testing.assert_array_equal(_run(1, a, body)[:, 0], expected.astype(np.uint32))


def test_matrix_load_and_transpose() -> None:
    words = _words(4)
    address = "(unsigned int)__cvta_generic_to_shared(&(smem_ptr[(((int)threadIdx.x) * 4)]))"
    body = (
        "  for (int i = 0; i < 4; ++i) {\n    smem_ptr[((((int)threadIdx.x) * 4) + i)] = a_ptr[i];\n  }\n"
        "  __syncwarp();\n"
        '  asm volatile("ldmatrix.sync.aligned.m8n8.x4.shared.b16 {%0, %1, %2, %3}, [%4];" : "=r"(d_ptr[0]), '
        f'"=r"(d_ptr[1]), "=r"(d_ptr[2]), "=r"(d_ptr[3]) : "r"({address}));\n'
        '  asm volatile("ldmatrix.sync.aligned.m8n8.x2.trans.shared.b16 {%0, %1}, [%2];" : "=r"(d_ptr[4]), '
        f'"=r"(d_ptr[5]) : "r"({address}));\n'
        '  asm volatile("movmatrix.sync.aligned.m8n8.trans.b16 %0, %1;" : "=r"(d_ptr[6]) : "r"(d_ptr[0]));'
    )
    out = _run(7, words, body)
    halves = words.view(np.uint16).reshape(4, 8, 8)  # matrix, row, column
    for i in range(4):
        np.testing.assert_array_equal(out[:, i], halves[i].copy().view(np.uint32).reshape(-1))
    for i, register in ((0, 4), (1, 5), (0, 6)):
        np.testing.assert_array_equal(out[:, register], halves[i].T.copy().view(np.uint32).reshape(-1))


def test_copy_widths_and_zero_fill() -> None:
    words = _words(4)
    lines = ["  for (int i = 0; i < 7; ++i) {\n    smem_ptr[((((int)threadIdx.x) * 8) + i)] = (uint)7;\n  }"]
    target = "(unsigned int)__cvta_generic_to_shared(&(smem_ptr[((((int)threadIdx.x) * 8) + {0})]))"
    source = "(&(A_ptr[((((int)threadIdx.x) * 4) + {0})]))"
    for kind, size, valid, to, start in (("cg", 16, 12, 0, 0), ("ca", 8, 0, 4, 2), ("ca", 4, 4, 6, 3)):
        lines.append(
            f'  asm volatile("cp.async.{kind}.shared.global [%0], [%1], {size}, %2;" :: "r"({target.format(to)}), '
            f'"l"({source.format(start)}), "r"({valid}) : "memory");'
        )
    lines.append('  asm volatile("cp.async.wait_all;" ::: "memory");')
    lines += [f"  d_ptr[{i}] = smem_ptr[((((int)threadIdx.x) * 8) + {i})];" for i in range(7)]
    out = _run(7, words, "\n".join(lines))
    zero = np.zeros(32, np.uint32)
    expected = [words[:, 0], words[:, 1], words[:, 2], zero, zero, zero, words[:, 3]]
    np.testing.assert_array_equal(out, np.stack(expected, 1))


def test_predicated_ptx_with_registers() -> None:
    words = _words(4)
    body = (
        '  asm volatile("{ .reg .pred p; .reg .b32 t; setp.lt.s32 p, %4, 7; mov.b32 t, 5; '
        "@p ld.global.v2.u32 {%0, %1}, [%3+8]; @!p mov.u32 %0, t; @!p mov.u32 %1, 9; "
        'shl.b32 %2, %4, 30; }" : "=r"(d_ptr[0]), "=r"(d_ptr[1]), "=r"(d_ptr[2]) '
        ': "l"((&(A_ptr[(((int)threadIdx.x) * 4)]))), "r"(((int)threadIdx.x)) : "memory");'
    )
    out = _run(3, words, body)
    small = LANES < 7
    expected = [np.where(small, words[:, 2], 5), np.where(small, words[:, 3], 9), LANES << 30]
    np.testing.assert_array_equal(out, np.stack(expected, 1).astype(np.uint32))


def test_vector_types_and_long_arithmetic() -> None:
    words = _words(4)
    body = (
        "    uint4 v_ = *(uint4*)(A_ptr + (((int)threadIdx.x) * 4));\n"
        "  int2 __1;\n  alignas(64) int64_t l_ptr[2];\n"
        "  l_ptr[0] = (((int64_t)(*(int *)(&(v_.x)))) * ((int64_t)1431655765));\n"
        "  l_ptr[1] = max(min((l_ptr[0] >> ((int64_t)40)), (int64_t)7), (int64_t)-8);\n"
        "  longlong2 v__1 = *(longlong2*)(l_ptr + 0);\n"
        "  __1.x = (int)(v__1.x);\n  __1.y = (int)(v__1.y);\n"
        "  *(int2*)(d_ptr + 0) = __1;\n"
        "  ((uchar*)smem_ptr)[((int)threadIdx.x)] = ((uchar)(v_.y & (uint)255));\n"
        "  __syncwarp();\n"
        "  d_ptr[2] = ((uint)((uchar*)smem_ptr)[(((int)threadIdx.x) ^ 1)]);\n"
        "  d_ptr[3] = min(A_ptr[(((int)threadIdx.x) * 4)], A_ptr[((((int)threadIdx.x) * 4) + 1)]);"
    )
    out = _run(4, words, body)
    wide = words[:, 0].view(np.int32).astype(np.int64) * 1431655765
    np.testing.assert_array_equal(out[:, 0], wide.astype(np.uint32))
    np.testing.assert_array_equal(out[:, 1].view(np.int32), np.clip(wide >> 40, -8, 7))
    np.testing.assert_array_equal(out[:, 2], words[LANES ^ 1, 1] & 255)
    np.testing.assert_array_equal(out[:, 3], words[:, :2].min(1))


@pytest.mark.parametrize(
    ("body", "name"),
    [
        ('  asm volatile("tanh.approx.f32 %0, %1;" : "=f"(d_ptr[0]) : "f"(a_ptr[0]));', r"tanh\.approx\.f32"),
        ('  asm volatile("mma.sync.aligned.m8n8k4.row.col.f32.f16.f16.f32 %0;" : "=f"(d_ptr[0]));', r"m8n8k4\.row"),
        ("  d_ptr[0] = __vabsdiffu4(a_ptr[0], a_ptr[0]);", "__vabsdiffu4"),
        ("  __shared__ uint table_ptr[4][4];", "__shared__"),
    ],
)  # fmt: skip
def test_unknown_words_are_refused_by_name(body: str, name: str) -> None:
    with pytest.raises(Unsupported, match=name):
        _run(1, _words(1), body)


def test_bits_of_a_word_and_the_largest_of_a_warp() -> None:
    a = _words(1) >> (np.arange(32, dtype=np.uint32)[:, None])
    a[7] = 0
    body = "\n".join([
        _asm("bfind.u32", 1, "%0, %1", ["a_ptr[0]"]),
        '  asm volatile("shl.b32 %0, %1, %2;" : "=r"(d_ptr[1]) : "r"(1u), "r"(d_ptr[0]));',
        '  asm volatile("redux.sync.max.u32 %0, %1, %2;" : "=r"(d_ptr[2]) : "r"(a_ptr[0]), "r"(0xFFFFFFFFu));',
    ])  # fmt: skip
    out = _run(3, a, body)
    for lane, (word,) in enumerate(a):
        highest = int(word).bit_length() - 1
        assert out[lane, 0] == highest % 2**32
        assert out[lane, 1] == (1 << highest if word else 0)
    assert (out[:, 2] == a.max()).all()
