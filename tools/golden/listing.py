"""Which kernels are held: all that were recorded, recommended or shipped, and what the GPU tests build."""

from __future__ import annotations

import gzip
import json
from collections.abc import Iterable, Iterator
from itertools import chain
from pathlib import Path
from typing import Any

from golden import ROOT, library
from golden.kernels import Entry

TUNING = ("tuning-h200-2026-11-22.json.gz",)
SIDE_BY_SIDE = ("side-by-side-h200-2026-11-22.json",)
ARCHS = ("sm_75", "sm_80", "sm_86", "sm_89", "sm_90a")
BIT_PLANES: dict[str, tuple[str, str, str, dict[str, Any]]] = {
    "bits": ("n8h4w5c128k32r3s3p1:w1a1", "bits-tr2-oc32-co1", "sm_90a", {}),
    "bits, two sums a register": ("n9h3w4c200k70r3s3p1:w1a1:minus", "bits-tr2-oc64-co2", "sm_90a", {}),
    "bits, run on": ("n8h5w6c96k128r5s5p2:w1a1", "bits-tr3-oc128-co2-ro1", "sm_90a", {}),
    "bits, two and three planes": ("n9h4w6c200k70r3s3p1u2:w2a3", "bits-tr2-oc32-co2", "sm_90a", {}),
    "bits, doubled, signed": (
        "n8h2w4c64k64r3s3p1:w1a2:bipolar.signed.unsigned", "bits-tr1-oc64-co1-db1", "sm_90a", {},
    ),
    "bits, a line": ("n8h2w8c64k64r3s3p1:w1a4", "bits-tr2-oc64-co2-db1", "sm_90a", {}),
    "bits, fifteen thresholds": ("n8h2w8c64k64r3s3p1:w1a4", "bits-tr2-oc64-co2-db1", "sm_90a", {"requant": "general"}),
    "bits, pairs of rows, turns in order": (
        "n8h5w12c64k64r3s3p1:w1a2", "bits-tr4-oc64-co2-tu2-db1-st1-pr1", "sm_90a", {},
    ),
    "bits, windows counted": ("n8h4w10c64k64r3s3p1:w1a2", "bits-tr4-oc64-co1-tu2-db1-ct1-pr1", "sm_90a", {}),
    "bits, rows in parts": ("n9h4w17c64k64r3s3p1:w1a2", "bits-tr2-oc64-co2-rp2-db1-pr1", "sm_90a", {}),
    "bits, sums": ("n9h2w4c200k70r3s3p1:w1a1", "bits-tr2-oc64-co2", "sm_90a", {"output": "int32"}),
    "bits, whole values": ("n8h24w24c3k64r7s7p3u4:w1a8o1:bipolar.signed", "bits-tr1-oc64-co1-wv1", "sm_90a", {}),
    "bits, added and kept": (
        "n9h4w6c64k64r3s3p1:w1a1", "bits-tr2-oc64-co2", "sm_90a", {"output": "bipolar1+add64+keep"},
    ),
    "bits, windows added": (
        "n8h4w4c64k64r3s3p1:w1a1", "bits-tr2-oc32-co1", "sm_90a", {"output": "bipolar1+addpool2x64"},
    ),
    "bits, pooled": ("n8h4w8c64k64r3s3p1:w1a2", "bits-tr2-oc64-co1-tu2-db1", "sm_90a", {"output": "uint2+pool2"}),
    "bits, a ring of clusters, one warpgroup ahead": (
        "gemm1040x64x1100:w1a1", "bitring-oc32-co2-dp2-sg3-sw2-le1", "sm_90a", {},
    ),
    "bits, a ring, two planes each, sums": (
        "gemm72x100x1100:w2a2", "bitring-oc64-co1-dp4-sg3", "sm_90a", {"output": "int32"},
    ),
    "bits, a ring that shares activations": (
        "gemm200x128x700:w1a1", "bitring-oc32-co1-dp4-sg2-sw2-sp2", "sm_90a", {},
    ),
    "bmma, differing bits": ("n8h4w8c128k64r3s3p1:w1a1", "bmma-brw2-bcw1-wrt4-wct4-ch1-ri1", "sm_80", {}),
    "bmma, common bits": ("n9h3w4c200k70r3s3p1:w2a2:minus", "bmma-brw2-bcw2-wrt2-wct4-ch2-ri1", "sm_90a", {}),
    "bmma, sm_75": ("n8h3w5c256k64r3s3p1:w1a2", "bmma-brw2-bcw1-wrt3-wct4-ch1-ri1-st1", "sm_75", {}),
    "bmma, integer units count ones": (
        "n9h4w6c200k70r3s3p1u2:w3a2", "bmma-brw2-bcw2-wrt2-wct4-ch1-ri1-popcount", "sm_80", {},
    ),
    "bmma, a pair of planes for each warp": (
        "n9h3w4c130k70r3s3p1:w2a2", "bmma-brw2-bcw2-wrt2-wct4-ch1-ri1-cmb.shared", "sm_80", {},
    ),
    "bmma, direct, plain layout, sums": (
        "n9h3w4c130k70r3s3p1:w1a1", "bmma-brw2-bcw2-wrt4-wct4-ch1-ri1-direct-nhwc", "sm_80", {"output": "int32"},
    ),
    "few channels": ("n8h14w20c3k64r7s7p3u2", "stem-rw2-tg2-oc64-co2-sg1-tu1", "sm_90a", {}),
    "few channels, phases, segments, turns": (
        "n9h12w37c3k64r3s3p1", "stem-rw2-tg2-oc64-co2-sg2-tu4-bu2", "sm_90a", {"clip": [0, 7]},
    ),
    "few channels, sums": ("n2h7w7c7k256r1s1p0", "stem-rw2-tg1-oc128-co1-sg1-tu1", "sm_90a", {"output": "int32"}),
    "popc": ("n9h4w6c200k70r3s3p1u2:w3a2", "popc-brw2-bcw2-wrt2-wct4-ch1-ri1", "sm_90a", {}),
    "popc, each word, direct": (
        "n9h2w4c256k70r3s3p1:w2a2:offset.bipolar:minus", "popc-brw2-bcw2-wrt4-wct4-ch2-ri0-direct-cs0", "sm_75",
        {"output": "int32"},
    ),
}  # fmt: skip
"""Kernels on bit planes, and for few channels, that together go through every part of their generators: spec, key,
architecture, options."""
ZEROS: dict[str, tuple[str, str, str, dict[str, Any]]] = {
    "condense, two chunks, sums": ("gemm72x70x200", "cd-rw2-cw1-pn2-ch4-ct1-fa1", "sm_90a", {"output": "int32"}),
    "condense, one buffer, no lanes share": ("n2h3w5c96k40r1s1p0", "cd-rw1-cw1-pn1-ch2-ct4-ah0-sh1", "sm_90a", {}),
    "condense, sm_80": ("gemm40x100x64", "cd-rw1-cw2-pn1-ch2-ct2-ah0", "sm_80", {"clip": [0, 7]}),
    "condense, the fastest": ("gemm4096x4096x4096", "cd-rw4-cw4-pn2-ch16-ct4-fa1", "sm_90a", {}),
    "2:4, weights of all kernel rows ahead": (
        "n16h7w7c128k64r3s3p1:w4a4:signed-2of4.signed", "wg24-tw7-tr2-cm1-cr2-sg1-cg2-st3-rr3-la1-sta0-ig2-ls1-res2",
        "sm_90a", {},
    ),
    "2:4, three consumers": (
        "n8h7w14c64k64r3s3p1:w4a4:signed-2of4.signed", "wg24-tw14-tr1-cm1-cr3-sg1-st6-la1-res1", "sm_90a", {},
    ),
}  # fmt: skip
"""Kernels that skip zeros beside the shipped ones: spec, key, architecture, options."""
Found = tuple[str, str, str, str, dict[str, Any]]
"""Name, workload's spec, configuration's key, architecture, options of the output."""


