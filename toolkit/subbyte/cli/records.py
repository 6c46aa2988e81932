"""``subbyte records``: what your own searches found, which ``compile`` uses; list, show, export, import, forget."""

from __future__ import annotations

import argparse
from collections.abc import Callable, Sequence
from typing import Any

from subbyte.cli.arguments import command_parser, emit, positive
from subbyte.errors import InvalidInput
from subbyte.info_record import Table, columns_text
from subbyte.records.own import OwnRecord
from subbyte.records.store import OFF, VARIABLE, Row, Store, store_path
from subbyte.streams import say

_COLUMNS = ("id", "workload", "output", "arch", "GPU", "us", "spread", "trials", "by", "measured, UTC", "configuration")


def add_parser(subparsers: Any) -> None:
    """Add the arguments of ``subbyte records`` and of its parts."""
    parser = subparsers.add_parser(
        "records",
        help="what your own searches found",
        description="Your own records: the best kernels that `tune` and `compile(tries=)` found on your GPUs. On the "
        "same GPU, and while the generated kernel text is unchanged, `compile`, `build` and `conv2d` use them.",
        epilog="example:\n  subbyte records list resnet50.stage2@8",
    )
    parts = parser.add_subparsers(dest="part", metavar="PART", title="parts", required=True)
    _part(parts, "list", "List records, one line each, the fastest of each workload first.", "subbyte records list")
    _part(parts, "show", "Show all details of records, and which of them `compile` takes on this machine.",
          "subbyte records show resnet50.stage2@8")  # fmt: skip
    exporting = _part(parts, "export", "Write records to a file of JSON lines.", "subbyte records export mine.jsonl",
                      "FILE")  # fmt: skip
    exporting.add_argument("--force", action="store_true", help="overwrite an existing file")
    importing = command_parser(
        parts, "import", "Add the records of a file: all of them, or none if a line is damaged. Of two records of the "
        "same kernel, the better one stays.", "subbyte records import mine.jsonl",
    )  # fmt: skip
    importing.add_argument("file", metavar="FILE", help="a file that `subbyte records export` wrote")
    _store_argument(importing)
    forgetting = _part(parts, "forget", "Remove records, without asking for confirmation, and print which.",
                       "subbyte records forget resnet50.stage2@8")  # fmt: skip
    forgetting.add_argument("--all", action="store_true", help="remove every record")


def run(args: argparse.Namespace) -> int:
    """Run one part and return its exit code."""
    path = store_path(args.store)
    if path is None:
        raise InvalidInput(f"the store is {OFF!r}: name a file with --store or {VARIABLE}")
    parts: dict[str, Callable[[argparse.Namespace, Store], int]] = {
        "list": _list, "show": _show, "export": _export, "import": _import, "forget": _forget,
    }  # fmt: skip
    return parts[args.part](args, Store(path))


def _part(parts: Any, name: str, description: str, example: str, file: str = "") -> argparse.ArgumentParser:
    parser = command_parser(parts, name, description, example)
    if file:
        parser.add_argument("file", metavar=file, help="file to write")
    parser.add_argument("workload", metavar="WORKLOAD", nargs="?", help="only records of this layer or matrix product")
    parser.add_argument("--gpu", metavar="NAME", help="only records of the GPU with this name, such as 'NVIDIA H200'")
    parser.add_argument("--arch", metavar="ARCH", help="only records of this architecture")
    parser.add_argument("--id", metavar="N", type=positive, action="append", default=[],
                        help="only the record with this number; may be repeated")  # fmt: skip
    _store_argument(parser)
    return parser


def _store_argument(parser: argparse.ArgumentParser) -> None:
    text = f"store to use (default: the one that {VARIABLE} names, else the one in the cache folder)"
    parser.add_argument("--store", metavar="FILE", help=text)


def _asked(args: argparse.Namespace) -> dict[str, Any]:
    """The filters for the records, as :meth:`Store.rows` takes them."""
    from subbyte.device.arch import arch
    from subbyte.workload import workload

    return {
        "workload": workload(args.workload).spec if args.workload else None, "gpu": args.gpu,
        "arch": arch(args.arch).name if args.arch else None, "ids": tuple(args.id),
    }  # fmt: skip


