"""A built kernel as files for programs without Python: machine code, launch data and a C header.

The header holds everything a C or C++ program needs: constants, the machine code, and functions that load and launch
the kernel and convert operands. It is made from ``export_template.h``, with the sections that this kernel's layouts
need.
"""

from __future__ import annotations

import hashlib
import json
import re
from math import prod
from pathlib import Path
from typing import TYPE_CHECKING, Any

import subbyte
from subbyte.errors import InvalidInput, Unsupported
from subbyte.families.base import Plan
from subbyte.families.registry import family_of
from subbyte.files import replace_file
from subbyte.kernel.export_added import BODIES, added_to, added_words
from subbyte.kernel.operands import begun_most
from subbyte.numerics.fusion import ADDED, base_of
from subbyte.numerics.reference import accumulator_bound
from subbyte.numerics.thresholds import LINE, THRESHOLDS
from subbyte.workload.conv import BATCH_GROUP, ceil_div
from subbyte.workload.coverage import four_bits_alone, int4_alone
from subbyte.workload.precision import INT4, SUMS

if TYPE_CHECKING:
    from subbyte.kernel.kernel import Kernel

FORMAT, SCHEMA = "subbyte-kernel", 1
C_NAMES = {"A": "x", "Wt": "w", "Prm": "parameters", "Res": "residual", "Out": "y"}
"""Names of the kernel arguments in the header."""
BUFFERS = {"A": "ACTIVATION", "Wt": "WEIGHT", "Prm": "PARAMETER", "Res": "RESIDUAL", "Out": "OUTPUT"}
BYTES_PER_LINE = 24
LONGEST_STEM = 120
_ELEMENTS = {1: "thirty-two", 2: "sixteen", 4: "eight", 8: "four"}
"""How many elements of this many bits fit in a word, spelled out."""
_PARAMETERS = {
    "float": ("parameters_float", "line", "third_float", "parameters_float_of_lines"),
    "begun": ("parameters_float", "line", "third_begun", "parameters_float_of_lines"),
    LINE: ("line", "parameters_line"),
}
"""Sections for parameter layouts that have several variants."""
OVERLAP_USAGE = """
 *   launch_overlapping(the same)             instead of launch, behind another kernel of the stream"""


def export(kernel: Kernel, folder: Path) -> list[Path]:
    """Write ``<stem>.cubin``, ``<stem>.json`` and ``<stem>.h`` into ``folder``, which is created if missing. Returns
    the files.

    Existing files with the same stem are replaced. Raises InvalidInput when the folder cannot be written.
    """
    plan = kernel.plan
    types = plan.workload.precision
    if missing := [name for name in _names(plan) if name not in _sections(plan)]:
        raise Unsupported(
            f"export of {plan.workload}: C headers are written for {INT4}, not for {types} (its family gives no "
            f"{', '.join(missing)})"
        )
    stem = stem_of(plan)
    contents = {
        "cubin": kernel.cubin,
        "json": (json.dumps(description(kernel), indent=2) + "\n").encode(),
        "h": header(plan, kernel.cubin).encode(),
    }
    files = [folder / f"{stem}.{suffix}" for suffix in contents]
    try:
        folder.mkdir(parents=True, exist_ok=True)
        for file, content in zip(files, contents.values(), strict=True):
            replace_file(file, content)
    except OSError as error:
        raise InvalidInput(
            f"cannot export to the folder {folder}: {error.strerror} ({error.filename}); give a folder that is new or "
            "can be written"
        ) from None
    return files


def stem_of(plan: Plan) -> str:
    """File stem and C prefix: workload, architecture and output, then anything else that changes the result or its
    layout.

    It does not depend on the schedule, so a better kernel replaces the old files.
    """
    parts = [plan.workload.label, plan.arch.name, plan.output]
    if plan.layout != "nhwcnc":
        parts.append(plan.layout)
    if plan.output != SUMS:
        output = plan.workload.precision.output
        if plan.clip != (output.least, output.largest):
            parts.append("clip" + "to".join(str(value).replace("-", "m") for value in plan.clip))
        if plan.requant != "fixed":
            parts.append(plan.requant)
    stem = re.sub(r"[^0-9A-Za-z]+", "_", "_".join(parts)).strip("_").lower()
    if len(stem) > LONGEST_STEM:  # file names are limited to 255 characters
        stem = f"{stem[: LONGEST_STEM - 9]}_{hashlib.sha256(stem.encode()).hexdigest()[:8]}"
    return f"conv_{stem}" if stem[0].isdigit() else stem


