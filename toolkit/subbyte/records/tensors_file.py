"""Arrays in one file, in the safetensors format: a JSON header with names, types, sizes and offsets, then the bytes.

Implemented here because files come from others: the header is checked before anything in it is trusted.
"""

from __future__ import annotations

import json
import struct
from collections.abc import Mapping
from math import prod
from typing import Any

import numpy as np
from numpy.typing import NDArray

from subbyte.errors import BrokenRecord

_LENGTH = struct.Struct("<Q")
_LARGEST_HEADER = 100_000_000
_TYPES = {"U8": "uint8", "I8": "int8", "I32": "int32", "U32": "uint32", "F32": "float32"}
_NAMES = {dtype: name for name, dtype in _TYPES.items()}
METADATA = "__metadata__"


def tensors_content(arrays: Mapping[str, NDArray[Any]], metadata: Mapping[str, str]) -> bytes:
    """The content of a file with these arrays (uint8, int8, int32, uint32, float32) and texts."""
    header: dict[str, Any] = {METADATA: dict(metadata)}
    pieces, place = [], 0
    for name, array in arrays.items():
        held = np.ascontiguousarray(array)
        data = held.astype(held.dtype.newbyteorder("<"), copy=False).tobytes()
        header[name] = {"dtype": _NAMES[held.dtype.name], "shape": list(held.shape),
                        "data_offsets": [place, place + len(data)]}  # fmt: skip
        pieces.append(data)
        place += len(data)
    text = json.dumps(header).encode()
    text += b" " * (-len(text) % 8)
    return b"".join([_LENGTH.pack(len(text)), text, *pieces])


def read_tensors(content: bytes, what: str) -> tuple[dict[str, NDArray[Any]], dict[str, str]]:
    """The arrays and texts in a file's content. Raises BrokenRecord, naming ``what``, if any byte is out of place."""
    try:
        (length,) = _LENGTH.unpack_from(content)
        if length > min(_LARGEST_HEADER, len(content) - _LENGTH.size):
            raise ValueError(f"its header would have {length} bytes, the file has {len(content)}")
        start = _LENGTH.size + length
        header = json.loads(content[_LENGTH.size : start].decode())
        metadata = header.pop(METADATA, {})
        if not all(isinstance(one, str) for one in (*metadata, *metadata.values())):
            raise ValueError("its metadata are no texts")
        arrays, place = {}, 0
        for name, one in sorted(header.items(), key=lambda item: item[1]["data_offsets"]):
            dtype, shape, (first, end) = np.dtype(_TYPES[one["dtype"]]), tuple(one["shape"]), one["data_offsets"]
            if not all(type(size) is int and size >= 0 for size in (*shape, first, end)):
                raise ValueError(f"the sizes of {name} are no sizes")
            if first != place or end - first != prod(shape) * dtype.itemsize or start + end > len(content):
                raise ValueError(f"{name} does not lie where the header says")
            found = np.frombuffer(content, dtype.newbyteorder("<"), prod(shape), start + first)
            arrays[name] = found.astype(dtype, copy=False).reshape(shape)
            place = end
        if start + place != len(content):
            raise ValueError(f"{len(content) - start - place} bytes behind the last array")
    except (struct.error, ValueError, KeyError, TypeError, AttributeError, RecursionError) as error:
        raise BrokenRecord(f"{what}: no whole safetensors file ({error}); save it again") from None
    return arrays, metadata
