"""Text to workloads: names with a batch size, networks, specs, and operand types after a colon."""

from __future__ import annotations

import re
from collections.abc import Iterable

from subbyte.errors import InvalidInput, did_you_mean, shown
from subbyte.html import table
from subbyte.workload.conv import ConvWorkload
from subbyte.workload.matmul import MatmulWorkload, gemm
from subbyte.workload.networks import DEFAULT_BATCH, LAYERS, NETWORKS
from subbyte.workload.precision import INT4, Precision

SPEC_EXAMPLE = "n8h56w56c64k64r3s3p1"
_NUMBER = r"([0-9]{1,9})"
_SPEC = re.compile(
    "".join(f"{letter}{_NUMBER}" for letter in "nhwckrs") + "".join(f"(?:{letter}{_NUMBER})?" for letter in "pud")
)
_GEMM = re.compile(f"gemm{_NUMBER}(?:x{_NUMBER}x{_NUMBER})?")
GEMM_EXAMPLE = "gemm64x1024x1024"


class WorkloadList(list[ConvWorkload]):
    """A list of workloads that a notebook shows as a single table."""

    def _repr_html_(self) -> str:
        rows = ((w.label, w.spec, f"{w.operations:,}", f"{w.bytes_moved:,}") for w in self)
        return table(rows, ("workload", "spec", "operations", "bytes"))


def workload(given: str | ConvWorkload) -> ConvWorkload:
    """The workload described by a text; a ConvWorkload is returned as it is.

    Texts (case-insensitive): a layer and a batch size, ``resnet50.stage2@8`` (``resnet50.stage2`` means batch 8); a
    spec ``n8h56w56c64k64r3s3p1`` in this order, where ``p`` (padding, default 0), ``u`` (stride, default 1) and ``d``
    (dilation, default 1) are optional; or a matrix product ``gemm64x1024x1024`` (M x N x K; ``gemm4096`` has three
    equal sizes). Operand types may follow each, ``resnet50.stage2@8:w1a2`` (:class:`Precision`); without them they are
    int4. Raises InvalidInput that suggests the closest names.
    """
    if isinstance(given, ConvWorkload):
        return given
    name, batch, precision = split_text(given)
    if name in NETWORKS:
        first = NETWORKS[name][1].name
        raise InvalidInput(
            f"{given!r} is a network of {len(NETWORKS[name])} distinct convolutions: expected one workload, such as "
            f"{first}@{batch or DEFAULT_BATCH}; `subbyte workloads {name}` lists them"
        )
    if name in LAYERS:
        return LAYERS[name].workload(batch or DEFAULT_BATCH, precision)
    if re.match(r"n[0-9]", name):
        return _from_spec(name, batch, precision)
    if re.match(r"gemm[0-9]", name):
        return _product(name, batch, precision)
    raise _unknown(given, name)


def workloads(given: str | ConvWorkload | Iterable[str | ConvWorkload]) -> WorkloadList:
    """All distinct workloads named by a text or by each of several texts; a network gives all its convolutions.

    ``workloads("resnet50@8")``, ``workloads(["vgg16", "n8h56w56c64k64r3s3p1"])``. A shape that occurs twice is kept
    once, under its first name. Raises InvalidInput that suggests the closest names.
    """
    if not isinstance(given, Iterable | ConvWorkload):
        raise InvalidInput(f"workloads {shown(given)}: expected a name such as resnet50@8, a ConvWorkload or several")
    items = [given] if isinstance(given, str | ConvWorkload) else list(given)
    found: dict[ConvWorkload, ConvWorkload] = {}
    for item in items:
        for one in _expand(item):
            found.setdefault(one, one)
    return WorkloadList(found.values())


def _expand(given: str | ConvWorkload) -> list[ConvWorkload]:
    if isinstance(given, str):
        name, batch, precision = split_text(given)
        if name in NETWORKS:
            return [layer.workload(batch or DEFAULT_BATCH, precision) for layer in NETWORKS[name]]
    return [workload(given)]


def split_text(given: object) -> tuple[str, int | None, Precision]:
    """(name in lower case, batch or None, operand types). Raises InvalidInput for a batch that is not a positive
    integer and for unknown types."""
    if not isinstance(given, str):
        raise InvalidInput(f"workload is a {type(given).__name__}: expected text such as 'resnet50.stage2@8'")
    what, colon, types = given.strip().lower().partition(":")
    if colon and not types:
        raise InvalidInput(f"workload {shown(given)}: expected the types of the operands after the colon, such as w1a2")
    name, at, batch = what.partition("@")
    if at and not (re.fullmatch(r"[0-9]{1,9}", batch) and int(batch) > 0):
        raise InvalidInput(
            f"workload {shown(given)}: the batch after @ must be a positive integer, as in {shown(name)[1:-1]}@8"
        )
    return name, int(batch) if at else None, Precision.of(types) if colon else INT4


def _from_spec(text: str, batch: int | None, precision: Precision) -> ConvWorkload:
    match = _SPEC.fullmatch(text)
    if match is None:
        raise InvalidInput(
            f"workload spec {shown(text)}: expected the order n h w c k r s [p padding] [u stride] [d dilation], each "
            f"followed by its number, such as {SPEC_EXAMPLE}"
        )
    if batch is not None:
        raise InvalidInput(f"workload spec {text}@{batch}: a spec gives the batch as n; write n{batch}… without @")
    n, h, w, c, k, r, s = (int(value) for value in match.groups()[:7])
    pad, stride, dilation = (
        least if value is None else int(value) for value, least in zip(match.groups()[7:], (0, 1, 1), strict=True)
    )
    return ConvWorkload(n, h, w, c, k, r, s, pad, stride, dilation, precision=precision)


def _product(text: str, batch: int | None, precision: Precision) -> MatmulWorkload:
    match = _GEMM.fullmatch(text)
    if match is None:
        raise InvalidInput(f"matrix product {shown(text)}: expected M x N x K, such as {GEMM_EXAMPLE}, or one size")
    if batch is not None:
        raise InvalidInput(f"matrix product {text}@{batch}: it has no images; M (the first size) counts its rows")
    m, n, k = (int(size or match[1]) for size in match.groups())
    types = f":{precision.text}" if precision.text else ""
    return gemm(m, n, k, precision, "" if match[2] else text + types)


def _unknown(given: str, name: str) -> InvalidInput:
    network = name.partition(".")[0]
    allowed = [layer.name for layer in NETWORKS[network]] if network in NETWORKS else [*NETWORKS, *LAYERS]
    return InvalidInput(
        f"unknown workload {shown(given)}: {did_you_mean(name, allowed)} (a spec looks like {SPEC_EXAMPLE} or "
        f"{GEMM_EXAMPLE}; "
        "`subbyte workloads` lists every name)"
    )