def description(kernel: Kernel) -> dict[str, Any]:
    """The exported kernel as plain data: workload, configuration, launch and operand layouts."""
    plan, w = kernel.plan, kernel.workload
    sizes = {name: getattr(w, name) for name in ("n", "h", "w", "c", "k", "r", "s", "pad", "stride", "dilation")}
    data: dict[str, Any] = {
        "format": FORMAT,
        "schema": SCHEMA,
        "version": subbyte.__version__,
        "stem": stem_of(plan),
        "arch": kernel.arch,
        "workload": {"name": w.label, "spec": w.spec, **sizes, "p": w.p, "q": w.q},
        "config": kernel.config.to_dict(),
        "atom": plan.atom.name,
        "output": kernel.output,
        "launch": kernel.launch.to_dict(),
        "operands": _operands(plan),
        "resources": kernel.resources.to_dict(),
        "cubin": {"bytes": len(kernel.cubin), "sha256": hashlib.sha256(kernel.cubin).hexdigest()},
    }
    if kernel.output != SUMS:
        data["clip"], data["requant"] = list(plan.clip), plan.requant
    return data


def header(plan: Plan, cubin: bytes) -> str:
    """The text of the C header for a plan and its machine code."""
    sections = _sections(plan)
    words = family_of(plan.config).export(plan).words
    values = {**_constants(plan), **_words(plan), **words, **_machine_code(cubin)}

    def filled(text: str) -> str:
        return re.sub(r"@(\w+)@", lambda match: values[match[1]], text)

    values |= {name: filled(values[name]) for name in BODIES}
    return filled("\n".join(sections[name] for name in _names(plan)))


def _names(plan: Plan) -> list[str]:
    """The names of the header's sections for a plan, in order."""
    names = ["top", "index", "operands", "weights"]
    if plan.output != SUMS:
        form = re.split(r"\d", plan.parameter_form.removesuffix(ADDED), maxsplit=1)[0]
        names += _PARAMETERS.get(form, (f"parameters_{form}",))
    names += ["residual"] if added_to(plan) else []
    return [*names, "output", "driver", *(["overlapping"] if plan.launch.dependent_launch else []), "end"]


def _sections(plan: Plan) -> dict[str, str]:
    """Section texts by name: the template's parts by their ``//@`` lines, then those of the family."""
    text = Path(__file__).with_name("export_template.h").read_text(encoding="utf-8")
    parts = re.split(r"^//@ (\w+)\n", text, flags=re.MULTILINE)
    found = {name: body.strip("\n") + "\n" for name, body in zip(parts[1::2], parts[2::2], strict=True)}
    if four_bits_alone(plan.workload) is None:
        output = "output_sums" if plan.output == SUMS else "output_values"
        found |= {"index": found[f"index_{plan.layout}"], "output": found[output]}
    else:
        del found["operands"]
    return found | dict(family_of(plan.config).export(plan).sections)


def _shapes(plan: Plan) -> dict[str, tuple[int, ...]]:
    """Shape of each argument's words (or int32 sums), by the argument's name."""
    w, types, packed = plan.workload, plan.workload.precision, plan.layout == "nhwcnc"
    images = w.batch_groups * BATCH_GROUP

    def tensor(height: int, width: int, blocks: int, words: int) -> tuple[int, ...]:
        if packed:
            return (w.batch_groups, height, width, blocks, BATCH_GROUP, words)
        return (images, height, width, blocks * words)

    shapes: dict[str, tuple[int, ...]] = {
        "A": tensor(w.h, w.w, w.channel_blocks, types.activations.block_words),
        "Wt": family_of(plan.config).export(plan).weight_shape,
        "Out": tensor(
            w.p, w.q, w.filter_blocks, types.output.block if plan.output == SUMS else types.output.block_words
        ),
        "Prm": (4 if added_to(plan) else 3, w.padded_filters),
    }
    if operand := added_to(plan):
        shapes["Res"] = tensor(w.p, w.q, ceil_div(w.k, operand.block), 4)
    shapes |= family_of(plan.config).export(plan).shapes
    return {argument.name: shapes[argument.name] for argument in plan.launch.arguments}


