"""Instructions by name: each function emits one, on TIRx expressions.

Addresses of shared memory are 32-bit byte addresses.
"""

from __future__ import annotations

from typing import Any

from tvm.script import tirx as T

from subbyte.tirx.emit import registers

FULL_WARP = 0xFFFFFFFF
DESCRIPTOR = 0x000F3FFF
"""The bits used in a descriptor's lower word: 14 of an address, and the 4 of ``low`` in :func:`describe`."""


def emit(call: Any) -> None:
    """Emit a call as a statement."""
    T.evaluate(call)


def load16(target: Any, first: int, pointer: Any, kind: str) -> None:
    """Load four words from global memory; ``kind`` is "weights" (never written during the launch) or "activations"
    (read once)."""
    how = "ld.global.nc.v4.b32" if kind == "weights" else "ld.global.L1::no_allocate.v4.b32"
    emit(T.ptx[how](*[target[first + i] for i in range(4)], pointer))


def store16(pointer: Any, words: list[Any]) -> None:
    """Store four words to global memory."""
    emit(T.ptx["st.global.v4.b32"](pointer, *words))


def store8(pointer: Any, words: list[Any]) -> None:
    """Store two words to global memory."""
    emit(T.ptx["st.global.v2.b32"](pointer, *words))


def store8_streamed(pointer: Any, words: list[Any]) -> None:
    """Store two words to global memory that are not read soon: the first that the L2 gives up."""
    emit(T.ptx["st.global.cs.v2.b32"](pointer, *words))


def load8(target: Any, first: int, pointer: Any, in_place: bool = False) -> None:
    """Load two words from global memory that no launch changes. ``in_place``: the load is not reordered; the assembler
    moves the other kind (read-only) ahead of fences and barriers."""
    how = "ld.global.L1::no_allocate.v2.b32" if in_place else "ld.global.nc.v2.b32"
    emit(T.ptx[how](target[first], target[first + 1], pointer))


def load4(target: Any, place: int, pointer: Any) -> None:
    """Load one word from global memory that no launch changes."""
    emit(T.ptx["ld.global.nc.b32"](target[place], pointer))


def load_word(target: Any, place: int, pointer: Any) -> None:
    """Load one word from global memory that the previous launch may have written; neighbours read it again."""
    emit(T.ptx["ld.global.b32"](target[place], pointer))


def bulk_copy(target: Any, pointer: Any, count: Any, barrier: Any, ranks: Any = None) -> None:
    """Start a copy of ``count`` bytes (a multiple of 16) from global to shared memory that signals a barrier: in this
    block, or at the same address in every block of the cluster whose bit is set in ``ranks``."""
    how = "cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes"
    size = T.uint32(count) if isinstance(count, int) else T.cast(count, "uint32")
    if ranks is None:
        emit(T.ptx[how](target, pointer, size, barrier))
    else:
        emit(T.ptx[how + ".multicast::cluster"](target, pointer, size, barrier, ranks))


def copy16(target: Any, pointer: Any, valid: Any = None) -> None:
    """Start a copy of 16 bytes from global to shared memory that bypasses the L1; only ``valid`` bytes are read, the
    others become 0."""
    emit(T.ptx["cp.async.cg.shared.global"](target, pointer, 16, *([] if valid is None else [valid])))


def copies_commit() -> None:
    """Close the group of copies that this thread started since the last call."""
    emit(T.ptx["cp.async.commit_group"]())


def copies_wait(in_flight: int) -> None:
    """Wait until at most ``in_flight`` of this thread's copy groups are unfinished."""
    emit(T.ptx["cp.async.wait_group"](in_flight))


def prefetch(pointer: Any, count: Any) -> None:
    """Start a prefetch of ``count`` bytes (a multiple of 16) of global memory into the L2 cache."""
    emit(T.ptx["cp.async.bulk.prefetch.L2.global"](pointer, T.cast(count, "uint32")))


def store_shared16(address: Any, words: list[Any]) -> None:
    """Store four words to shared memory."""
    emit(T.ptx["st.shared.v4.b32"](address, *words))


def store_shared4(address: Any, word: Any) -> None:
    """Store one word to shared memory."""
    emit(T.ptx["st.shared.b32"](address, word))


def load_shared16(target: Any, address: Any, first: int = 0) -> None:
    """Load four words from shared memory."""
    emit(T.ptx["ld.shared.v4.b32"](*[target[first + i] for i in range(4)], address))


def store_transposed(address: Any, words: list[Any]) -> None:
    """Transpose one 8 x 8 matrix of 16-bit halves per word (1, 2 or 4), and store its rows: lane 8 i + r gives the
    address of row r of matrix i."""
    emit(T.ptx[f"stmatrix.sync.aligned.m8n8.x{len(words)}.trans.shared.b16"](address, *words))


