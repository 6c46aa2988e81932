"""CUDA texts that do nothing but issue one matrix instruction, again and again, on registers and shared memory.

Every text has the kernel ``atom_kernel(In_ptr, Out_ptr)`` with blocks of 256 threads. ``In_ptr`` holds ``INPUT_WORDS``
random words, the first one the number of loop iterations; each thread stores the sum of its accumulators, so that no
instruction can be eliminated. Operands that are unpacked change in every iteration, so that the unpacking cannot be
hoisted; the others stay the same, so that only the matrix instruction runs.
"""

from __future__ import annotations

THREADS = 256
INPUT_WORDS = 8192
TILE = 8
"""Fragments of B that one iteration of the mma.sync loop multiplies with one fragment of A: independent
accumulators."""
STEPS = 4
"""Multiplications of a warpgroup in one group, each on different operands."""
COLUMNS = 128
"""N of the wgmma that is measured first."""
SLOTS, SLOT_WORDS = 4, 128 * 6
"""Pairs of fragments of a warpgroup in shared memory, and the words of each: 16 bytes of weights and 8 of metadata per
thread."""
_MIX = 2654435761  # a constant with many bits set: multiplied by the iteration number it gives a new random word
_EVEN = "(({0} << 4) & 4042322160u)"
_ODD = "({0} & 4042322160u)"
_ASCENDING = "(({0} & 1431655765u) | 2290649224u)"
"""In each four bits, the first position (of four) is 0 or 1, the second 2 or 3."""
_PARAMETERS = "uint* __restrict__ In_ptr, uint* __restrict__ Out_ptr"
_HEAD = f"""\
#define uint unsigned int
extern "C" __global__ void __launch_bounds__({{threads}}) atom_kernel({_PARAMETERS}) {{{{
  int thread = ((int)threadIdx.x);
  int turns = ((int)In_ptr[0]);
"""
_LOOP = f"""\
  for (int turn = 0; turn < turns; ++turn) {{
    uint step = (((uint)turn) * {_MIX}u);
"""


def _array(name: str, size: int) -> str:
    return f"  alignas(16) uint {name}_ptr[{size}];\n"


def _fill(name: str, size: int, stride: int) -> str:
    place = f"(((thread * {size}) + (i * {stride}) + (((int)blockIdx.x) * 97)) & {INPUT_WORDS - 1})"
    return f"  for (int i = 0; i < {size}; ++i) {{\n    {name}_ptr[i] = In_ptr[{place}];\n  }}\n"


def _zero(size: int) -> str:
    return f"  for (int i = 0; i < {size}; ++i) {{\n    c_ptr[i] = 0u;\n  }}\n"


def _change(name: str, size: int) -> str:
    return "".join(f"    {name}_ptr[{i}] = ({name}_ptr[{i}] ^ step);\n" for i in range(size))


def _finish(sums: int) -> str:
    return (
        f"  uint total = 0u;\n  for (int i = 0; i < {sums}; ++i) {{\n    total = (total + c_ptr[i]);\n  }}\n"
        f"  Out_ptr[((((int)blockIdx.x) * {THREADS}) + thread)] = total;\n}}\n"
    )


def _mma(opcode: str, a: list[str], b: list[str], c: list[str]) -> str:
    names = iter(f"%{i}" for i in range(len(a) + len(b) + len(c)))
    d, left, right = ("{" + ", ".join(next(names) for _ in part) + "}" for part in (c, a, b))
    outputs = ", ".join(f'"+r"({text})' for text in c)
    inputs = ", ".join(f'"r"({text})' for text in [*a, *b])
    return f'    asm volatile("{opcode} {d}, {left}, {right}, {d};" : {outputs} : {inputs});\n'