def _operands(plan: Plan) -> dict[str, Any]:
    """By the header's names: the caller's array, and the words on the device."""
    w, types = plan.workload, plan.workload.precision
    y_type = SUMS if plan.output == SUMS else types.output.dtype
    host: dict[str, dict[str, Any]] = {
        "A": {"dtype": types.activations.dtype, "shape": [w.n, w.h, w.w, w.c], "axes": "NHWC"},
        "Wt": {"dtype": types.weights.dtype, "shape": [w.k, w.r, w.s, w.c], "axes": "KRSC"},
        "Out": {"dtype": y_type, "shape": [w.n, w.p, w.q, w.k], "axes": "NPQK"},
        "Prm": {"dtype": "int32", "shape": [3, w.k], "axes": "bias, multiplier, shift"},
    }
    if operand := added_to(plan):
        host["Res"] = {"dtype": operand.dtype, "shape": [w.n, w.p, w.q, w.k], "axes": "NPQK"}
        host["Prm"] = {"dtype": "int32", "shape": [4, w.k], "axes": "bias, multiplier, shift, added"}
    if given := family_of(plan.config).export(plan).parameters:
        host["Prm"] = dict(given)
    shapes = _shapes(plan)
    return {
        C_NAMES[a.name]: {
            "argument": a.name, "role": a.role, "host": host[a.name],
            "device": {"dtype": a.dtype, "shape": list(shapes[a.name]), "form": a.form, "bytes": a.nbytes},
        }
        for a in plan.launch.arguments
    }  # fmt: skip


def _defines(name: str, values: dict[str, Any]) -> str:
    return "\n".join(f"#define {name}_{key} {value}" for key, value in values.items())


def _constants(plan: Plan) -> dict[str, str]:
    """The blocks of ``#define`` lines, and the names of the C functions."""
    w, launch, stem = plan.workload, plan.launch, stem_of(plan)
    name = stem.upper()
    shape = {key: getattr(w, key.lower()) for key in ("N", "H", "W", "C", "K", "R", "S", "P", "Q")}
    shape |= {"PAD": w.pad, "STRIDE": w.stride, "DILATION": w.dilation}
    shape |= {"CHANNEL_BLOCKS": w.channel_blocks, "FILTER_BLOCKS": w.filter_blocks}
    shape |= family_of(plan.config).export(plan).defines
    if plan.output != SUMS:
        shape |= {f"CLIP_{end}": f"({value})" for end, value in zip(("LOW", "HIGH"), plan.clip, strict=True)}
    start: dict[str, Any] = {"ENTRY": f'"{launch.entry}"', "SHARED_BYTES": launch.shared_bytes}
    for what, sizes in (("GRID", launch.grid), ("BLOCK", launch.block)):
        start |= {f"{what}_{axis}": size for axis, size in zip("XYZ", sizes, strict=True)}
    if launch.cluster > 1:
        start["CLUSTER"] = f"{launch.cluster} /* neighbouring blocks, as the machine code says by itself */"
    buffers = {}
    for argument in launch.arguments:
        words = prod(argument.shape)
        buffers[f"{BUFFERS[argument.name]}_WORDS"] = f"((size_t){words})"
        buffers[f"{BUFFERS[argument.name]}_BYTES"] = f"((size_t){argument.nbytes})"
    outside = "outside -8..7" if int4_alone(w) is None else "that is no value of its type"
    returns = {"OK": "0", "BAD_VALUE": f"1 /* an operand {outside}, or a parameter outside its range */"}
    if plan.output != SUMS and plan.requant == "fixed" and plan.parameter_form != THRESHOLDS:
        returns["NOT_EXACT"] = "2 /* parameters that this kernel cannot apply exactly */"
    return {
        "stem": stem, "NAME": name, "version": subbyte.__version__, "arch": plan.arch.name,
        "shape": _defines(name, shape), "launch": _defines(name, start), "buffers": _defines(name, buffers),
        "returns": _defines(name, returns),
        "arguments": ", ".join(f"&{C_NAMES[argument.name]}" for argument in launch.arguments),
    }  # fmt: skip


