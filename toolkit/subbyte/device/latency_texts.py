"""CUDA texts of one warp that moves a tile repeatedly, and of groups of one-bit products, with the clock read before
and after (TCBNN, arXiv 2006.16578, measures loads, stores and instructions like this).

Every text has the kernel ``timed_kernel(In_ptr, Out_ptr)``. ``In_ptr`` holds the number of loop iterations, a distance
in words, six zeros, and then data. ``Out_ptr`` receives the clocks of each warpgroup, start and end, then one word per
thread, so that nothing can be eliminated.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

HEAD_WORDS = 8
"""Words of ``In_ptr`` before the data, and of ``Out_ptr`` before the threads' words: clocks of up to four
warpgroups."""
TILE_ROWS = 8
FARTHEST = 1024
"""Most words from one row of a tile to the next."""
TILE_WORDS = TILE_ROWS * FARTHEST
"""Words that a tile can span."""
SPACES = ("shared", "L1", "L2")
"""Where a tile is: in shared memory, or in global memory, read through the L1 or bypassing it."""
_LOADS = {"shared": "ld.shared.u32", "L1": "ld.global.ca.u32", "L2": "ld.global.cg.u32"}
_STORES = {"shared": "st.shared.v2.u32", "L2": "st.global.v2.u32"}
STORED = tuple(_STORES)
"""Where tiles of sums are stored; a store to global memory bypasses the L1."""
GROUP = 8
"""Most instructions in a group."""
WARP_SHAPES = ("m8n8k128", "m16n8k256")
WARPGROUP_COLUMNS = (8, 32)
"""With more columns, eight sets of accumulators do not fit into the registers."""
_CLOCK = '  asm volatile("mov.u32 %0, %%clock;" : "=r"({0}) : : "memory");\n'
_START, _STOP = _CLOCK.format("start"), _CLOCK.format("stop")
_TURNS = "  for (int turn = 0; turn < turns; ++turn) {\n"
_HEAD = """\
#define uint unsigned int
extern "C" __global__ void __launch_bounds__({threads}) timed_kernel(uint* In_ptr, uint* Out_ptr) {{
  int thread = ((int)threadIdx.x);
  int turns = ((int)In_ptr[0]);
  uint start = 0u;
  uint stop = 0u;
"""


def load_text(space: str) -> str:
    """A warp loads 8 rows of 4 words, one word per lane: lane 4 g + t has word t of row g, as in a fragment of b1.

    The next address is the same plus the word just read, masked with a zero from ``In_ptr``: each load depends on the
    previous one. A thread's word in ``Out_ptr`` is the sum of what it read.
    """
    shared = space == "shared"
    address = "base + (((uint)place) * 4u)" if shared else "(unsigned long long)(&(In_ptr[place]))"
    kind, letter = ("uint", "r") if shared else ("unsigned long long", "l")
    load = f'  asm volatile("{_LOADS[space]} %0, [%1];" : "=r"(word) : "{letter}"(address) : "memory");\n'
    follow = f"  address = (address + (({kind})(word & zero)));\n"
    place = f"(((thread >> 2) * ((int)In_ptr[1])) + (thread & 3){'' if shared else f' + {HEAD_WORDS}'})"
    return "".join([
        _HEAD.format(threads=32), _staged(space),
        f"  int place = {place};\n  {kind} address = {address};\n",
        "  uint zero = In_ptr[2];\n  uint total = 0u;\n  uint word = 0u;\n", load, follow, "  __syncthreads();\n",
        _START, _TURNS, load, follow, "  total = (total + word);\n  }\n", _STOP, _finish(32),
    ])  # fmt: skip


def store_text(space: str) -> str:
    """A warp stores 8 rows of 8 sums, two neighbours per lane: lane 4 g + t has columns 2 t and 2 t + 1 of row g.

    Stores are issued as fast as the multiprocessor accepts them; the clock is read once all have completed. The sums of
    iteration i are i + lane. The tile is in ``Out_ptr`` after the threads' words.
    """
    shared = space == "shared"
    first = HEAD_WORDS + 32
    place = f"(((thread >> 2) * ((int)In_ptr[1])) + ((thread & 3) * 2){'' if shared else f' + {first}'})"
    address = f"base + (((uint){place}) * 4u)" if shared else f"(unsigned long long)(&(Out_ptr[{place}]))"
    kind, letter = ("uint", "r") if shared else ("unsigned long long", "l")
    values = f'"{letter}"(address), "r"(total), "r"(total)'
    store = f'  asm volatile("{_STORES[space]} [%0], {{%1, %2}};" : : {values} : "memory");\n'
    arrived = "  __syncthreads();\n" if shared else "  __threadfence();\n"
    copied = (
        f"  for (int i = thread; i < {TILE_WORDS}; i += 32) {{\n    Out_ptr[(i + {first})] = shared_ptr[i];\n  }}\n"
        if shared else ""
    )  # fmt: skip
    return "".join([
        _HEAD.format(threads=32), _staged(space),
        f"  {kind} address = {address};\n  uint total = 0u;\n  __syncthreads();\n",
        _START, _TURNS, "  total = ((uint)(turn + thread));\n", store, "  }\n", arrived, _STOP, arrived, copied,
        _finish(32),
    ])  # fmt: skip


def warp_chain_text(shape: str, count: int, dependent: bool) -> str:
    """Groups of ``count`` one-bit ``mma.sync`` (``m8n8k128`` or ``m16n8k256``) of one warp: all into the same
    accumulators (``dependent``), or each into its own."""
    a, b, c = dict(zip(WARP_SHAPES, ((1, 1, 2), (4, 2, 4)), strict=True))[shape]
    opcode = f"mma.sync.aligned.{shape}.row.col.s32.b1.b1.s32.and.popc"
    sets = 1 if dependent else count
    d, left, right = (
        "{" + ", ".join(f"%{first + i}" for i in range(size)) + "}" for first, size in ((0, c), (c, a), (c + a, b))
    )
    lines = [_HEAD.format(threads=32), _registers("a", a), _registers("b", b), _zeros(sets * c),
             "  __syncthreads();\n", _START, _TURNS]  # fmt: skip
    for one in range(count):
        first = 0 if dependent else one * c
        outputs = ", ".join(f'"+r"(c_ptr[{first + i}])' for i in range(c))
        inputs = ", ".join([f'"r"(a_ptr[{i}])' for i in range(a)] + [f'"r"(b_ptr[{i}])' for i in range(b)])
        lines.append(f'    asm volatile("{opcode} {d}, {left}, {right}, {d};" : {outputs} : {inputs});\n')
    lines += ["  }\n", "  uint total = 0u;\n", _total(sets * c), _STOP, _finish(32)]
    return "".join(lines)


def warpgroup_chain_text(n: int, count: int, dependent: bool, in_shared: bool = False, warpgroups: int = 1) -> str:
    """Groups of ``count`` one-bit ``wgmma`` of ``n`` columns, with a wait for each group; B (with ``in_shared`` also A)
    is in shared memory. ``warpgroups`` warpgroups do this concurrently."""
    sets, sums = 1 if dependent else count, n // 2
    opcode = f"wgmma.mma_async.sync.aligned.m64n{n}k256.s32.b1.b1.and.popc"
    words = chain_bytes(n) // 4
    fixed = 128 // 16 << 16 | 256 // 16 << 32
    threads = 128 * warpgroups
    lines = [
        _HEAD.format(threads=f"{threads}, 1"), "  extern __shared__ __align__(1024) uint shared_ptr[];\n",
        _copied(words, threads),
        '  asm volatile("fence.proxy.async.shared::cta;" : : : "memory");\n  __syncthreads();\n',
        "  uint base = ((uint)__cvta_generic_to_shared(&(shared_ptr[0])));\n",
        f"  unsigned long long b = (((unsigned long long)(base >> 4)) | {fixed}ull);\n",
        f"  unsigned long long left = (((unsigned long long)((base + {n * 32}u) >> 4)) | {fixed}ull);\n",
        _registers("a", 4), _zeros(sets * sums), "  __syncthreads();\n", _START,
        _TURNS,
        '    asm volatile("wgmma.fence.sync.aligned;" : : : "memory");\n',
    ]  # fmt: skip
    d = "{" + ", ".join(f"%{i}" for i in range(sums)) + "}"
    for one in range(count):
        first = 0 if dependent else one * sums
        outputs = ", ".join(f'"+r"(c_ptr[{first + i}])' for i in range(sums))
        if in_shared:
            operands, inputs = f"%{sums}, %{sums + 1}", '"l"(left), "l"(b)'
        else:
            registers = ", ".join(f"%{sums + i}" for i in range(4))
            operands = f"{{{registers}}}, %{sums + 4}"
            inputs = ", ".join([*(f'"r"(a_ptr[{i}])' for i in range(4)), '"l"(b)'])
        lines.append(f'    asm volatile("{opcode} {d}, {operands}, 1;" : {outputs} : {inputs});\n')
    lines += [
        '    asm volatile("wgmma.commit_group.sync.aligned;" : : : "memory");\n',
        '    asm volatile("wgmma.wait_group.sync.aligned 0;" : : : "memory");\n  }\n',
        _STOP, "  uint total = 0u;\n", _total(sets * sums), _finish(threads),
    ]  # fmt: skip
    return "".join(lines)


@dataclass(frozen=True)
class Chain:
    """A group of ``count`` one-bit products, and the program that times it."""

    instruction: str
    dependent: bool
    """All products accumulate into the same registers; otherwise each into its own."""
    count: int
    text: str
    threads: int
    shared_bytes: int


def chains(arch: str) -> Iterator[Chain]:
    """Groups of 1 to :data:`GROUP` products for each of an architecture's one-bit instructions that use ``and``."""
    for shape in WARP_SHAPES if arch != "sm_75" else ():
        for dependent in (True, False):
            for count in range(1, GROUP + 1):
                text = warp_chain_text(shape, count, dependent)
                yield Chain(f"mma.sync.{shape}", dependent, count, text, 32, 0)
    for n in WARPGROUP_COLUMNS if arch == "sm_90a" else ():
        for dependent in (True, False):
            for count in range(1, GROUP + 1):
                text = warpgroup_chain_text(n, count, dependent)
                yield Chain(f"wgmma.m64n{n}k256", dependent, count, text, 128, chain_bytes(n))


def chain_bytes(n: int) -> int:
    """Shared memory of :func:`warpgroup_chain_text` in bytes."""
    return (n + 64) * 32


def _staged(space: str) -> str:
    """Code that copies the data to shared memory, if the tile is there."""
    if space != "shared":
        return ""
    return (
        "  extern __shared__ __align__(1024) uint shared_ptr[];\n"
        + _copied(TILE_WORDS, 32)
        + "  __syncthreads();\n  uint base = ((uint)__cvta_generic_to_shared(&(shared_ptr[0])));\n"
    )


def _copied(words: int, threads: int) -> str:
    data = f"shared_ptr[i] = In_ptr[(i + {HEAD_WORDS})]"
    return f"  for (int i = thread; i < {words}; i += {threads}) {{\n    {data};\n  }}\n"


def _registers(name: str, size: int) -> str:
    place = f"(({HEAD_WORDS} + (thread * {size}) + i) & 1023)"
    return (
        f"  alignas(16) uint {name}_ptr[{size}];\n  for (int i = 0; i < {size}; ++i) {{\n"
        f"    {name}_ptr[i] = In_ptr[{place}];\n  }}\n"
    )


def _zeros(size: int) -> str:
    return f"  alignas(16) uint c_ptr[{size}];\n  for (int i = 0; i < {size}; ++i) {{\n    c_ptr[i] = 0u;\n  }}\n"


def _total(size: int) -> str:
    return f"  for (int i = 0; i < {size}; ++i) {{\n    total = (total + c_ptr[i]);\n  }}\n"


def _finish(threads: int) -> str:
    return (
        f"  Out_ptr[(thread + {HEAD_WORDS})] = total;\n"
        "  if ((thread & 127) == 0) {\n    Out_ptr[((thread >> 7) * 2)] = start;\n"
        "    Out_ptr[(((thread >> 7) * 2) + 1)] = stop;\n  }\n}\n"
    )