def _list(args: argparse.Namespace, store: Store) -> int:
    rows = store.rows(**_asked(args))
    _emit(args, store, rows, lines(rows) if rows else _nothing(args, store))
    return 0


def _show(args: argparse.Namespace, store: Store) -> int:
    rows = store.rows(**_asked(args))
    if not rows:
        raise InvalidInput(_nothing(args, store))
    taken = _taken(rows, store)
    text = []
    for row in rows:
        facts = row.record.to_dict()
        facts["taken"] = "by compile on this machine" if row.record.key in taken else "not on this machine"
        text.append("\n".join([f"record {row.id}", *(f"  {name:14}{_said(value)}" for name, value in facts.items())]))
    _emit(args, store, rows, "\n".join(text), taken=[row.id for row in rows if row.record.key in taken])
    return 0


def _taken(rows: Sequence[Row], store: Store) -> set[tuple[str, ...]]:
    """Keys of the records that can be used on this machine with today's kernel texts."""
    from subbyte.device.arch import arch
    from subbyte.kernel.own import own_records
    from subbyte.workload import workload

    asked = {(row.record.workload, row.record.arch, row.record.output) for row in rows}
    found = (own_records(workload(spec), arch(name), output, store.path) for spec, name, output in asked)
    return {record.key for own in found for record in (*own.taken, *own.two)}


def _export(args: argparse.Namespace, store: Store) -> int:
    from subbyte.files import new_file
    from subbyte.records.store_file import export_records

    rows = store.rows(**_asked(args))
    if not rows:
        raise InvalidInput(_nothing(args, store))
    file = new_file(args.file, args.force, "give --force to write over it, or another file")
    export_records([row.record for row in rows], file)
    _emit(args, store, rows, f"{file}: {_counted(len(rows))}", file=str(file))
    return 0


def _import(args: argparse.Namespace, store: Store) -> int:
    from subbyte.records.store_file import import_records

    done = import_records(store, args.file)
    for notice in done.notices:
        say(f"subbyte: {notice}")
    counts = {"added": done.added, "replaced": done.replaced, "kept": done.kept}
    said = ", ".join(f"{count} {name}" for name, count in counts.items())
    text = f"{store.path}: {said} (of two of the same kernel the better one stays)"
    emit("records", {"part": "import", "store": str(store.path), **counts, "notices": list(done.notices)}, args, text)
    return 0


def _forget(args: argparse.Namespace, store: Store) -> int:
    asked = _asked(args)
    if args.all == any(asked.values()):
        raise InvalidInput(
            "say what to forget: a WORKLOAD, --gpu, --arch or --id; or --all, without any of these, for every record"
        )
    rows = store.forget(**asked)
    _emit(args, store, rows, f"removed {_counted(len(rows))}\n{lines(rows)}" if rows else _nothing(args, store))
    return 0


def lines(rows: Sequence[Row]) -> str:
    """Records as a table for a terminal."""
    return columns_text(Table(_COLUMNS, tuple(_line(row.id, row.record) for row in rows)))


def _line(number: int, one: OwnRecord) -> tuple[Any, ...]:
    spread = f"{(one.high - one.low) / one.microseconds:.1%}"
    by = one.source if one.verified else f"{one.source}, not verified"
    return (number, one.workload, one.output, one.arch, one.gpu, one.microseconds, spread, one.trials, by, one.day,
            one.config)  # fmt: skip


def _emit(args: argparse.Namespace, store: Store, rows: Sequence[Row], text: str, **more: Any) -> None:
    records = [{"id": row.id, **row.record.to_dict()} for row in rows]
    emit("records", {"part": args.part, "store": str(store.path), **more, "records": records}, args, text)


def _nothing(args: argparse.Namespace, store: Store) -> str:
    store.prove_usable()
    such = args.workload or args.gpu or args.arch or args.id
    return f"{store.path} holds no {'such record' if such else 'records'}; `subbyte tune` on a GPU writes some"


def _counted(count: int) -> str:
    return f"{count} record{'s' * (count != 1)}"


def _said(value: Any) -> str:
    if isinstance(value, dict):
        return " ".join(f"{key}={item}" for key, item in value.items()) or "-"
    return str(value) if value != "" else "-"
