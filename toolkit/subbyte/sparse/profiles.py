"""How sparse given data are: densities and runs, compared with independent zeros of the same density."""

from __future__ import annotations

import zipfile
import zlib
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from subbyte.errors import InvalidInput
from subbyte.info_record import InfoRecord, Table, columns_text
from subbyte.sparse.bitmap import POSITIONS
from subbyte.sparse.cost import binomial
from subbyte.sparse.photographs import DEPTHS, PICTURES
from subbyte.sparse.photographs import profile as photograph

LARGEST_FILE = 1 << 30
"""Most bytes in the arrays of a profile, unpacked."""
TILE_PIXELS, TILE_CHANNELS = 224, 32
"""The tile of activations that a block of the dense kernels multiplies at a time."""
TRAINED = "digits.w1a2"
"""The few-bit network whose activations have zeros, like those after a ReLU."""
_UNREADABLE = (
    OSError, ValueError, EOFError, MemoryError, NotImplementedError, RuntimeError, zipfile.BadZipFile, zlib.error
)  # fmt: skip


@dataclass(frozen=True)
class Profile:
    """One array of masks or values."""

    name: str
    shape: tuple[int, ...]
    density: float
    empty_runs: float
    """Share of runs of 32 neighbours that are all zero."""
    empty_runs_iid: float
    """The same for independent zeros."""
    levels: float
    """Mean of ceil(a / 8) / 4 over these runs: the share of OHMMA issued on the side of A."""
    levels_iid: float
    empty_tiles: float = 0.0
    """Share of tiles of 224 neighbouring pixels times 32 channels that are all zero: these would let a dense kernel on
    today's GPUs skip a step of its activations. Smaller arrays: tiles of what there is."""
    empty_tiles_iid: float = 0.0


@dataclass(frozen=True)
class Profiles(InfoRecord):
    """Densities and runs of several arrays."""

    source: str
    """What the arrays are: real, with random filters, or the user's."""
    arrays: tuple[Profile, ...]

    def title(self) -> str:
        """One line: where the data come from."""
        return f"{len(self.arrays)} array{'s' * (len(self.arrays) != 1)}: {self.source}"

    def table(self) -> Table:
        """One row for each array."""
        heads = ("array", "density", "empty runs of 32", "i.i.d.", "OHMMA issued (A)", "i.i.d.",
                 "empty tiles of 224x32", "i.i.d.")  # fmt: skip
        rows = tuple(
            (one.name, one.density, one.empty_runs, one.empty_runs_iid, one.levels, one.levels_iid,
             one.empty_tiles, one.empty_tiles_iid)
            for one in self.arrays
        )  # fmt: skip
        return Table(heads, rows)

    def text(self) -> str:
        """The table with three digits."""
        table = self.table()
        rows = tuple((row[0], *(f"{value:.3f}" for value in row[1:])) for row in table.rows)
        return f"{self.title()}\n\n{columns_text(Table(table.columns, rows))}"


def profile(given: str) -> Profiles:
    """Profiles of ``photos`` (ReLU maps of scikit-learn's photographs), ``digits`` (a trained network's maps of the
    images not used in training), ``pruned`` (int4 weights of a network trained on digits and pruned to several
    densities, and what its layers read) or of the arrays of an ``.npz``.

    Arrays are masks or values; runs of 32 go along the last axis but one (the pixels of a row of [N, H, W, C], or the
    images if a layer has only one pixel), for a vector along the vector. Raises InvalidInput for another name and for a
    file that cannot be read or holds something else, MissingDependency if scikit-learn or Pillow is missing.
    """
    text = str(given).strip()
    if text.lower() in ("photos", "relu-photos"):
        found = tuple(
            _one(f"{picture.partition('.')[0]} layer {depth}", photograph(depth, number))
            for number, picture in enumerate(PICTURES)
            for depth in DEPTHS
        )
        return Profiles("photographs of scikit-learn through random 3x3 filters and ReLU (real pixels)", found)
    if text.lower() == "digits":
        return _digits()
    if text.lower() == "pruned":
        return _pruned()
    if Path(text).suffix != ".npz":
        raise InvalidInput(
            f"profile {given!r}: expected photos, digits, pruned, or a FILE.npz with arrays of masks or values"
        )
    return Profiles(f"the user's {Path(text).name}", tuple(_one(*item) for item in load_arrays(text).items()))


