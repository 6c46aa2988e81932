"""Chains in a file: machine code, launches, layouts, weights and parameters, to run without TVM and without a compiler.

One file in the safetensors format. Its metadata hold ``format``, ``schema``, ``chain`` (JSON: the kind and launch of
each layer, inputs and outputs, a SHA-256 of every array) and ``sha256``, the hash of ``chain``.
"""

from __future__ import annotations

import hashlib
import json
import zlib
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from subbyte.arguments import checked
from subbyte.device.launch import Launch, launch_from_dict
from subbyte.errors import BrokenRecord, InvalidInput, MissingDependency
from subbyte.files import reason_of, write_file
from subbyte.kernel import operands
from subbyte.kernel.device_layer import DeviceLayer, Ends, Link
from subbyte.kernel.execute import EMULATOR, resolve_device
from subbyte.kernel.place import Program, place_for
from subbyte.kernel.placed import chain_links, ends_of
from subbyte.numerics.fusion import Fusion
from subbyte.records.tensors_file import read_tensors, tensors_content
from subbyte.workload import ConvWorkload
from subbyte.workload import workload as workload_named

if TYPE_CHECKING:
    from subbyte.kernel.chain import Chain

FORMAT, SCHEMA = "chain of subbyte", 1
_LARGEST_TEXT = 64 << 20


@dataclass(frozen=True, eq=False)
class SavedProgram:
    """A kernel or conversion loaded from a file."""

    launch: Launch
    cubin: bytes
    text: bytes | None

    @property
    def cuda(self) -> str:
        """Its CUDA text. Raises MissingDependency if the file contains none."""
        if self.text is None:
            raise MissingDependency(
                "this chain was saved without CUDA texts, so the emulator cannot run it: save it with texts=True, or "
                "use a GPU"
            )
        unpacked = zlib.decompressobj()
        return unpacked.decompress(self.text, _LARGEST_TEXT).decode()


@dataclass(frozen=True, eq=False)
class SavedChain:
    """A chain loaded from a file, for GPUs of architecture ``arch``. ``layers`` describes each layer: workload,
    configuration, output."""

    arch: str
    layers: tuple[Mapping[str, str], ...]
    links: tuple[Link, ...]
    ends: Ends

    def on_device(self, device: str = "cuda:0") -> DeviceLayer:
        """The chain on a device, as :meth:`Chain.on_device`: ``cuda:0``, ``auto`` or ``emulator``. Raises
        MissingDependency for a GPU that does not exist or has another architecture."""
        return DeviceLayer(self.links, place_for(device, self.arch), self.ends)

    @checked
    def run(self, x: NDArray[np.int8], device: str = "auto") -> NDArray[np.integer]:
        """Run all layers on ``x`` int8 [N,H,W,C] on the host, each value of which is checked; returns int8 or int32
        [N,P,Q,K]. ``device`` as for :meth:`Kernel.run`. Raises InvalidInput, MissingDependency."""
        first, last = (workload_named(self.layers[end]["workload"]) for end in (0, -1))
        into, out = self.links[0].program.launch, self.links[-1].program.launch
        words = operands.activation_words(_argument(into, "A"), first, x)
        place = resolve_device(device, self.arch)
        if place == EMULATOR:
            found = self.on_device(EMULATOR)(words.view(np.int32), packed=True)
            return _values(out, last, self.layers[-1]["output"], found)
        from subbyte.gpu.chain import GpuChain
        from subbyte.gpu.device import open_device

        inputs = [{**link.constants, **({"A": words} if number == 0 else {})} for number, link in enumerate(self.links)]
        kernels = [(link.program.cubin, link.program.launch) for link in self.links]
        gpu, sources = open_device(int(place.partition(":")[2])), [link.residual for link in self.links]
        with gpu.unmoved(), GpuChain(kernels, inputs, gpu, sources) as chain:
            return _values(out, last, self.layers[-1]["output"], chain.run())

    def __repr__(self) -> str:
        return f"SavedChain({' -> '.join(one['workload'] for one in self.layers)}, {self.arch})"


