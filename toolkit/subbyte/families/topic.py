"""What can be shown of a kind of kernel: a *topic* is a name, an info record and the options of ``subbyte explain``.

``Family.topics`` lists those of a family. The command line makes one command for each name, whichever families have
it; the views look for the family that provides the record they draw (``topic_giving`` in the registry), and
:func:`subbyte.technique.explained` makes the record for a workload and a configuration. So no caller needs to know
the kind of kernel: either a record can be made or it cannot, with the family's own reason.

A record's function is in ``families/<name>/explain/``. It gets a plan and computes from it alone; nothing here
builds a kernel, and a topic that needs a run is given one.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Generic, Literal, Protocol, TypeVar

from subbyte.info_record import InfoRecord

if TYPE_CHECKING:
    from subbyte.emulator import EmulatorRun

Record = TypeVar("Record", bound=InfoRecord)
"""The record type of a topic."""
Record_co = TypeVar("Record_co", bound=InfoRecord, covariant=True)


class Trace(Protocol):
    """Runs a kernel on the CPU (:meth:`subbyte.Kernel.trace`)."""

    def __call__(self, blocks: tuple[int, ...] = (0,), seed: int = 0) -> EmulatorRun:
        """Every load, store, shuffle and matrix instruction of some blocks."""
        ...


OptionValue = int | str | tuple[int, int] | None
"""Possible values of a topic's option."""


@dataclass(frozen=True)
class Option:
    """An option of a topic: ``--name`` on the command line and a keyword of the record's function.

    ``kind``: ``number`` (an integer from 0), ``seed``, ``pair`` (two numbers such as ``0,1``) or ``text``.
    ``default`` is passed when the option is not given; ``such`` describes a pair in messages.
    """

    name: str
    meaning: str
    default: OptionValue = None
    kind: Literal["number", "seed", "pair", "text"] = "number"
    metavar: str = "N"
    such: str = ""


@dataclass(frozen=True)
class Topic(Generic[Record_co]):
    """One thing that ``subbyte explain`` and the views can show of a family's kernels.

    ``of`` says what ``record`` takes before its options: the ``plan`` of a kernel that may turn out to be rejected
    (then it raises InvalidInput or Unsupported with the reason); ``run``: the plan and a :class:`Trace`; ``any``: a
    plan or None, for something that looks the same in all kernels of the family (its command takes no workload).
    """

    summary: str
    """One line, for the help text."""
    example: str
    """A command line."""
    gives: type[Record_co]
    """The info record that views draw."""
    record: Callable[..., Record_co]
    """Makes the record."""
    options: tuple[Option, ...] = ()
    of: Literal["plan", "run", "any"] = "plan"
    plain: bool = False
    """Whether, without a configuration, the family's plain one is shown instead of the best known."""
    tab: str = ""
    """The workbench's name for the view of the record; empty if none is registered."""
    view: str = ""
    """``module:CLASS`` of a view that draws the record and follows a selection; imported when a workbench is opened."""
    said: Callable[..., tuple[dict[str, object], str]] | None = None
    """``said(record, **options)``: what the command prints as JSON and as text, if that is more than the record."""

    def in_words(self, record: InfoRecord, options: Mapping[str, OptionValue]) -> tuple[dict[str, object], str]:
        """What the command prints for a record: as JSON and as text."""
        return (record.to_dict(), record.text()) if self.said is None else self.said(record, **options)

    def values(self, given: Mapping[str, OptionValue]) -> dict[str, OptionValue]:
        """The options by name: the given value (None: not given), else the default."""
        return {one.name: one.default if given.get(one.name) is None else given[one.name] for one in self.options}