def warp_text(opcode: str, a: int, b: int, c: int, unpacked: bool = False) -> str:
    """``TILE`` products of ``mma.sync`` in every iteration, all with one fragment of A.

    ``a``, ``b``, ``c``: numbers of operand registers. With ``unpacked``, both operands are packed int4, which two
    instructions multiply after a mask and a shift, in every iteration.
    """
    lines = [_HEAD.format(threads=THREADS), _array("a", a), _array("b", TILE * b), _array("c", TILE * c)]
    lines += [_fill("a", a, 3), _fill("b", TILE * b, 5), _zero(TILE * c), _LOOP]
    lines.append(_change("a", a) if unpacked else "")
    for half in (_EVEN, _ODD) if unpacked else ("{0}",):
        for column in range(TILE):
            left = [half.format(f"a_ptr[{i}]") for i in range(a)]
            right = [half.format(f"b_ptr[{column * b + i}]") for i in range(b)]
            lines.append(_mma(opcode, left, right, [f"c_ptr[{column * c + i}]" for i in range(c)]))
    return "".join([*lines, "  }\n", _finish(TILE * c)])


def _wgmma(opcode: str, left: list[str] | str, right: str, columns: int, metadata: str) -> str:
    sums = columns // 2
    d = "{" + ", ".join(f"%{i}" for i in range(sums)) + "}"
    inputs = [f'"l"({left})'] if isinstance(left, str) else [f'"r"({text})' for text in left]
    names = [f"%{sums + i}" for i in range(len(inputs))]
    inputs.append(f'"l"({right})')
    operands = names[0] if isinstance(left, str) else "{" + ", ".join(names) + "}"
    operands += f", %{sums + len(names)}"
    if metadata:
        inputs.append(f'"r"({metadata})')
        operands += f", %{sums + len(names) + 1}, 0"
    outputs = ", ".join(f'"+r"(c_ptr[{i}])' for i in range(sums))
    return f'    asm volatile("{opcode} {d}, {operands}, 1;" : {outputs} : {", ".join(inputs)});\n'


def _descriptor(name: str, first: str, row_bytes: int = 32) -> str:
    """A descriptor without swizzle: 128 bytes to the next 16 bytes of k, then the next eight rows."""
    fixed = 128 // 16 << 16 | 8 * row_bytes // 16 << 32
    return f"  unsigned long long {name} = (((unsigned long long)(({first}) >> 4)) | {fixed}ull);\n"


def _group(first: int, opcode: str, left: str, columns: int, sparse: bool, wait: int, steps: int = STEPS) -> list[str]:
    """The multiplications of a group, and the wait until at most ``wait`` groups are in flight."""
    lines = ['    asm volatile("wgmma.fence.sync.aligned;" : : : "memory");\n']
    for step in range(first, first + steps):
        operand = f"a{step}" if left == "shared" else [f"a_ptr[{4 * step + i}]" for i in range(4)]
        lines.append(_wgmma(opcode, operand, f"b{step}", columns, f"e_ptr[{step}]" if sparse else ""))
    lines.append('    asm volatile("wgmma.commit_group.sync.aligned;" : : : "memory");\n')
    return [*lines, f'    asm volatile("wgmma.wait_group.sync.aligned {wait};" : : : "memory");\n']


def _fetch(first: int, offset: int, sparse: bool) -> list[str]:
    """The weights of two steps from shared memory: 16 bytes of packed int4 and two words of metadata per thread,
    unpacked."""
    slot = f"(((turn * 2) + {first // 2}) & {SLOTS - 1})"
    own = f"{offset} + ((thread >> 7) * {SLOTS * SLOT_WORDS})"
    place = f"({own} + ({slot} * {SLOT_WORDS}))"
    lines = [f"    *(uint4*)(w_ptr + 0) = *(uint4*)(shared_ptr + ({place} + ((thread & 127) * 4)));\n"]
    if sparse:
        words = f"shared_ptr + ({place} + (512 + ((thread & 127) * 2)))"
        lines.append(f"    *(uint2*)(m_ptr + 0) = *(uint2*)({words});\n")
        lines += [f"    e_ptr[{first + i}] = {_ASCENDING.format(f'm_ptr[{i}]')};\n" for i in range(2)]
    for i in range(8):
        lines.append(f"    a_ptr[{4 * first + i}] = {(_EVEN, _ODD)[i // 4].format(f'w_ptr[{i % 4}]')};\n")
    return lines


