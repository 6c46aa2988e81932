"""Arguments and output shared by the commands."""

from __future__ import annotations

import argparse
import json
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from subbyte.errors import InvalidInput, SubbyteError
from subbyte.numerals import natural
from subbyte.streams import put, say

if TYPE_CHECKING:
    from subbyte.families.base import Family
    from subbyte.spaces.configuration import Configuration
    from subbyte.workload import ConvWorkload

SCHEMA = 1
"""Version of the objects that ``--json`` prints."""
MOST_SEED = 2**32 - 1


def command_parser(subparsers: Any, name: str, description: str, example: str) -> argparse.ArgumentParser:
    """The parser of one command (or of a subcommand) with ``--json`` and an example below its help."""
    parser: argparse.ArgumentParser = subparsers.add_parser(
        name, help=description.splitlines()[0], description=description, epilog=f"example:\n  {example}"
    )
    add_json_argument(parser)
    return parser


def add_json_argument(parser: argparse.ArgumentParser) -> None:
    """``--json``: args.json."""
    parser.add_argument("--json", action="store_true", help="print one JSON object on stdout, all else on stderr")


def add_workload_argument(parser: argparse.ArgumentParser, default: str | None = None) -> None:
    """``WORKLOAD``: args.workload is a ConvWorkload. It is optional if there is a default."""
    text = (
        "a layer with its batch (resnet50.stage2@8), a spec (n8h56w56c64k64r3s3p1) or a matrix product "
        "(gemm64x1024x1024); append :w1a2 for weights of 1 bit and activations of 2 instead of int4"
    )
    if default is None:
        parser.add_argument("workload", metavar="WORKLOAD", type=_workload, help=text)
        return
    text += f"; default {default}"
    parser.add_argument("workload", metavar="WORKLOAD", type=_workload, nargs="?", default=default, help=text)


def add_workloads_argument(parser: argparse.ArgumentParser, nargs: str = "+") -> None:
    """``WORKLOAD...``: args.workloads is a list of texts for :func:`subbyte.workloads`; networks are allowed."""
    text = (
        "a layer (resnet50.stage2@8), a network (resnet50@8), a spec (n8h56w56c64k64r3s3p1) or a matrix product "
        "(gemm64x1024x1024); batch 8 without @; append :w1a2 for weights of 1 bit and activations of 2 instead of int4"
    )
    parser.add_argument("workloads", metavar="WORKLOAD", nargs=nargs, help=text)


def add_sparsity_argument(parser: argparse.ArgumentParser) -> None:
    """``--sparsity``, which :func:`take_sparsity` applies to the workloads."""
    text = (
        "pattern of zeros in the weights: 2:4 (at most two of every four neighbouring input channels are nonzero), "
        "blocks:0.25 (a quarter of the blocks of 64 filters x 32 channels of a tap are nonzero) or condense (zeros "
        "anywhere in both operands, found by the kernel); default dense"
    )
    parser.add_argument("--sparsity", metavar="KIND", type=_sparsity, default="dense", help=text)


def take_sparsity(args: argparse.Namespace) -> None:
    """Apply ``--sparsity`` to args.workload or to each of args.workloads.

    With ``--sparsity condense`` it also sets args.family to the family whose kernels find zeros. Raises InvalidInput
    for weights that cannot be 0, and for another family.
    """
    from subbyte.families.registry import finding_zeros
    from subbyte.workload.sparsity import FOUND, text_with_sparsity, with_sparsity

    if args.sparsity == FOUND and hasattr(args, "family"):
        args.family = finding_zeros(args.family or "auto").name
    if hasattr(args, "workload"):
        args.workload = with_sparsity(args.workload, args.sparsity)
    if hasattr(args, "workloads"):
        args.workloads = [text_with_sparsity(one, args.sparsity) for one in args.workloads]


def add_arch_argument(parser: argparse.ArgumentParser, default: str | None = "sm_90a") -> None:
    """``--arch``: args.arch is the name of a known architecture."""
    shown = f" (default {default})" if default else ""
    text = f"architecture: sm_75, sm_80, sm_86, sm_89 or sm_90a{shown}"
    parser.add_argument("--arch", metavar="ARCH", type=_arch, default=default, help=text)


def add_config_arguments(
    parser: argparse.ArgumentParser, family: str = "", chosen: str = "", named: Iterable[str] = ()
) -> None:
    """``--set knob=value``, repeatable, and ``--family`` with its default (empty: the usual one): read them with
    :func:`configuration`. ``auto`` may also be given explicitly. ``chosen`` describes how the command chooses by
    default: args.family is None then. ``named`` are the families that the help lists, if not all."""
    from subbyte.families.registry import family_names, usual

    family = family or usual().name
    text = "set a knob or switch of the configuration: chunk=2, layout=nhwc; several may follow"
    parser.add_argument("--set", metavar="KNOB=VALUE", dest="settings", action="append", default=[], help=text)
    *others, last = named or family_names()
    text = f"family of kernels: {', '.join(others)}{' or ' if others else ''}{last}; default {chosen or family}"
    if family == "auto":
        text += ": the one that has the knobs of --set, else the one that is faster, measured or estimated"
    allowed = ("auto", *family_names()) if chosen or family == "auto" else family_names()
    parser.add_argument("--family", metavar="FAMILY", type=_family(allowed), default=None if chosen else family,
                        help=text)  # fmt: skip