def everything() -> list[Entry]:
    """Every kernel once, with all names it goes by."""
    return _named(chain(shipped(), recommended(), gpu_tests(), tuned(), bit_planes(), zeros()))


def _named(found: Iterable[Found]) -> list[Entry]:
    """Each kernel once."""
    names: dict[str, tuple[list[str], Entry]] = {}
    for name, spec, key, arch, options in found:
        place = json.dumps([spec, key, arch, options])
        known, _ = names.setdefault(place, ([], Entry((), spec, key, arch, options)))
        if name not in known:
            known.append(name)
    return [Entry(tuple(known), e.spec, e.key, e.arch, e.options) for known, e in names.values()]


def added(held: Iterable[Entry]) -> tuple[Entry, ...]:
    """The kernels on bit planes, and those that skip zeros, that are not held yet."""
    known = {one.place for one in held}
    return tuple(one for one in _named(chain(bit_planes(), zeros())) if one.place not in known)


def zeros() -> Iterator[Found]:
    """Kernels that skip zeros; the shipped ones are among those of :func:`bit_planes`."""
    yield from ((name, *found) for name, found in ZEROS.items())


def bit_planes() -> Iterator[Found]:
    """One kernel on bit planes for each part of the generators, and the shipped ones."""
    yield from ((name, *found) for name, found in BIT_PLANES.items())
    yield from (found for found in shipped() if ":" in found[1])
    fused = json.loads((ROOT / "toolkit/subbyte/kernel/fused.json").read_text())
    for place, entry in fused.items():
        spec, _, output = place.partition(" ")
        key = library.key_of(entry["config"])
        assert key is not None
        yield "best, fused", spec, key, "sm_90a", {"output": output}