def warpgroup_bytes(left: str, columns: int = COLUMNS, sparse: bool = False) -> int:
    """Shared memory of :func:`warpgroup_text` in bytes: B of each step, and for both warpgroups A of each step, or
    their slots."""
    b_bytes = STEPS * columns * (64 if sparse else 32)
    return b_bytes + 2 * (4 * SLOTS * SLOT_WORDS if left == "streamed" else STEPS * 64 * 32)


def warpgroup_text(opcode: str, left: str, columns: int = COLUMNS, sparse: bool = False) -> str:
    """Groups of ``STEPS`` wgmma of N = ``columns`` in every iteration, by each of the two warpgroups of a block.

    ``left`` says where A is: ``shared``; ``registers``; ``unpacked``: packed int4 in registers that two multiplications
    use after a mask and a shift; or ``streamed``: packed int4 in shared memory, loaded and unpacked for every two
    multiplications while the previous two run. ``sparse``: A is 2:4, with random metadata that selects two different
    positions of four in ascending order.
    """
    row_bytes = 64 if sparse else 32
    b_bytes, a_bytes = columns * row_bytes, 64 * 32
    lines = [
        _HEAD.format(threads=f"{THREADS}, 1"),
        "  extern __shared__ __align__(1024) uint shared_ptr[];\n",
        f"  for (int i = thread; i < {warpgroup_bytes(left, columns, sparse) // 4}; i += {THREADS}) {{\n",
        f"    shared_ptr[i] = In_ptr[((i + (((int)blockIdx.x) * 97)) & {INPUT_WORDS - 1})];\n  }}\n",
        '  asm volatile("fence.proxy.async.shared::cta;" : : : "memory");\n  __syncthreads();\n',
        "  uint base = ((uint)__cvta_generic_to_shared(&(shared_ptr[0])));\n",
    ]
    for step in range(STEPS):
        lines.append(_descriptor(f"b{step}", f"base + {step * b_bytes}u", row_bytes))
        own = f"base + {STEPS * b_bytes + step * a_bytes}u + (((uint)(thread >> 7)) * {STEPS * a_bytes}u)"
        lines.append(_descriptor(f"a{step}", own) if left == "shared" else "")
    lines += [_array("c", columns // 2), _zero(columns // 2)]
    if left == "streamed":
        lines += [_array("w", 4), _array("a", 4 * STEPS), *([_array("m", 2), _array("e", STEPS)] if sparse else [])]
    elif sparse:
        lines += [_array("e", STEPS), _fill("e", STEPS, 7)]
        lines += [f"  e_ptr[{i}] = {_ASCENDING.format(f'e_ptr[{i}]')};\n" for i in range(STEPS)]
    lines += [_array("a", 4 * STEPS), _fill("a", 4 * STEPS, 3)] if left == "registers" else []
    lines += [_array("w", 2 * STEPS), _fill("w", 2 * STEPS, 3), _array("a", 4 * STEPS)] if left == "unpacked" else []
    lines.append(_LOOP)
    if left == "unpacked":
        lines.append(_change("w", 2 * STEPS))
        for i in range(4 * STEPS):
            word = f"w_ptr[{i // 8 * 4 + i % 4}]"
            lines.append(f"    a_ptr[{i}] = {(_EVEN, _ODD)[i // 4 % 2].format(word)};\n")
    if left == "streamed":
        for first in range(0, STEPS, 2):
            lines += _fetch(first, STEPS * b_bytes // 4, sparse)
            lines += _group(first, opcode, left, columns, sparse, 1, 2)
    else:
        lines += _group(0, opcode, left, columns, sparse, 0)
    end = '  asm volatile("wgmma.wait_group.sync.aligned 0;" : : : "memory");\n' if left == "streamed" else ""
    return "".join([*lines, "  }\n", end, _finish(columns // 2)])


WARPGROUP_SHARED_BYTES = warpgroup_bytes("shared")
EMPTY_TEXT = 'extern "C" __global__ void __launch_bounds__(32) atom_kernel() {}\n'