def asked_settings(args: argparse.Namespace) -> dict[str, str]:
    """The values of ``--set`` by knob. Raises InvalidInput for a text that is not ``knob=value``, and for a knob that
    is set twice."""
    values: dict[str, str] = {}
    known: set[str] = set()
    for setting in args.settings:
        knob, equals, value = setting.partition("=")
        if not (knob and equals and value):
            raise InvalidInput(f"--set {setting}: expected knob=value, such as --set chunk=2")
        name = knob.strip().lower().replace("-", "_")
        if name in known:
            raise InvalidInput(f"--set {setting}: {name} is set twice; set it once")
        known.add(name)
        values[knob.strip()] = value.strip()
    return values


def asked_family(args: argparse.Namespace) -> str:
    """``--family`` or, if it is auto, the only family with the knobs of ``--set``; if several have them, the usual one,
    or if that does not compute these operands, the newest that does.

    Raises InvalidInput when ``--set`` names knobs of several families, or one that no family has.
    """
    named: str = args.family
    if named != "auto":
        return named
    from subbyte.families.registry import families
    from subbyte.spaces.configuration import named_once

    settings = asked_settings(args)
    former = {name for family in families().values() for name in family.removed}
    today = {name: value for name, value in named_once(settings).items() if name not in former}
    named_once(today, {name for family in families().values() for name in family.knobs})
    owners = {family: knob for knob in settings if (family := _owner(args, knob)) is not None}
    if len(owners) > 1:
        each = ", ".join(f"{knob} is a knob of the {family} family" for family, knob in owners.items())
        raise InvalidInput(f"--set: {each}; set knobs of one family only")
    return next(iter(owners), None) or _computing(args, set(today))


def _computing(args: argparse.Namespace, knobs: set[str]) -> str:
    """The family to use among those that have all knobs: the usual one, or the newest that computes the operands."""
    from subbyte.families.registry import newest_first, usual

    having = [usual(), *(family for family in newest_first() if knobs <= set(family.knobs))]
    return _able(args, having)[0].name if knobs else usual().name


def _able(args: argparse.Namespace, found: list[Family]) -> list[Family]:
    """The families among ``found`` that compute the workload; all of them if none does, or if there is no workload."""
    from subbyte.device.arch import arch
    from subbyte.workload import workload

    if not hasattr(args, "workload"):
        return found
    layer, target = workload(args.workload), arch(getattr(args, "arch", None) or "sm_90a")
    return [family for family in found if family.hopeless(layer, target) is None] or found


def configuration(args: argparse.Namespace, base: Configuration | None = None) -> Configuration | None:
    """``base`` with the values of ``--set``; without ``--set`` the base itself, which may be None.

    Without a base the values change the default configuration of the family. Raises InvalidInput.
    """
    from subbyte.families.registry import family_named, usual

    values = asked_settings(args)
    has_family = hasattr(args, "family")
    family = family_named(asked_family(args)) if has_family else usual()
    if not values and (base or family is usual()):
        return base
    for knob in values if has_family else ():
        owners = _owners(args, knob)
        if owners and family.name not in owners and (len(owners) == 1 or args.family == "auto"):
            several = f"{' and '.join(owners)} famil{'y' if len(owners) == 1 else 'ies'}"
            raise InvalidInput(f"{knob} is a knob of the {several}: add --family {owners[0]}")
    return family.changed(base or family.plain, values)


def kind_list() -> str:
    """The kinds of spaces, for a help text."""
    from subbyte.families.registry import kinds

    return ", ".join(kinds())


def _owner(args: argparse.Namespace, knob: str) -> str | None:
    """The only family with a knob of this name."""
    owners = _owners(args, knob)
    return owners[0] if len(owners) == 1 else None


def _owners(args: argparse.Namespace, knob: str) -> list[str]:
    """The families with a knob of this name; only those that compute the workload, if any does."""
    from subbyte.families.registry import families

    name = knob.lower().replace("-", "_")
    return [one.name for one in _able(args, [one for one in families().values() if name in one.names])]


def _family(allowed: Sequence[str]) -> Callable[[str], str]:
    """An argument type: one of these families, also by its name in earlier or later versions."""

    def named(text: str) -> str:
        from subbyte.families.registry import family_named

        if text == "auto" and "auto" in allowed:
            return text
        try:
            return family_named(text).name
        except InvalidInput:
            raise argparse.ArgumentTypeError(f"{text[:80]!r}: choose from {', '.join(allowed)}") from None

    return named


