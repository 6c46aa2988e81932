"""Write the texts of the kernels to compare, where TVM is: python benchmarks/operands build FILE.jsonl

Of each stage of ResNet-50 at batch 8 and 256 the kernel that ``subbyte.compile`` takes, for int4 values, for uint4
ones and for each type of residual; for 8-bit activations beside int8 and int4 weights and for zero points that of
each family. ``--sides`` asks for some of them.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import subbyte
from benchmarks.shared.command import answering, parser_of
from subbyte.errors import InvalidInput, did_you_mean, shown
from subbyte.files import prove_writable, write_file
from subbyte.records.describe import to_line

UNSIGNED = ":w4a4:signed.unsigned"
SIGNED_BYTES = ":w8a8:signed.signed"
BYTES = {
    "int8 x uint8": ":w8a8",
    "int8 x int8": SIGNED_BYTES,
    "int4 x uint8": ":w4a8",
    "uint4, zero point": ":w4a4:signed.offset-z7",
    "int8 x uint8, zero point": ":w8a8:offset.offset-z100",
}
"""Types that both families take and nobody has measured."""
SIDES: dict[str, tuple[str, str | None, str]] = {
    "int4": ("", None, "auto"),
    "uint4": (UNSIGNED, None, "auto"),
    "int4 + int4": ("", "int4+addint4", "auto"),
    "uint4 + uint4": (UNSIGNED, "uint4+adduint4", "auto"),
    "int4 + int8": ("", "int4+addint8", "auto"),
    **{f"{name} ({family})": (types, None, family) for name, types in BYTES.items() for family in ("wgmma", "mma")},
}
"""Types of a layer, its output and the family, by the name of the side; the first is what others are compared with."""
LAYERS = [f"resnet50.stage{stage}@{batch}" for batch in (8, 256) for stage in (2, 3, 4, 5)]


@answering
def main(arguments: Sequence[str]) -> int:
    """Write the texts."""
    parser = parser_of("operands build", __doc__)
    parser.add_argument("file", type=Path)
    parser.add_argument("--sides", default=";".join(SIDES), help="names with semicolons between (default: all)")
    asked = parser.parse_args(arguments)
    prove_writable(asked.file)
    lines = []
    names = asked.sides.split(";")
    if unknown := [name for name in names if name not in SIDES]:
        raise InvalidInput(f"side {shown(unknown[0])}: {did_you_mean(unknown[0], SIDES)}")
    for layer in LAYERS:
        for side in names:
            types, output, family = SIDES[side]
            kernel = subbyte.compile(layer + types, output=output, family=family)
            lines.append(to_line({
                "side": side, "label": layer, "family": "", "layer": kernel.workload.spec, "config": kernel.config.key,
                "output": kernel.output, "requant": kernel.plan.requant, "cuda": kernel.cuda,
            }))  # fmt: skip
            print(f"{layer} {side}: {kernel.config.key}", flush=True)
    write_file(asked.file, "".join(f"{line}\n" for line in lines).encode())
    return 0