def _words(plan: Plan) -> dict[str, str]:
    """The words inserted into the comments: sizes, layouts and, for a requantizing kernel, its parameters."""
    w, types, quantized = plan.workload, plan.workload.precision, plan.output != SUMS
    sizes = {key: str(getattr(w, key)) for key in ("n", "h", "w", "c", "k", "r", "s", "p", "q")}
    sizes |= {key: str(getattr(w, key)) for key in ("pad", "stride", "dilation")}
    label = _in_a_comment(w.label)
    shapes = {f"{C_NAMES[key]}_words": "".join(f"[{n}]" for n in shape) for key, shape in _shapes(plan).items()}
    more = added_words(plan)
    usage = (
        f" *   prepare_parameters(bias, multiplier, shift, {'added, ' if added_to(plan) else ''}words)\n"
        " *                                            words to the device, PARAMETER_BYTES\n"
    )
    read = " *   parameters  PARAMETER_BYTES, as prepare_parameters makes them\n"
    grid, block = (map(str, size) for size in (plan.launch.grid, plan.launch.block))
    return {
        **sizes, **shapes, **more,
        "title": f"{label} ({w.spec}): {_a(types.label)} convolution for {plan.arch.name}.",
        "x_type": types.activations.name, "x_values": f"{types.activations.least}..{types.activations.largest}",
        "w_type": types.weights.name, "w_values": f"{types.weights.least}..{types.weights.largest}",
        "x_host": types.activations.dtype,
        "packing": "A word is a uint32 with element i of {} at bits {}i.".format(
            _ELEMENTS.get(types.activations.bits, "a word"), types.activations.bits
        ),
        "x_least": str(types.activations.least), "x_largest": str(types.activations.largest),
        "y_zero": str(-types.output.least), "y_second": f"({types.output.least + 1})",
        "output": base_of(plan.output),
        "clip": f", requantized and clipped to {plan.clip[0]}..{plan.clip[1]}" if quantized else ", the raw sums",
        "host_y": types.output.dtype if quantized else SUMS,
        "images": str(w.batch_groups * BATCH_GROUP),
        "channels": str(w.channel_blocks * types.activations.block),
        "filters": str(w.padded_filters),
        "channel_blocks": str(w.channel_blocks), "filter_blocks": str(w.filter_blocks), "taps": str(w.r * w.s),
        "grid": ", ".join(grid), "block": ", ".join(block),
        "shared": f"{plan.shared_bytes:,}", "shared_bytes": str(plan.shared_bytes),
        "largest_sum": str(types.largest_product * w.r * w.s * w.c),
        "fixed_shift": str(32 - plan.atom.scale_log2),
        "scale_log2": str(plan.atom.scale_log2), **_line_words(plan),
        "usage_parameters": usage if quantized else "",
        "usage_device": ("parameters, " if quantized else "") + more["usage_device"],
        "usage_overlap": OVERLAP_USAGE if plan.launch.dependent_launch else "",
        "launch_parameters": (read if quantized else "") + more["launch_parameters"],
        "launch_argument": ("CUdeviceptr parameters, " if quantized else "") + more["launch_argument"],
    }  # fmt: skip


def _line_words(plan: Plan) -> dict[str, str]:
    """The numbers of the form that requantizes with one floating-point multiplication: units, and the limit on what is
    added to sums."""
    if most := begun_most(plan.parameter_form):
        least = accumulator_bound(plan.workload) << plan.atom.scale_log2
        return {"line_unit": "1.0", "line_first": "0", "line_most": str(most), "constant_first": str(least)}
    unit, first = "19807040628566084398385987584.0", "((int64_t)94 << 23)"  # 2^94
    return {"line_unit": unit, "line_first": first, "line_most": "0x7F7FFFFF", "constant_first": str(127 << 23)}


def _a(word: str) -> str:
    return f"an {word}" if word[0] in "aeiou" else f"a {word}"


def _in_a_comment(words: str) -> str:
    """Text that can neither end nor begin a C comment, on one line, without invisible characters."""
    shown = "".join(sign if sign.isprintable() else "?" for sign in " ".join(words.split()))
    return shown.replace("*/", "* /").replace("/*", "/ *").replace("??", "? ?")


def _machine_code(cubin: bytes) -> dict[str, str]:
    starts = range(0, len(cubin), BYTES_PER_LINE)
    lines = ["    " + ",".join(map(str, cubin[start : start + BYTES_PER_LINE])) for start in starts]
    return {"cubin": ",\n".join(lines), "cubin_bytes": str(len(cubin))}