def spread_settings(argv: Sequence[str]) -> list[str]:
    """``--set a=1 b=2`` as ``--set a=1 --set b=2``, so that a WORKLOAD may follow the last one."""
    spread: list[str] = []
    setting = False
    for word in argv:
        if setting and "=" in word and not word.startswith("-") and spread[-1] != "--set":
            spread.append("--set")
        setting = word == "--set" or (setting and "=" in word and not word.startswith("-"))
        spread.append(word)
    return spread


def emit(command: str, payload: Mapping[str, Any], args: argparse.Namespace, text: str) -> None:
    """Print a command's result on stdout: ``text``, or with ``--json`` one versioned object.

    Raises NotWritten if stdout cannot be written.
    """
    if args.json:
        put(json.dumps({"schema": SCHEMA, "command": command, **payload}, allow_nan=False))
    elif text:
        put(text)


def emit_and_save(
    command: str,
    payload: Mapping[str, Any],
    args: argparse.Namespace,
    text: str,
    save: Callable[[], object],
    saved: str = "",
) -> int:
    """Save a result, print it whether or not that worked, and return 0 or the exit code of the failure.

    ``saved`` is printed after the text on success. On failure with ``--json``, the one object has ``error`` besides the
    result, and its ``file`` is null.
    """
    try:
        save()
    except SubbyteError as error:
        failed: dict[str, Any] = {"file": None} if "file" in payload else {}
        failed |= {"error": _failure(type(error).__name__, str(error), error.exit_code)}
        emit(command, {**payload, **failed}, args, text)
        say(f"subbyte: {error}")
        return error.exit_code
    emit(command, payload, args, text + saved)
    return 0


def emit_error(command: str | None, kind: str, message: str, exit_code: int) -> None:
    """Print a failure on stdout as one versioned object; ``kind`` is the name of the error's class."""
    put(json.dumps({"schema": SCHEMA, "command": command, "error": _failure(kind, message, exit_code)}))


def _failure(kind: str, message: str, exit_code: int) -> dict[str, Any]:
    return {"kind": kind, "message": message, "exit_code": exit_code}


def positive(text: str) -> int:
    """A positive integer; the error is the one argparse prints."""
    number = natural(text)
    if not number:
        raise argparse.ArgumentTypeError(f"{shown(text)}: expected a positive integer")
    return number


def natural_number(text: str) -> int:
    """An integer from 0; the error is the one argparse prints."""
    number = natural(text)
    if number is None:
        raise argparse.ArgumentTypeError(f"{shown(text)}: expected a whole number, 0 or more")
    return number


def seed(text: str) -> int:
    """A seed that every generator accepts: 0 to 2^32 - 1; the error is the one argparse prints."""
    number = natural(text)
    if number is None or number > MOST_SEED:
        raise argparse.ArgumentTypeError(f"{shown(text)}: expected a seed, a whole number from 0 to {MOST_SEED}")
    return number


def seconds(text: str) -> float:
    """A finite number of seconds above 0; the error is the one argparse prints."""
    try:
        value = float(text)
    except ValueError:
        value = 0.0
    if not 0 < value < float("inf"):
        raise argparse.ArgumentTypeError(f"{shown(text)}: expected seconds above 0")
    return value


def shown(text: str, most: int = 60) -> str:
    """A text for a message: quoted, and truncated if it is long."""
    return repr(text) if len(text) <= most else f"{text[:most]!r}... ({len(text)} characters)"


def _argument(convert: Callable[[str], Any], text: str) -> Any:
    """``convert(text)``, with its InvalidInput turned into the error that argparse passes on verbatim."""
    try:
        return convert(text)
    except InvalidInput as error:
        raise argparse.ArgumentTypeError(str(error)) from None


def _workload(text: str) -> ConvWorkload:
    from subbyte.workload.parse import workload

    found: ConvWorkload = _argument(workload, text)
    return found


def _sparsity(text: str) -> str:
    from subbyte.workload.sparsity import checked_sparsity

    return str(_argument(checked_sparsity, text))


def density(text: str) -> float:
    """A density from 0 to 1."""
    return densities(text)[0] if "," not in text else _argument(_one_density, text)


def densities(text: str) -> tuple[float, ...]:
    """Densities from 0 to 1, separated by commas."""
    return tuple(_argument(_one_density, one) for one in text.split(","))


def _one_density(text: str) -> float:
    try:
        found = float(text)
    except ValueError:
        found = -1.0
    if not 0 <= found <= 1:
        raise InvalidInput(f"density {shown(text)}: expected a share from 0 (all zeros) to 1 (none), such as 0.05")
    return found


def _arch(text: str) -> str:
    from subbyte.device import arch

    name: str = _argument(arch, text).name
    return name
