"""Barriers of a warp, a block and a cluster, fences, register budgets, dependent launches."""

from __future__ import annotations

from subbyte.emulator.ptx.operands import Emit, Emitters, Number, call, flag, value


def _block(waits: bool) -> Emit:
    def emit(opcode: str, operands: list[str], number: Number) -> str:
        if operands == ["0"] and waits:
            return "emulator::block_barrier();"
        threads = "emulator::block_dim.x * emulator::block_dim.y * emulator::block_dim.z"
        count = value(operands[1]) if len(operands) > 1 else threads
        return f"emulator::named_barrier({number(opcode)}, {value(operands[0])}, {count}, {flag(waits)});"

    return emit


def _cluster_arrive(opcode: str, operands: list[str], number: Number) -> str:
    return f"emulator::cluster_arrive({number(opcode)}, {flag('.relaxed' not in opcode)});"


def _fence_proxy(opcode: str, operands: list[str], number: Number) -> str:
    return "emulator::step();" if opcode.endswith(".global") else f"emulator::fence_async({number(opcode)});"


def _registers(opcode: str, operands: list[str], number: Number) -> str:
    return f"emulator::set_registers({number(opcode)}, {value(operands[0])}, {flag('.inc.' in opcode)});"


EMITTERS: Emitters = (
    (r"bar\.warp\.sync$", call("emulator::warp_barrier({0});")),
    (r"(bar(\.cta)?\.sync|barrier(\.cta)?\.sync(\.aligned)?)$", _block(True)),
    (r"(bar(\.cta)?\.arrive|barrier(\.cta)?\.arrive(\.aligned)?)$", _block(False)),
    (r"barrier\.cluster\.arrive(\.release|\.relaxed)?(\.aligned)?$", _cluster_arrive),
    (r"barrier\.cluster\.wait(\.acquire)?(\.aligned)?$", call("emulator::cluster_wait({n});")),
    (r"fence\.proxy\.async(\.global|\.shared::(cta|cluster))?$", _fence_proxy),
    (r"fence\.mbarrier_init\.release\.cluster$", call("emulator::fence_mbarrier_init({n});")),
    # The vector clocks of barriers and mbarriers define the order between threads; fences add nothing to it.
    (r"(fence\.(sc|acq_rel|acquire|release)[\w.:]*|membar\.(cta|gl|sys))$", call("emulator::step();")),
    (r"setmaxnreg\.(inc|dec)\.sync\.aligned\.u32$", _registers),
    # One grid runs at a time: the previous one has ended. A kernel that may overlap it must wait all the same.
    (r"griddepcontrol\.wait$", call("emulator::dependency_wait();")),
    (r"griddepcontrol\.launch_dependents$", call("emulator::step();")),
)