def _digits() -> Profiles:
    """What the layers of the trained network with two-bit activations read: code 0 is what its ReLU makes of a value
    below the first threshold. Its weights are -1 and 1 and have no zeros."""
    from subbyte.networks.catalogue import network
    from subbyte.networks.trained import test_images

    trained = network(TRAINED)
    images, _ = test_images(trained)
    values = {layer.name: layer.values for layer in trained.reference(images).layers if layer.values is not None}
    source = f"{len(images)} handwritten digits through the trained network {TRAINED} (real, small): layers' outputs"
    return Profiles(source, tuple(
        _one(f"{TRAINED} {name}", codes.reshape(-1, codes.shape[-1])) for name, codes in values.items()
    ))  # fmt: skip


def _pruned() -> Profiles:
    """Really trained weights after pruning, and what their layers read for images not used in training."""
    from subbyte.sparse.pruned import DENSITIES, pruned_arrays

    source = "a small convolutional network trained on handwritten digits, pruned by magnitude, in int4 (real, small)"
    return Profiles(source, tuple(
        _one(f"{percent} % {name}", values) for percent in DENSITIES for name, values in pruned_arrays(percent).items()
    ))  # fmt: skip


def load_array(file: str) -> NDArray[Any]:
    """The array in an ``.npy``, numbers or bool. Raises InvalidInput saying what is wrong with the file."""
    try:
        found = np.load(file, allow_pickle=False)
    except FileNotFoundError:
        raise InvalidInput(f"{file}: no such file; write one with numpy.save(FILE, mask)") from None
    except _UNREADABLE as error:
        raise InvalidInput(
            f"{file}: cannot be read as .npy ({type(error).__name__}); write it with numpy.save"
        ) from None
    if isinstance(found, np.ndarray) and not found.size:
        raise InvalidInput(f"{file}: an array of shape {found.shape} holds nothing; expected at least one element")
    if not isinstance(found, np.ndarray) or found.dtype.kind not in "biuf":
        raise InvalidInput(f"{file}: expected one array of numbers or bool, written with numpy.save")
    return found


def load_arrays(file: str) -> dict[str, NDArray[Any]]:
    """The arrays in an ``.npz``, numbers or bool. Raises InvalidInput saying what is wrong with the file."""
    try:
        with zipfile.ZipFile(file) as packed:
            size = sum(item.file_size for item in packed.infolist())
        if size > LARGEST_FILE:
            raise InvalidInput(f"{file}: {size:,} bytes unpacked, at most {LARGEST_FILE:,} are read; split the file")
        with np.load(file, allow_pickle=False) as stored:
            arrays: dict[str, Any] = {name: stored[name] for name in stored.files}
    except FileNotFoundError:
        raise InvalidInput(f"{file}: no such file; write one with numpy.savez(FILE, name=mask)") from None
    except _UNREADABLE as error:
        raise InvalidInput(
            f"{file}: cannot be read as .npz ({type(error).__name__}); write it with numpy.savez"
        ) from None
    if not arrays:
        raise InvalidInput(f"{file}: holds no array")
    for name, array in arrays.items():
        if not isinstance(array, np.ndarray) or array.dtype.kind not in "biuf" or not array.size:
            raise InvalidInput(f"{file}: array {name!r} must hold numbers or bool, at least one")
    return arrays


def _one(name: str, values: NDArray[Any]) -> Profile:
    mask = np.atleast_1d(values) != 0
    density = float(mask.mean())
    along = np.moveaxis(mask, -2, -1) if mask.ndim > 1 else mask
    length = along.shape[-1]
    if length >= POSITIONS:
        along = along[..., : length // POSITIONS * POSITIONS]
    size = min(length, POSITIONS)
    runs = along.reshape(-1, size).sum(-1)
    chance = binomial(density, size)
    return Profile(
        name, tuple(values.shape), density, float((runs == 0).mean()), float(chance[0]),
        float((-(-runs // 8)).mean() / 4), float(chance @ -(-np.arange(size + 1) // 8) / 4),
        *_tiles(mask, density),
    )  # fmt: skip


def _tiles(mask: NDArray[np.bool_], density: float) -> tuple[float, float]:
    """Shares of tiles of a block's pixels times 32 channels that are empty: in a map, and with independent zeros."""
    pixels = mask.reshape(-1, mask.shape[-1]) if mask.ndim > 1 else mask.reshape(-1, 1)
    rows, channels = min(TILE_PIXELS, pixels.shape[0]), min(TILE_CHANNELS, pixels.shape[1])
    whole = pixels[: pixels.shape[0] // rows * rows, : pixels.shape[1] // channels * channels]
    some = whole.reshape(-1, rows, whole.shape[1] // channels, channels).any(axis=(1, 3))
    return float(1 - some.mean()), float((1 - density) ** (rows * channels))
