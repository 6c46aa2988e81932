"""The ``subbyte`` command: one module for each command, imported only when that command is asked for."""

from __future__ import annotations

import argparse
import sys
import warnings
from collections.abc import Iterator, Sequence
from contextlib import suppress
from importlib import import_module

from subbyte import __version__, interrupts
from subbyte.cli.arguments import emit_error, spread_settings
from subbyte.cli.parser import Parser
from subbyte.errors import InvalidInput, MissingDependency, NotWritten, SubbyteError, did_you_mean
from subbyte.files import reason_of
from subbyte.streams import flush, say

COMMANDS = {
    "doctor": "report what this machine can do: GPU, driver, compilers, native or emulated instructions",
    "workloads": "list names, shapes and operations of convolutions",
    "explain": "show a technique as numbers: tiling, duplicates, packing, layout, fragments, taps, speed, ...",
    "sparse": "the dual-side sparse Tensor Core: its function, its cycle model, networks; no GPU has it",
    "network": "low-bit networks, from pixels to logits: list, show, run, bench, train",
    "build": "build a kernel as TIRx, CUDA, PTX, SASS or cubin; needs no GPU",
    "run": "run a kernel and check its output; emulated without a GPU",
    "tune": "search for the best configuration",
    "records": "manage what your own searches found: list, show, export, import, forget",
    "race": "compare search strategies on recorded landscapes",
    "landscape": "measure every configuration of a space once; read, export and import such files",
    "bench": "time kernels side by side with cuDNN on this GPU",
    "lab": "open JupyterLab on the first notebook",
}
"""Command -> one line of help. ``subbyte.cli.<command>`` has ``add_parser(subparsers)`` and ``run(args) -> int``."""

_DESCRIPTION = "Explore, build, run and tune sub-byte convolutions on NVIDIA Tensor Cores."
_EPILOG = """\
examples:
  subbyte doctor
  subbyte workloads resnet50
  subbyte build resnet50.stage2@8 --arch sm_80 --emit cuda

Exit codes: 0 done, 1 check failed or nothing valid found, 2 bad input, 3 the machine lacks something.
With --json a failure is also one object on stdout: {"schema", "command", "error": {"kind", "message", "exit_code"}}.
`subbyte COMMAND --help` shows the arguments of a command and an example."""
_BROKEN_PIPE = 141  # 128 + SIGPIPE, as shells report it
_LACKING = MissingDependency.exit_code


def main(argv: Sequence[str] | None = None) -> int:
    """Run one command and return its exit code; errors raised on purpose become one message on stderr.

    With ``--json``, a failure is also one object on stdout: schema, command, error (kind, message, exit_code).
    """
    words = sys.argv[1:] if argv is None else list(argv)
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("default", UserWarning)
            warnings.showwarning = _warn
            try:
                code = _run(words)
            except SystemExit as stop:  # argparse ends --help and --version this way
                code = stop.code if isinstance(stop.code, int) else 0
        flush()
        return code
    except SubbyteError as error:
        return _failed(words, type(error).__name__, str(error), error.exit_code)
    except KeyboardInterrupt:
        return _failed(words, "Interrupted", interrupts.LINE, interrupts.EXIT_CODE)
    except BrokenPipeError:
        return _BROKEN_PIPE
    except MemoryError:
        return _failed(words, "MemoryError", "out of memory: ask for less at a time", _LACKING)
    except OSError as error:
        where = f"{error.filename}: " if error.filename else ""
        said = f"{where}{reason_of(error)}: the operating system stopped subbyte"
        return _failed(words, "OSError", said, _LACKING)
    except ImportError as error:
        if (error.name or "subbyte").startswith("subbyte"):
            raise
        said = f"a package cannot be loaded: {' '.join(str(error).split())[:300]}; see `subbyte doctor`"
        return _failed(words, "ImportError", said, _LACKING)


def _warn(message: Warning | str, *_: object, **__: object) -> None:
    """A warning as one message on stderr, without its source line."""
    say(f"subbyte: {message}")


def _failed(argv: list[str], kind: str, message: str, exit_code: int) -> int:
    """Report what went wrong, to people on stderr and with ``--json`` to programs on stdout."""
    say(f"subbyte: {message}")
    if "--json" in argv:
        with suppress(NotWritten, BrokenPipeError):
            emit_error(_command(argv), kind, message, exit_code)
    return exit_code


def _command(argv: list[str]) -> str | None:
    return next((word for word in argv if not word.startswith("-")), None)


def _run(argv: list[str]) -> int:
    command = _command(argv)
    if command is not None and command not in COMMANDS:
        raise InvalidInput(f"unknown command {command!r}: {did_you_mean(command, COMMANDS)}; see `subbyte --help`")
    parser = _parser(command)
    args, unknown = parser.parse_known_args(spread_settings(argv))
    if args.command is None and not unknown:
        parser.print_help(sys.stderr)
        return InvalidInput.exit_code
    if unknown:
        flags = {flag for flag in _flags(parser, args) if flag.startswith("--")}
        hint = (
            did_you_mean(unknown[0], flags) if unknown[0].startswith("-") else "the command takes no further argument"
        )
        if unknown[0] in flags:  # a known flag, but placed before its command
            hint = f"put it after the command, `{_prog(command, args)} {unknown[0]}`"
        raise InvalidInput(f"unknown argument {unknown[0]!r}: {hint}; see `{_prog(command, args)} --help`")
    interrupts.raise_from_now()
    return int(import_module(f"subbyte.cli.{command}").run(args))


def _parser(command: str | None) -> argparse.ArgumentParser:
    """The parser of all commands; only the arguments of ``command`` are filled in."""
    parser = Parser(prog="subbyte", description=_DESCRIPTION, epilog=_EPILOG)
    parser.add_argument("--version", action="version", version=f"subbyte {__version__}")
    subparsers = parser.add_subparsers(dest="command", metavar="COMMAND", title="commands")
    for name, summary in COMMANDS.items():
        if name == command:
            import_module(f"subbyte.cli.{name}").add_parser(subparsers)
        else:
            subparsers.add_parser(name, help=summary, add_help=False)
    return parser


def _flags(parser: argparse.ArgumentParser, args: argparse.Namespace) -> Iterator[str]:
    """The flags of the command, and of the topic or subcommand if it has some."""
    for action in parser._actions:
        yield from action.option_strings
        if isinstance(action, argparse._SubParsersAction):
            part = action.choices.get(getattr(args, action.dest, ""))
            yield from _flags(part, args) if part is not None else ()


def _prog(command: str | None, args: argparse.Namespace | None = None) -> str:
    """``subbyte COMMAND``, with the topic or subcommand that was given."""
    part = next((value for name in ("topic", "part") if (value := getattr(args, name, None))), None)
    return " ".join(["subbyte", *filter(None, (command, part))])