def save_chain(chain: Chain, path: str | Path, texts: bool = True) -> Path:
    """See :meth:`Chain.save`."""
    links, ends = chain_links(chain), ends_of(chain.kernels[0], chain.kernels[-1])
    arrays: dict[str, NDArray[Any]] = {}
    layers = []
    for number, (kernel, link) in enumerate(zip(chain.kernels, links, strict=True)):
        arrays |= _program_arrays(f"layer{number}", kernel, texts)
        arrays |= {f"layer{number}.{name}": words for name, words in link.constants.items()}
        layers.append({
            "workload": kernel.workload.spec, "config": kernel.key, "output": kernel.output,
            "launch": kernel.launch.to_dict(), "residual": link.residual,
        })  # fmt: skip
    said: dict[str, Any] = {
        "arch": chain.kernels[0].arch, "layers": layers, "takes": ends.takes, "returns": ends.returns,
        "gives": ends.gives, "reason": ends.reason, "pack_alignment": ends.pack_alignment,
    }  # fmt: skip
    if ends.accepts != Ends.accepts:
        said["accepts"] = ends.accepts
    for name, program in (("pack", ends.pack), ("unpack", ends.unpack)):
        if program is not None:
            arrays |= _program_arrays(name, program, texts)
            said[name] = program.launch.to_dict()
    said["sha256"] = {name: _digest(array.tobytes()) for name, array in arrays.items()}
    text = json.dumps(said)
    metadata = {"format": FORMAT, "schema": str(SCHEMA), "chain": text, "sha256": _digest(text.encode())}
    write_file(path, tensors_content(arrays, metadata), "chain")
    return Path(path)


@checked
def load_chain(path: str | Path) -> SavedChain:
    """Load a chain that :meth:`Chain.save` wrote; it runs without TVM.

    A file holds machine code: load only what you trust. Raises InvalidInput for a file that cannot be read,
    BrokenRecord for one that is damaged, truncated, not a chain, or of another schema.
    """
    what = f"chain {path}"
    try:
        content = Path(path).read_bytes()
    except (OSError, ValueError) as error:
        raise InvalidInput(f"cannot read {what}: {reason_of(error)}; give a file that Chain.save wrote") from None
    arrays, metadata = read_tensors(content, what)
    if metadata.get("format") != FORMAT:
        raise BrokenRecord(f"{what}: a safetensors file, but not a chain of subbyte; give one that Chain.save wrote")
    if metadata.get("schema") != str(SCHEMA):
        raise BrokenRecord(f"{what}: schema {metadata.get('schema')}, this version reads {SCHEMA}; save it again")
    text = metadata.get("chain", "")
    if _digest(text.encode()) != metadata.get("sha256"):
        raise BrokenRecord(f"{what}: its description of the layers was changed after it was written; save it again")
    try:
        return _chain(json.loads(text), arrays, what)
    except (KeyError, TypeError, ValueError, IndexError) as error:
        if isinstance(error, BrokenRecord):
            raise
        raise BrokenRecord(f"{what}: not the record of a chain ({error}); save it again") from None


def _chain(said: Mapping[str, Any], arrays: Mapping[str, NDArray[Any]], what: str) -> SavedChain:
    digests = said["sha256"]
    if sorted(digests) != sorted(arrays):
        raise BrokenRecord(f"{what}: its arrays are not the ones that it lists; save it again")
    for name, array in arrays.items():
        if _digest(array.tobytes()) != digests[name]:
            raise BrokenRecord(f"{what}: {name} was changed after it was written; save it again")
    links, layers = [], []
    for number, layer in enumerate(said["layers"]):
        program = _program(f"layer{number}", layer["launch"], arrays)
        names = [one.name for one in program.launch.arguments if f"layer{number}.{one.name}" in arrays]
        constants = {name: arrays[f"layer{number}.{name}"] for name in names}
        links.append(Link(program, constants, layer["residual"]))
        layers.append({name: str(layer[name]) for name in ("workload", "config", "output")})
    pack, unpack = (_program(name, said[name], arrays) if name in said else None for name in ("pack", "unpack"))
    takes, returns = (tuple(int(size) for size in said[name]) for name in ("takes", "returns"))
    accepts = str(said.get("accepts", Ends.accepts))
    ends = Ends(takes, returns, said["gives"], pack, unpack, said["reason"], int(said["pack_alignment"]), accepts)  # type: ignore[arg-type]
    return SavedChain(str(said["arch"]), tuple(layers), tuple(links), ends)


def _program_arrays(name: str, program: Program, texts: bool) -> dict[str, NDArray[Any]]:
    found = {f"{name}.cubin": np.frombuffer(program.cubin, np.uint8)}
    if texts:
        found[f"{name}.text"] = np.frombuffer(zlib.compress(program.cuda.encode(), 9), np.uint8)
    return found


def _program(name: str, launch: Mapping[str, Any], arrays: Mapping[str, NDArray[Any]]) -> SavedProgram:
    text = arrays.get(f"{name}.text")
    cubin = arrays[f"{name}.cubin"].tobytes()
    return SavedProgram(launch_from_dict(launch), cubin, None if text is None else text.tobytes())


def _values(launch: Launch, workload: ConvWorkload, output: str, words: NDArray[Any]) -> NDArray[np.integer]:
    argument = _argument(launch, "Out")
    return operands.output_values(argument, workload, words.view(argument.dtype), Fusion.of(output).pool)


def _argument(launch: Launch, name: str) -> Any:
    return next(one for one in launch.arguments if one.name == name)


def _digest(data: bytes) -> str:
    return hashlib.sha256(data).hexdigest()
