"""An exported header, compiled against a driver stand-in, with its functions callable."""

from __future__ import annotations

import ctypes
import subprocess
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from subbyte.emulator import run_cuda
from subbyte.families.base import Plan
from subbyte.kernel import Kernel
from subbyte.kernel.export import stem_of
from subbyte.numerics import Requantization, Thresholds
from subbyte.numerics.thresholds import LINE, THRESHOLDS

HERE = Path(__file__).resolve().parent
STUB = HERE / "stub_driver"
STRICT = ("-Wall", "-Wextra", "-Werror", "-pedantic", "-Wconversion", "-Wsign-conversion", "-Wshadow")
LANGUAGES = {"c99": ("gcc", "-x", "c", "-std=c99"), "c++17": ("g++", "-x", "c++", "-std=c++17")}
CUBIN = bytes(range(256)) * 2 + b"odd"
"""Stands for machine code where only the header's text matters."""


class Host:
    """The functions of one compiled header."""

    def __init__(self, made: Plan, text: str, folder: Path, language: str = "c99") -> None:
        self.kernel, self.stem = Kernel(made), stem_of(made)
        (folder / f"{self.stem}.h").write_text(text)
        self.values = constants(made)
        compiler, *flags = LANGUAGES[language]
        macros = {"HEADER": f'"{self.stem}.h"', "STEM": self.stem, "NAME": self.stem.upper()}
        macros["VALUES"] = " ".join(f"VALUE({name})" for name in self.values)
        if made.output != "int32":
            macros["COMPARED" if made.parameter_form in (THRESHOLDS, LINE) else "REQUANTIZED"] = "1"
        if added := self.kernel.fusion.added:
            macros["ADDED_TYPE"] = f"{added.dtype}_t"
        types = made.workload.precision
        sides = ("X", types.activations), ("W", types.weights), ("Y", types.output)
        macros |= {f"{name}_TYPE": f"{operand.dtype}_t" for name, operand in sides}
        if made.launch.dependent_launch:
            macros["OVERLAPPING"] = "1"
        library = folder / f"{language}.so"
        defines = [f"-D{name}={value}" for name, value in macros.items()]
        sources = [STUB / "calls.c", STUB / "driver.c"]
        command = [compiler, *flags, *STRICT, "-O1", "-fPIC", "-shared", f"-I{STUB}", f"-I{folder}", *defines]
        done = subprocess.run([*command, *sources, "-o", library], capture_output=True, text=True)
        assert done.returncode == 0, done.stderr
        self.library = ctypes.CDLL(str(library))
        self.library.read_value.restype = ctypes.c_longlong

    def call(self, name: str, *arrays: NDArray[Any]) -> int:
        return int(getattr(self.library, name)(*(ctypes.c_void_p(array.ctypes.data) for array in arrays)))

    def words(self, argument: str) -> NDArray[Any]:
        """Memory for a buffer, filled with something that must not stay."""
        shape = self.kernel.argument(argument)
        return np.full(shape.shape, 0x5A5A5A5A, shape.dtype)

    def parameters(self, requant: Requantization) -> tuple[int, NDArray[Any]]:
        words, added = self.words("Prm"), [] if requant.added is None else [requant.added]
        return self.call("call_parameters", requant.bias, requant.multiplier, requant.shift, *added, words), words

    def thresholds(self, w: NDArray[Any], given: Thresholds) -> tuple[int, NDArray[Any]]:
        words, flips = self.words("Prm"), given.flip.astype(np.uint8)
        return self.call("call_thresholds", w, np.ascontiguousarray(given.levels), flips, words), words

    def stub(self) -> Stub:
        return Stub.in_dll(self.library, "stub")

    def launch(self, buffers: Mapping[str, NDArray[Any]]) -> None:
        """Load and launch through the header's functions, given A, Wt, Prm, Out and Res, where one is
        added; the emulator stands for the GPU."""
        kernel = self.kernel
        by_address = {array.ctypes.data: array for array in buffers.values()}
        ctypes.c_int.in_dll(self.library, "stub_arguments").value = len(kernel.launch.arguments)

        @ctypes.CFUNCTYPE(None)
        def launched() -> None:
            names = [argument.name for argument in kernel.launch.arguments]
            given = [by_address[pointer] for pointer in self.stub().pointers[: len(names)]]
            run_cuda(kernel.cuda, kernel.launch, dict(zip(names, given, strict=True)))

        ctypes.c_void_p.in_dll(self.library, "stub_launched").value = ctypes.cast(launched, ctypes.c_void_p).value
        assert self.library.call_load() == 0
        names = [name for name in ("A", "Wt", "Prm", "Out", "Res") if name in buffers]
        order = (ctypes.c_ulonglong * 5)(*(buffers[name].ctypes.data for name in names))
        assert self.library.call_launch(order) == 0


