"""The load stepper in words: one sentence for each step, and the whole for those who do not see the picture."""

from __future__ import annotations

from subbyte.technique.load_steps import LoadStep, LoadSteps


def sentence(record: LoadSteps, step: LoadStep) -> str:
    """What a step does, and what sharing has to do with it."""
    return {"copy": _copy, "load": _load, "mma": _multiply}[step.kind](record, step)


def _copy(record: LoadSteps, step: LoadStep) -> str:
    pixels, slots = _numbers("pixel", step.data), _numbers("slot", step.slots)
    words = f"Copy: one instruction of a warp brings input {pixels} into {slots}."
    zeros = [datum for datum in step.data if record.padding[datum]]
    if zeros:
        lie = "lies" if len(zeros) == 1 else "lie"
        words += f" {_numbers('Pixel', zeros)} {lie} outside the image: filled with zeros, nothing is read."
    if step.repeats:
        words += f" {step.repeats} of {len(step.data)} already in shared memory, in another slot."
    return words


def _load(record: LoadSteps, step: LoadStep) -> str:
    words = (
        f"Load: the 32 lanes of warp {record.warp} take 4 bytes each of slot {step.slots[0]}, input pixel "
        f"{step.data[0]}, as fragment {step.registers[0]}."
    )
    return words + (" The warp has loaded this pixel before." if step.repeats else "")


def _multiply(record: LoadSteps, step: LoadStep) -> str:
    pixels, data = list(dict.fromkeys(step.pixels)), list(dict.fromkeys(step.data))
    r, s = step.tap or (0, 0)
    words = (
        f"Multiply: output {_numbers('pixel', pixels, 'p')} meet{'s' * (len(pixels) == 1)} kernel position ({r}, {s}), "
        f"column tile {step.column}; this needs input {_numbers('pixel', data)}."
    )
    if step.repeats:
        kept = "Both" if step.repeats == 2 else "One of them" if len(data) == 2 else "It"
        words += f" {kept} still in registers from an earlier kernel position: no load."
    return words


def _numbers(what: str, numbers: tuple[int, ...] | list[int], prefix: str = "") -> str:
    """``pixel 3``, ``pixels 3 to 6`` or ``pixels 1, 4 and 9``."""
    first, last = numbers[0], numbers[-1]
    if len(numbers) == 1:
        return f"{what} {prefix}{first}"
    if len(numbers) > 2 and list(numbers) == list(range(first, last + 1)):
        return f"{what}s {prefix}{first} to {prefix}{last}"
    most = ", ".join(f"{prefix}{number}" for number in numbers[:-1])
    return f"{what}s {most} and {prefix}{last}"


def start(record: LoadSteps) -> str:
    """Before the first step."""
    return (
        f"Nothing is loaded yet. Equal numbers and colours are the same input pixel; {len(record.steps)} instructions "
        "follow. Press the right arrow key, or play."
    )


def end(record: LoadSteps) -> str:
    """After the last step."""
    shared, registers = record.levels
    if not shared.saved and not registers.saved:
        return f"Done. Without sharing: {shared.loads} copies for the block and {registers.loads} loads for the warp."
    return (
        f"Done: {shared.loads} instead of {shared.unshared} copies for the block, {registers.loads} instead of "
        f"{registers.unshared} loads for the warp, and the same {record.multiplications} multiplications."
    )


def in_words(record: LoadSteps) -> str:
    """The picture in one or two sentences."""
    return f"{record.title()}, in {len(record.steps)} steps. {end(record)}"