def shipped() -> Iterator[Found]:
    """The fastest configuration of each layer, of both families; compile takes one of the two."""
    best = json.loads((ROOT / "toolkit/subbyte/kernel/best.json").read_text())
    for spec, entry in best.items():
        for name, one in (("best", entry), ("best warp", entry.get("warp"))):
            if one is not None:
                key = library.key_of(one["config"])
                assert key is not None
                yield name, spec, key, "sm_90a", {}


def recommended() -> Iterator[Found]:
    """The recommended configurations of the mma family, those of the paper's layers without a record, each with its
    switches and outputs, on all architectures."""
    from subbyte.errors import SubbyteError
    from subbyte.kernel.default import default_config
    from subbyte.workload import workload

    folder = ROOT / "toolkit/subbyte/kernel/recommended"
    for file in sorted(folder.glob("*.json")):
        data = json.loads(file.read_text())
        found = workload(data["workload"]) if "." in data["workload"] else workload(file.name.partition("-")[0])
        for arch in ARCHS:
            base = library.key_of(data["config"])
            assert base is not None
            for key in (base, default_config(found, arch).key):
                for options in ({}, {"output": "int32"}, {"requant": "general"}, {"clip": [0, 7]}):
                    try:
                        library.kernel(found.spec, key, arch, options)
                    except SubbyteError:
                        continue
                    yield ("recommended" if key == base else "default"), found.spec, key, arch, options


def tuned() -> Iterator[Found]:
    """The finals of the last tuning record, and what was measured beside other libraries."""
    results = ROOT / "benchmarks/results"
    for name in TUNING:
        data = json.loads(gzip.decompress((results / "warpgroup" / name).read_bytes()))
        yield from _configurations(name.removesuffix(".json.gz"), data["finals"])
        yield from _configurations(name.removesuffix(".json.gz"), [
            {"spec": spec, "texts": texts} for spec, texts in data.get("texts", {}).items()
        ])  # fmt: skip
    for name in SIDE_BY_SIDE:
        yield from _configurations("side by side", json.loads((results / "baselines" / name).read_text()))


def _configurations(name: str, data: Any, spec: str = "") -> Iterator[Found]:
    """Every configuration in a record, under the spec that stands next above it."""
    if isinstance(data, list):
        for one in data:
            yield from _configurations(name, one, spec)
        return
    if not isinstance(data, dict):
        return
    workload = data.get("workload")
    spec = data.get("spec", workload.get("spec", spec) if isinstance(workload, dict) else spec)
    config = data.get("config")
    if spec and isinstance(config, dict):
        key = library.key_of(config)
        if key is not None:
            yield name, spec, key, "sm_90a", {}
    for one in data.values():
        yield from _configurations(name, one, spec)


def gpu_tests() -> Iterator[Found]:
    """What tests/gpu builds, and the form of each design variant that racecheck runs."""
    from build_kernels import SHAPES, wanted_kernels, warp_kernels  # type: ignore[import-not-found]
    from warpgroup_cases import VARIANTS

    from subbyte.errors import SubbyteError
    from subbyte.workload import workload

    wanted = [("sm_90a", named) for named in wanted_kernels("sm_90a", False, True)]
    for arch in ("sm_75", "sm_80"):
        import numpy as np

        rng = np.random.default_rng(0)
        wanted += [(arch, named) for spec in SHAPES[:4] for named in warp_kernels(workload(spec), arch, rng)]
    wanted.sort(key=lambda one: one[1][0] not in VARIANTS)
    for arch, (name, found, config, options) in wanted:
        key = config.key if config is not None else _chosen(found)
        plain = {k: list(v) if isinstance(v, tuple) else v for k, v in options.items()}
        forms: list[dict[str, Any]] = [{}] + [{"form": "every lane arrives"}] * (name in VARIANTS)
        for form in forms:
            try:
                library.kernel(found.spec, key, arch, {**plain, **form})
            except SubbyteError:
                continue
            yield (name if name in VARIANTS else f"gpu {name}"), found.spec, key, arch, {**plain, **form}


def _chosen(found: Any) -> str:
    from subbyte.kernel.choose import best_known

    return str(best_known(found, family="wgmma")[0].key)


def commit() -> str:
    """The commit of the checkout, from git's own files; empty without them."""
    import subprocess

    done = subprocess.run(["git", "rev-parse", "HEAD"], cwd=Path(ROOT), capture_output=True, text=True)
    return done.stdout.strip()
