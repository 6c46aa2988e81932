"""Digests that must not change: ``python tools/golden check|record|faults|spaces`` (--help says more)."""

from __future__ import annotations

import argparse
import sys
import time
from collections import Counter
from dataclasses import replace
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

from golden import faults, kernels, library, listing, spaces


def main(arguments: list[str] | None = None) -> int:
    """Run one part; 1 when something is not as recorded."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parts = parser.add_subparsers(dest="part", required=True)
    check = parts.add_parser("check", help="compare kernels with the recorded digests (about 5 minutes)")
    check.add_argument("--sample", type=int, metavar="N", help="only N of them, always the same")
    check.add_argument("--machine-code", action="store_true", help="where a text changed, compare its machine code")
    record = parts.add_parser("record", help="write the digests of the library as it is")
    record.add_argument("--list-again", action="store_true", help="also make the list of kernels anew")
    record.add_argument(
        "--add", action="store_true", help="only add the kernels on bit planes, and with zeros, that are not held yet"
    )
    record.add_argument("--machine-code", action="store_true", help="also of machine code, where it is held")
    record.add_argument(
        "--resume", action="store_true", help="go on with a record that was stopped: same sources, please"
    )
    record.add_argument("--retire", nargs="*", metavar="PART", default=[], help="key parts whose knobs are no more")
    for one in (check, record):
        one.add_argument("--workers", type=int, default=2, help="processes (default 2)")
    for name, text in (("faults", "list and count the planted faults"), ("spaces", "what is valid in sample spaces")):
        part = parts.add_parser(name, help=f"{text}; compare with what is recorded")
        part.add_argument("--record", action="store_true", help="write it instead")
    args = parser.parse_args(arguments)
    return {"check": run_check, "record": run_record, "faults": run_faults, "spaces": run_spaces}[args.part](args)


def run_check(args: argparse.Namespace) -> int:
    """Compare, print what differs, and the counts."""
    golden, begun = kernels.read(), time.monotonic()
    entries = golden.entries if args.sample is None else kernels.sample(golden, args.sample)
    counts, lines = kernels.report(
        counted(kernels.states(entries, golden.retired, args.machine_code, args.workers), len(entries))
    )
    print("\n".join(lines), end="\n" * bool(lines))
    print(f"{len(entries)} kernels in {time.monotonic() - begun:.0f} s: {summary(counts)}")
    return int(any(word not in (*kernels.GOOD, *kernels.FAIR) for word in counts))


def run_record(args: argparse.Namespace) -> int:
    """Compute the digests anew and write them; kernels that cannot be built are left out with a line for each."""
    part = kernels.FILE.with_suffix(".part")
    before = kernels.read() if kernels.FILE.exists() else kernels.Golden({}, (), ())
    entries = before.entries
    if args.list_again or not entries:
        known = {one.place: one for one in entries}
        entries = tuple(
            replace(one, text=old.text, code=old.code) if (old := known.get(one.place)) else one
            for one in listing.everything()
        )
    held: tuple[kernels.Entry, ...] = ()
    if args.add:
        held, entries = entries, listing.added(entries)
    made_with = before.made_with if held else {"commit": listing.commit(), **library.versions()}
    retired = tuple(sorted({*before.retired, *args.retire}))
    begun = time.monotonic()
    kept = list(kernels.read(part).entries) if args.resume and part.exists() else list(held)
    done = {one.place for one in kept}
    left = [one for one in entries if one.place not in done]
    words: Counter[str] = Counter()
    for word, message, entry in counted(kernels.states(left, retired, args.machine_code, args.workers), len(left)):
        words[word] += 1
        if word in (kernels.REFUSED, kernels.BACK):
            print(f"left out, {word}: {entry.label}: {message}", flush=True)
        else:
            kept.append(entry)
        if words.total() % 50 == 0:
            kernels.write(kernels.Golden(made_with, retired, tuple(kept)), part)
    kernels.write(kernels.Golden(made_with, retired, tuple(kept)))
    part.unlink(missing_ok=True)
    print(f"{len(kept)} kernels in {time.monotonic() - begun:.0f} s: {summary(words)}")
    return 0


def run_faults(args: argparse.Namespace) -> int:
    """Print what differs from the recorded list, or write it."""
    problems = faults.not_found()
    if args.record:
        faults.FILE.write_text(faults.listing(), encoding="utf-8")
    else:
        gone, new = faults.differences()
        problems += gone
        print("".join(f"new: {line}\n" for line in new), end="")
    print("\n".join([*problems, *faults.listing().split("\n\n")[0].splitlines()]))
    return int(bool(problems))


def run_spaces(args: argparse.Namespace) -> int:
    """Compare all samples with the library's spaces, or write them."""
    if args.record:
        samples = list(spaces.drawn())
        spaces.write(samples, {"commit": listing.commit()})
        print(f"{len(samples)} spaces; {spaces.FILE}")
        return 0
    version, samples = spaces.read()
    problems = spaces.differences(samples, version)
    print("\n".join([*problems, f"{len(samples)} spaces, {len(problems)} differ"]))
    return int(bool(problems))


def counted(found, total):
    """The same, with a line on stderr for each hundred."""
    for number, one in enumerate(found, 1):
        if number % 100 == 0:
            print(f"{number}/{total}", file=sys.stderr, flush=True)
        yield one


def summary(counts) -> str:
    """Such as ``1200 same, 3 another text``."""
    return ", ".join(f"{count} {word}" for word, count in sorted(counts.items()))


if __name__ == "__main__":
    sys.exit(main())
