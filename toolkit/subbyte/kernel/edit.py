"""A kernel whose CUDA text was edited by hand: compiled, run and compared with the reference like any other."""

from __future__ import annotations

import os
import pickle
import subprocess
import sys
import time
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from subbyte.errors import InvalidInput, SubbyteError, Unsupported, WrongResult
from subbyte.kernel.execute import EMULATOR, expected, random_operands, resolve_device
from subbyte.kernel.kernel import Kernel
from subbyte.numerics import Requantization, Thresholds

MOST_SECONDS = 20.0
"""Seconds an edited kernel may run on the CPU."""


@dataclass(frozen=True)
class EditedKernel(Kernel):
    """A kernel with an edited CUDA text; its plan still defines the launch and the expected result."""

    text: str = ""
    edited = True

    @cached_property
    def cuda(self) -> str:
        """The edited CUDA text."""
        return self.text

    @cached_property
    def tir(self) -> str:
        """An edited kernel has none. Raises Unsupported."""
        raise Unsupported("an edited kernel starts from its CUDA text and has no TIRx; the unedited kernel has it")

    def for_requantization(self, requant: Requantization | Thresholds | None) -> Kernel:
        """This kernel. Raises InvalidInput when ``requant`` needs another clip or multiplication form than the text
        has."""
        if Kernel(self.plan).for_requantization(requant).plan != self.plan:
            raise InvalidInput(
                f"the edited text requantizes with clip={self.plan.clip} in the {self.plan.requant} form; "
                "give a requant= that fits, or edit the text of a kernel built for it"
            )
        return self


def rebuild(kernel: Kernel, cuda_text: str) -> EditedKernel:
    """Compile ``cuda_text`` in place of the kernel's own text. Needs no GPU and no TVM.

    Raises InvalidInput when the text does not define the launched function, BuildFailed with the compiler's message.
    """
    if len(kernel.parts) > 1:
        raise Unsupported(
            f"{kernel.workload.label} is {len(kernel.parts)} launches: edit the text of one of kernel.parts"
        )
    if kernel.launch.entry not in cuda_text:
        raise InvalidInput(f"the text has no function {kernel.launch.entry!r}, which the launch starts; keep its name")
    edited = EditedKernel(kernel.plan, cuda_text)
    _ = edited.cubin
    return edited


@dataclass(frozen=True)
class EditReport:
    """The result of trying an edited text: ``outcome`` is one sentence; ``kernel`` is None when it does not compile.

    ``wrong`` is the first wrong element (n, p, q, k); ``findings`` are hazards that the emulator saw, such as two
    threads touching the same shared word without a barrier. ``seconds``: total wall-clock time.
    """

    ok: bool
    outcome: str
    where: str
    seconds: float
    kernel: EditedKernel | None = None
    wrong: tuple[int, ...] | None = None
    actual: int | None = None
    expected: int | None = None
    findings: tuple[str, ...] = ()


def try_edit(kernel: Kernel, cuda_text: str, device: str = EMULATOR, seed: int = 0) -> EditReport:
    """Compile ``cuda_text``, run it on random operands and compare every element; every failure is in the report.

    The emulator is the default even if there is a GPU: it checks every access, so a wrong index is reported instead of
    ending the process or damaging its CUDA context. ``device`` as for :meth:`Kernel.run`.
    """
    start = time.perf_counter()
    edited, place, outcome = None, device, ""
    try:
        place = resolve_device(device, kernel.arch)
        # Two compilers make the machine code and the emulator's library: run them in parallel.
        with ThreadPoolExecutor(1) as pool:
            building = pool.submit(rebuild, kernel, cuda_text)
            report = _run_apart(EditedKernel(kernel.plan, cuda_text), seed) if place == EMULATOR else None
            edited = building.result()
        if report is None:
            report = _run_on_gpu(edited, place, seed)
    except SubbyteError as problem:
        outcome = str(problem)
        try:  # if neither compiler accepts the text, the CUDA compiler's message is the better one
            edited = rebuild(kernel, cuda_text)
        except SubbyteError as refused:
            outcome = str(refused)
        return EditReport(False, outcome, place, time.perf_counter() - start, edited)
    ok, outcome, wrong, actual, wanted, findings = report
    return EditReport(ok, outcome, place, time.perf_counter() - start, edited, wrong, actual, wanted, findings)


_Checked = tuple[bool, str, "tuple[int, ...] | None", "int | None", "int | None", tuple[str, ...]]


def _run_apart(kernel: EditedKernel, seed: int) -> _Checked:
    """Run on the emulator in a separate process, which an endless loop or a crash may take down."""
    job = pickle.dumps((kernel.plan, kernel.text, seed))
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(filter(None, sys.path))}
    command = [sys.executable, "-m", "subbyte.kernel.edit"]
    try:
        done = subprocess.run(
            command, input=job, capture_output=True, env=environment, timeout=MOST_SECONDS, start_new_session=True
        )
    except subprocess.TimeoutExpired:
        raise WrongResult(
            f"the edited kernel did not end within {MOST_SECONDS:g} s on the CPU: look for an endless loop, "
            "or edit a kernel of a smaller workload"
        ) from None
    if done.returncode:
        last = done.stderr.decode(errors="replace").strip().split("\n")[-1]
        raise WrongResult(f"the edited kernel ended the process that ran it (exit code {done.returncode}). {last}")
    answer: _Checked | SubbyteError = pickle.loads(done.stdout)
    if isinstance(answer, SubbyteError):
        raise answer
    return answer


def _run(kernel: EditedKernel, seed: int) -> _Checked:
    from subbyte.emulator import run_cuda

    x, w, requant = random_operands(kernel, seed)
    fitting = kernel.for_requantization(requant)
    argument = fitting.argument("Out")
    words = np.zeros(argument.shape, argument.dtype)
    done = run_cuda(fitting.cuda, fitting.launch, {**fitting.pack(x, w, requant), "Out": words}, seed=seed)
    return _compared(fitting.unpack(words), expected(fitting, x, w, requant), done.problems)


def _run_on_gpu(kernel: EditedKernel, place: str, seed: int) -> _Checked:
    x, w, requant = random_operands(kernel, seed)
    return _compared(kernel.run(x, w, requant, device=place), expected(kernel, x, w, requant), ())


def _compared(actual: np.ndarray, wanted: np.ndarray, findings: tuple[str, ...]) -> _Checked:
    from subbyte.gpu.check import compare

    report = compare(actual, wanted)
    outcome = f"{report}; the emulator found a hazard: {findings[0]}" if findings else str(report)
    return report.ok and not findings, outcome, report.first, report.actual, report.expected, findings


def _main() -> None:
    plan, text, seed = pickle.load(sys.stdin.buffer)
    try:
        answer: _Checked | SubbyteError = _run(EditedKernel(plan, text), seed)
    except SubbyteError as problem:
        answer = problem
    sys.stdout.buffer.write(pickle.dumps(answer))


if __name__ == "__main__":
    _main()