class Stub(ctypes.Structure):
    """What the driver stand-in recorded."""

    _fields_ = (
        ("image", ctypes.c_void_p), ("entry", ctypes.c_char * 64), ("attribute", ctypes.c_int),
        ("value", ctypes.c_int), ("loaded", ctypes.c_int), ("sizes", ctypes.c_uint * 7),
        ("pointers", ctypes.c_ulonglong * 5), ("overlapping", ctypes.c_int),
    )  # fmt: skip


def constants(made: Plan) -> dict[str, int]:
    """The header's numbers as the library has them."""
    w, launch = made.workload, made.launch
    values = {key: getattr(w, key.lower()) for key in ("N", "H", "W", "C", "K", "R", "S", "P", "Q", "STRIDE", "PAD")}
    values |= {"DILATION": w.dilation, "SHARED_BYTES": launch.shared_bytes, "OK": 0, "BAD_VALUE": 1}
    for what, sizes in (("GRID", launch.grid), ("BLOCK", launch.block)):
        values |= {f"{what}_{axis}": size for axis, size in zip("XYZ", sizes, strict=True)}
    values |= {"CLUSTER": launch.cluster} if launch.cluster > 1 else {}
    buffers = {"A": "ACTIVATION", "Wt": "WEIGHT", "Out": "OUTPUT", "Prm": "PARAMETER", "Res": "RESIDUAL"}
    for argument in launch.arguments:
        values[f"{buffers[argument.name]}_WORDS"] = argument.nbytes // 4
        values[f"{buffers[argument.name]}_BYTES"] = argument.nbytes
    if made.output != "int32":
        values |= {"CLIP_LOW": made.clip[0], "CLIP_HIGH": made.clip[1]}
        values |= {"NOT_EXACT": 2} if made.requant == "fixed" and made.parameter_form != THRESHOLDS else {}
    return values


def verify_launch(host: Host) -> None:
    """Machine code, entry, sizes and the order of the arguments that reach the driver."""
    launch = host.kernel.launch
    ctypes.c_int.in_dll(host.library, "stub_arguments").value = len(launch.arguments)
    pointers = {"A": 0x1000, "Wt": 0x2000, "Prm": 0x3000, "Out": 0x4000, "Res": 0x5000}
    output = host.words("Out")
    pointers["Out"] = output.ctypes.data
    assert host.library.call_load() == 0
    assert host.library.call_launch((ctypes.c_ulonglong * 5)(*pointers.values())) == 0
    stub = host.stub()
    assert stub.entry.decode() == launch.entry
    assert (stub.attribute, stub.value, stub.loaded) == (8, launch.shared_bytes, 1)
    assert list(stub.sizes) == [*launch.grid, *launch.block, launch.shared_bytes]
    given = list(stub.pointers)[: len(launch.arguments)]
    assert given == [pointers[argument.name] for argument in launch.arguments]
    assert ctypes.string_at(stub.image, len(CUBIN)) == CUBIN
    assert not stub.overlapping
    if launch.dependent_launch:
        assert host.library.call_launch_overlapping((ctypes.c_ulonglong * 5)(*pointers.values())) == 0
        stub = host.stub()
        assert (stub.overlapping, list(stub.sizes)) == (1, [*launch.grid, *launch.block, launch.shared_bytes])
        assert list(stub.pointers)[: len(launch.arguments)] == given
    ctypes.c_int.in_dll(host.library, "stub_fails_at_attribute").value = 1
    assert host.library.call_load() == 1
    assert host.stub().loaded == 1, "a load that failed left its module behind"