def store_remote16(address: Any, words: list[Any], barrier: Any) -> None:
    """Store four words to the shared memory of another block of the cluster; their bytes are reported to a barrier
    there."""
    how = "st_async.weak.shared::cluster.mbarrier::complete_tx::bytes.v4.b32"
    emit(T.ptx[how](address, *words, barrier))


def remote_address(target: Any, address: Any, rank: Any) -> None:
    """The address, in the cluster's window, of ``address`` in block ``rank``."""
    emit(T.ptx["mapa.shared::cluster.u32"](target, address, rank))


def async_fence() -> None:
    """Make this thread's writes to shared memory visible to wgmma."""
    emit(T.ptx["fence.proxy.async.shared::cta"]())


def barrier_init(address: Any, arrivals: int) -> None:
    """Initialise a barrier in shared memory."""
    emit(T.ptx["mbarrier.init.shared.b64"](address, T.uint32(arrivals)))


def barrier_init_fence() -> None:
    """Make initialised barriers visible to the block and the cluster."""
    emit(T.ptx["fence.mbarrier_init.release.cluster"]())


def barrier_arrive(address: Any) -> None:
    """Arrive at a barrier in shared memory."""
    emit(T.ptx["mbarrier.arrive.shared.b64"](address))


def barrier_expect(address: Any, count: Any) -> None:
    """Arrive at a barrier whose phase ends only when ``count`` more bytes have been reported to it."""
    emit(T.ptx["mbarrier.arrive.expect_tx.shared.b64"](address, T.cast(count, "uint32")))


def barrier_try_wait(done: Any, address: Any, parity: Any) -> None:
    """Wait a limited time for a barrier's phase; ``done`` says whether it has ended."""
    emit(T.ptx["mbarrier.try_wait.parity.shared.b64"](done, address, parity))


def wgmma_fence() -> None:
    """Order register writes before the wgmma that follow."""
    emit(T.ptx["wgmma.fence.sync.aligned"]())


def wgmma_commit() -> None:
    """Close a group of wgmma."""
    emit(T.ptx["wgmma.commit_group.sync.aligned"]())


def wgmma_wait(in_flight: int) -> None:
    """Wait until at most ``in_flight`` groups are unfinished."""
    emit(T.ptx["wgmma.wait_group.sync.aligned"](in_flight))


def set_registers(count: int, more: bool) -> None:
    """Change how many registers a thread of this warpgroup has."""
    emit(T.ptx[f"setmaxnreg.{'inc' if more else 'dec'}.sync.aligned.u32"](count))


def named_barrier(index: Any, threads: int, wait: bool) -> None:
    """Arrive at a barrier of part of the block, and wait there or not."""
    number = T.uint32(index) if isinstance(index, int) else T.cast(index, "uint32")
    emit(T.ptx["bar.sync" if wait else "bar.arrive"](number, T.uint32(threads)))


def cluster_arrive(release: bool = True) -> None:
    """Arrive at the cluster's barrier; with ``release``, earlier writes become visible to those that wait."""
    emit(T.ptx[f"barrier.cluster.arrive.{'release' if release else 'relaxed'}.aligned"]())


def cluster_wait() -> None:
    """Wait for all threads of the cluster."""
    emit(T.ptx["barrier.cluster.wait.acquire.aligned"]())


def allow_next_launch() -> None:
    """Allow the next launch to start."""
    emit(T.ptx["griddepcontrol.launch_dependents"]())


def wait_for_previous_launch() -> None:
    """Wait until everything that the previous launch wrote is visible."""
    emit(T.ptx["griddepcontrol.wait"]())


def first_lane(target: Any, value: Any) -> None:
    """Broadcast the value of lane 0, which makes it uniform across the warp."""
    emit(T.ptx.shfl_sync.idx.b32(target, value, T.uint32(0), T.uint32(0x1F), T.uint32(FULL_WARP)))


def permute_bytes(target: Any, low: Any, high: Any, selector: Any) -> None:
    """Four of the eight bytes of two words."""
    emit(T.ptx.prmt.b32(target, low, high, selector))


def largest_halves(target: Any, a: Any, b: Any) -> None:
    """The maxima, as signed integers, of the lower halves of two words and of their upper halves."""
    emit(T.ptx["max.s16x2"](target, a, b))


def pack_int4(target: Any, high: Any, low: Any, signed: bool) -> None:
    """``target = target << 8 | sat(high) << 4 | sat(low)``, saturated to -8..7 or to 0..15."""
    pack = T.ptx.cvt_pack.sat.s4.s32.b32 if signed else T.ptx.cvt_pack.sat.u4.s32.b32
    emit(pack(target, high, low, target))


def pack_int8(target: Any, high: Any, low: Any, signed: bool) -> None:
    """``target = target << 16 | sat(high) << 8 | sat(low)``, saturated to -128..127 or to 0..255."""
    pack = T.ptx.cvt_pack.sat.s8.s32.b32 if signed else T.ptx.cvt_pack.sat.u8.s32.b32
    emit(pack(target, high, low, target))


