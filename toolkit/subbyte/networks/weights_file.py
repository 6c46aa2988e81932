"""A network's parameters in a file, with a digest of its logits: a zip of numpy arrays (npz).

``weights0``, ``weights1``, ... hold the bits of the codes of a layer's weights, ``levels`` and ``flip`` its thresholds,
``multiplier`` and ``bias`` the scale of the logits, ``test`` the indices of the images not used in training. The
``images`` and ``labels`` of these are included if their licence allows it. ``facts`` is JSON: precision, accuracy,
digest.
"""

from __future__ import annotations

import hashlib
import json
import zipfile
from collections.abc import Mapping
from dataclasses import dataclass
from io import BytesIO
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from subbyte.errors import BrokenRecord
from subbyte.networks.parameters import Logits, Parameters
from subbyte.numerics.thresholds import Thresholds
from subbyte.numerics.values import decode, encode

if TYPE_CHECKING:
    from subbyte.networks.network import Network

SCHEMA = 1
_ZIP_DATE = (1980, 1, 1, 0, 0, 0)


@dataclass(frozen=True, eq=False)
class WeightsFile:
    """The contents of a file, not yet matched to a network: ``arrays`` by name, and the ``facts``."""

    arrays: Mapping[str, NDArray[Any]]
    facts: Mapping[str, Any]

    def parameters(self, network: Network) -> Parameters:
        """The parameters for a network. Raises BrokenRecord if the file is of another one."""
        try:
            return self._parameters(network)
        except (KeyError, ValueError) as error:
            raise BrokenRecord(f"trained weights do not fit {network.name}: {error}") from None

    def _parameters(self, network: Network) -> Parameters:
        weights, thresholds = [], []
        for number, layer in enumerate(network.layers):
            wl, types = layer.workload, layer.workload.precision
            shape = (wl.k, wl.r, wl.s, wl.c)
            count = wl.k * wl.r * wl.s * wl.c * types.weights.bits
            bits = np.unpackbits(self.arrays[f"weights{number}"], count=count).reshape(*shape, types.weights.bits)
            codes = np.packbits(bits, axis=-1, bitorder="little")[..., 0]
            weights.append(decode(codes, types.weights))
            if number < len(network.layers) - 1:
                flip = self.arrays[f"flip{number}"].astype(np.bool_)
                thresholds.append(Thresholds(self.arrays[f"levels{number}"], flip, types.output))
        logits = Logits(self.arrays["multiplier"], self.arrays["bias"])
        return Parameters(tuple(weights), tuple(thresholds), logits, str(self.facts["label"])).check(network.layers)


def digest(logits: NDArray[np.int64]) -> str:
    """Digest of logits int64 [N,K]: two digests are equal if all logits are."""
    return hashlib.sha256(np.ascontiguousarray(logits, "<i8").tobytes()).hexdigest()


def packed(network: Network, parameters: Parameters, facts: Mapping[str, Any], **more: NDArray[Any]) -> bytes:
    """The content of a file; the same parameters give the same bytes."""
    arrays: dict[str, NDArray[Any]] = dict(more)
    for number, (w, layer) in enumerate(zip(parameters.weights, network.layers, strict=True)):
        codes, operand = encode(w, layer.workload.precision.weights), layer.workload.precision.weights
        bits = np.unpackbits(codes[..., None], axis=-1, count=operand.bits, bitorder="little")
        arrays[f"weights{number}"] = np.packbits(bits.reshape(-1))
    for number, thresholds in enumerate(parameters.thresholds):
        arrays |= {f"levels{number}": thresholds.levels, f"flip{number}": thresholds.flip}
    arrays |= {"multiplier": parameters.logits.multiplier, "bias": parameters.logits.bias}
    said = {"schema": SCHEMA, "label": parameters.label, **facts}
    file = BytesIO()
    with zipfile.ZipFile(file, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, array in sorted(arrays.items()):
            one = BytesIO()
            np.save(one, array, allow_pickle=False)
            archive.writestr(zipfile.ZipInfo(f"{name}.npy", _ZIP_DATE), one.getvalue(), zipfile.ZIP_DEFLATED)
        archive.writestr(zipfile.ZipInfo("facts.json", _ZIP_DATE), json.dumps(said, indent=1), zipfile.ZIP_DEFLATED)
    return file.getvalue()


def unpacked(content: bytes, what: str) -> WeightsFile:
    """The contents of a file. Raises BrokenRecord."""
    try:
        with zipfile.ZipFile(BytesIO(content)) as archive:
            facts = json.loads(archive.read("facts.json"))
            names = [name for name in archive.namelist() if name.endswith(".npy")]
            arrays = {name[:-4]: np.load(BytesIO(archive.read(name)), allow_pickle=False) for name in names}
    except (zipfile.BadZipFile, KeyError, ValueError, EOFError) as error:
        raise BrokenRecord(f"{what}: no file of trained weights ({error})") from None
    if facts.get("schema") != SCHEMA:
        raise BrokenRecord(f"{what}: schema {facts.get('schema')}, expected {SCHEMA}")
    return WeightsFile(arrays, facts)
