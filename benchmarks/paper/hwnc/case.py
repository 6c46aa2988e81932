"""Operands and the exact answer in HWNC, and the measuring process that uses them."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from benchmarks.paper.hwnc.space import OPERANDS, Operand
from subbyte.device.launch import Argument
from subbyte.gpu.check import CheckReport, compare
from subbyte.gpu.timing import TimingProtocol
from subbyte.measure.case import Case
from subbyte.measure.gpu_worker import Body, GpuBody
from subbyte.numerics.int4 import pack_words
from subbyte.workload import ConvWorkload


class HwncCase(Case):
    """Like Case, in the layouts of TVM's schedule: padded activations, int32 sums."""

    def operand(self, argument: Argument) -> NDArray[Any]:
        """The words of an input; its form names the layout and the operand."""
        key = (argument.name, argument.form)
        if key not in self._operands:
            operand = OPERANDS[argument.form.partition(".")[2]]
            values = activations(self.workload, self.x) if argument.name == "A" else weights(self.w, operand)
            self._operands[key] = words(values, operand)
        return self._operands[key]

    def check(self, output: NDArray[Any], argument: Argument) -> CheckReport:
        """Every sum against the reference."""
        w = self.workload
        sums = output.reshape(w.p, w.q, w.n, w.k).transpose(2, 0, 1, 3)
        return compare(np.ascontiguousarray(sums), self.accumulators)


def activations(w: ConvWorkload, x: NDArray[np.int8]) -> NDArray[np.int8]:
    """int8 [N,H,W,C] as [H+2*pad][W+2*pad][N][C]."""
    return np.pad(x, ((0, 0), (w.pad, w.pad), (w.pad, w.pad), (0, 0))).transpose(1, 2, 0, 3)


def weights(w: NDArray[np.int8], o: Operand) -> NDArray[np.int8]:
    """int8 [K,R,S,C] as [R][S][K/n][C/k][n][k]."""
    k, r, s, c = w.shape
    return w.reshape(k // o.n, o.n, r, s, c // o.k, o.k).transpose(2, 3, 0, 4, 1, 5)


def words(values: NDArray[np.int8], o: Operand) -> NDArray[np.uint32]:
    """Values as 32-bit words: eight int4, or four bytes."""
    whole = np.ascontiguousarray(values)
    return pack_words(whole).ravel() if o.bits == 4 else whole.reshape(-1).view(np.uint32)


class HwncBody(GpuBody):
    """A measuring process for TVM's schedule."""

    def _case(self, workload: ConvWorkload) -> HwncCase:
        return HwncCase(workload, self._seed)


@dataclass(frozen=True)
class MakeHwncBody:
    """Makes the body of a measuring process; travels there by pickle."""

    devices: tuple[int, ...] | None
    protocol: TimingProtocol
    seed: int

    def __call__(self) -> Body:
        """The body, in the process that calls."""
        return HwncBody(self.devices, self.protocol, self.seed)