def multiply_add(target: Any, a: Any, b: Any, c: Any) -> None:
    """``target = a * b + c`` in binary32, rounded once, denormal numbers included."""
    emit(T.ptx["fma.rn.f32"](target, a, b, c))


def mask(target: Any, value: Any, bits: int) -> None:
    """``target = value & bits``, kept in this place: the compiler does not move it past a fence."""
    emit(T.ptx["and.b32"](target, value, T.uint32(bits)))


def invert(target: Any, value: Any) -> None:
    """``target = ~value``, kept in this place."""
    emit(T.ptx["not.b32"](target, value))


def sparse_wgmma(opcode: str, sums: list[Any], words: list[Any], pixels: Any, metadata: Any, adds: Any) -> None:
    """A warpgroup's multiplication by a 2:4 operand, selector 0 (PTX ISA, wgmma.mma_async.sp), which TVM has no name
    for: ``words`` are four registers of kept values, ``metadata`` gives their positions."""
    count = len(sums)
    names = [f"d{i}" for i in range(count)]
    d, a = ", ".join(f"%{i}" for i in range(count)), ", ".join(f"%{count + i}" for i in range(4))
    call = f"{opcode} {{{d}}}, {{{a}}}, %{count + 4}, %{count + 5}, 0, p;"
    outputs = ", ".join(f'"+r"({name})' for name in names)
    inputs = '"r"(a0), "r"(a1), "r"(a2), "r"(a3), "l"(pixels), "r"(metadata), "r"(adds)'
    parameters = ", ".join([*(f"uint32_t& {name}" for name in names), *(f"uint32_t a{i}" for i in range(4)),
                            "uint64_t pixels", "uint32_t metadata", "uint32_t adds"])  # fmt: skip
    name = "subbyte_" + opcode.replace(".", "_")
    asm = f'asm volatile("{{ .reg .pred p; setp.ne.b32 p, %{count + 6}, 0; {call} }}" : {outputs} : {inputs});'
    source = f"__forceinline__ __device__ void {name}({parameters}) {{\n  {asm}\n}}"
    emit(T.cuda.func_call(name, *sums, *words, pixels, metadata, adds, source_code=source))


def describe(target: Any, address: Any, low: int) -> None:
    """The lower word of the matrix descriptor for data that starts at ``address``; ``low``: its other bits, 16 to 19.

    Within a cluster an address holds the block's rank from bit 24 on, and a sixteenth of the address holds it from bit
    20 on: it must not get into a descriptor.
    """
    mask(target, (address >> T.uint32(4)) + T.uint32(low), DESCRIPTOR)


def hidden(name: str, value: Any) -> Any:
    """A value whose range is hidden from the compiler."""
    target = registers(name, 1, "int32")
    emit(T.ptx["mov.b32"](target[0], value))
    return target[0]


def load_shared4(target: Any, place: int, address: Any) -> None:
    """Load one word from shared memory."""
    emit(T.ptx["ld.shared.b32"](target[place], address))


def remote_arrive(address: Any) -> None:
    """Arrive at a barrier in a block of the cluster, by its address in the cluster's window."""
    emit(T.ptx["mbarrier.arrive.shared::cluster.b64"](address))


def load_transposed(target: Any, address: Any) -> None:
    """Load four 8 x 8 matrices of 16-bit halves from shared memory, transposed: lane ``8 i + r`` gives the address of
    the 16 bytes of row r of matrix i; lane ``4 g + q`` gets halves g of rows ``2 q`` and ``2 q + 1`` of each matrix."""
    emit(T.ptx["ldmatrix.sync.aligned.m8n8.x4.trans.shared.b16"](*[target[i] for i in range(4)], address))


def count_bits(target: Any, value: Any) -> None:
    """The number of set bits in a word."""
    emit(T.ptx["popc.b32"](target, value))


def highest_bit(target: Any, value: Any) -> None:
    """The position of the highest set bit; all ones for 0."""
    emit(T.ptx["bfind.u32"](target, value))


def shift_left(target: Any, value: Any, by: Any) -> None:
    """``target = value << by``, 0 where ``by`` is more than 31."""
    emit(T.ptx["shl.b32"](target, value, by))


def exchange(target: Any, value: Any, distance: int) -> None:
    """The value of the lane whose number differs in the bits of ``distance``."""
    emit(T.ptx.shfl_sync.bfly.b32(target, value, T.uint32(distance), T.uint32(0x1F), T.uint32(FULL_WARP)))


def most_of_warp(target: Any, value: Any) -> None:
    """The maximum over all lanes of a warp, as unsigned values (sm_80 and later)."""
    emit(T.ptx["redux_sync.max.u32"](target, value, T.uint32(FULL_WARP)))
