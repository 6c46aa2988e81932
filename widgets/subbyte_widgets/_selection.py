"""What all views show together: a workload, a configuration and a trial; and how views follow them."""

from __future__ import annotations

import threading
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

import ipywidgets
import traitlets

from subbyte.device.arch import arch as arch_named
from subbyte.errors import InvalidInput, SubbyteError, did_you_mean
from subbyte.families.registry import config_from_dict, config_from_key, families, family_of, not_here, shows
from subbyte.info_record import InfoRecord
from subbyte.kernel.choose import best_known
from subbyte.spaces.configuration import Configuration
from subbyte.workload import ConvWorkload
from subbyte.workload import workload as parse_workload

FIRST = "resnet50.stage2@8"
"""The workload of a selection that names none."""


@dataclass(frozen=True)
class Choice:
    """A selection at one moment: what a view is asked to show. An empty ``configuration`` means the best known one."""

    workload_text: str
    configuration: str
    arch: str

    @property
    def workload(self) -> ConvWorkload:
        """The workload."""
        return parse_workload(self.workload_text)

    @property
    def config(self) -> Any:
        """The configuration, of any family: by default the one that ``subbyte.compile`` tries first. Raises Unsupported
        if there is none."""
        named = self.configuration
        return config_from_key(named) if named else best_known(self.workload, self.arch)[0]

    def config_for(self, record: type[InfoRecord]) -> tuple[Any, str]:
        """The configuration for a view that draws ``record``, and what that view says about it.

        By default it is the best known one of a family whose kernels can be shown like this; the words are empty if it
        is the best known of all. Raises Unsupported for a named configuration of another family, and if there is none.
        """
        shown = tuple(family for family in families().values() if shows(family.plain, record))
        if self.configuration:
            named = self.config
            if family_of(named) not in shown:
                raise not_here(named, shown)
            return named, ""
        best, how = best_known(self.workload, self.arch)
        if family_of(best) in shown:
            return best, ""
        name = shown[0].name
        config, reason = best_known(self.workload, self.arch, name)
        return (
            config,
            f"Shown is the best of the {name} family: {config.key}, {reason}. Best of all: {best.key}, {how}.",
        )


class _Text(traitlets.Unicode):
    """Text that names something; the named object itself is accepted too and stored as its text."""

    def __init__(self, write: Callable[[Any], str], **options: Any) -> None:
        super().__init__(**options)
        self._write = write

    def validate(self, obj: Any, value: Any) -> str:
        """The text, after it was parsed. Raises InvalidInput if it cannot be parsed."""
        return self._write(value)


def workload_text(given: ConvWorkload | str) -> str:
    """The text that names a workload; text is kept as given. Raises InvalidInput if it cannot be parsed."""
    found = parse_workload(given)
    if isinstance(given, str):
        return given
    try:
        return found.label if parse_workload(found.label) == found else found.spec
    except InvalidInput:
        return found.spec  # a name of the user's own


def configuration_text(given: Configuration | Mapping[str, Any] | str | None) -> str:
    """The key of a configuration, empty for none; text is kept as given. Raises InvalidInput if it cannot be parsed."""
    if isinstance(given, str):
        if given.strip():
            config_from_key(given)
        return given.strip()
    if not given:
        return ""
    return (config_from_dict(given) if isinstance(given, Mapping) else given).key


PARTS = ("workload", "configuration", "trial", "arch")


def _only_parts(given: Mapping[str, Any]) -> None:
    for name in given:
        if name not in PARTS:
            raise InvalidInput(f"a selection has no {name!r}: {did_you_mean(name, PARTS)}")


class Selection(ipywidgets.Widget):
    """One selection that any number of views follow: ``View(..., selection=s)`` or ``s.attach(view)``.

    ``workload`` and ``configuration`` are texts (a name or a spec; the key of a configuration of any family, empty for
    the best known), so that they work with menus, text fields and ``jslink``; a ConvWorkload, a configuration, or a
    dict is accepted too. Views that cannot show kernels of the selected configuration's family say so. ``trial`` is the
    index of a trial in the study that a monitor shows, -1 for none; ``arch`` is the architecture that kernels are built
    for. Text that cannot be parsed raises InvalidInput; if it comes from a browser, ``error`` says so and the selection
    does not change.

    Views that no browser shows compute nothing; they catch up when they become visible, when their picture is asked
    for, and with :meth:`settle`. After many quick changes each view draws those it has time for, and always the last
    one.
    """

    workload = _Text(workload_text, default_value=FIRST, help="Name or spec").tag(sync=True)
    configuration = _Text(configuration_text, help="Key of the configuration, empty for the best known").tag(sync=True)
    trial = traitlets.Int(-1, help="Place of the trial in the shown study, -1 for none").tag(sync=True)
    arch = _Text(lambda given: arch_named(given).name, default_value="sm_90a").tag(sync=True)
    error = traitlets.Unicode("", help="Why the browser's latest change was refused").tag(sync=True)

    def __init__(self, workload: ConvWorkload | str = FIRST, configuration: Any = "", **options: Any) -> None:
        self._followers: list[Follower] = []
        self._lock = threading.RLock()
        self._worker: threading.Thread | None = None
        _only_parts(options)
        super().__init__(workload=workload, configuration=configuration, **options)

    @property
    def now(self) -> Choice:
        """What is selected."""
        return Choice(self.workload, self.configuration, self.arch)

    @property
    def config(self) -> Any:
        """The selected configuration, of any family; the best known one by default."""
        return self.now.config

    def choose(self, **parts: Any) -> None:
        """Change several of ``workload``, ``configuration``, ``trial`` and ``arch`` at once: views see only the result.

        None leaves a part unchanged; an empty ``configuration`` means the best known one. Raises InvalidInput.
        """
        _only_parts(parts)
        with self.hold_trait_notifications():
            for name, value in parts.items():
                if value is not None:
                    self.set_trait(name, value)

    def attach(self, view: Follower) -> None:
        """Let ``view`` follow this selection instead of any other."""
        view.selection = self

    def detach(self, view: Follower) -> None:
        """Stop ``view`` from following; it keeps what it shows."""
        view.selection = None

    def settle(self) -> None:
        """Bring every view up to date, visible or not, before this returns."""
        for view in tuple(self._followers):
            view.catch_up()

    def set_state(self, sync_data: dict[str, Any]) -> None:
        """Apply what a browser wrote; values that cannot be parsed are reported in ``error``."""
        try:
            super().set_state(sync_data)
            self.error = ""
        except (SubbyteError, traitlets.TraitError) as problem:
            self.error = str(problem)
            self.send_state(list(sync_data))

    @traitlets.observe("workload", "configuration", "arch", "trial")
    def _changed(self, change: Any) -> None:
        for view in tuple(self._followers):
            if view.follows_at_once:
                view.catch_up()
        if change.name != "trial":
            self.wake()

    def add(self, view: Follower) -> None:
        """Called by a view that starts to follow."""
        with self._lock:
            if all(known is not view for known in self._followers):
                self._followers.append(view)
        if view.follows_at_once:
            view.catch_up()
        self.wake()

    def remove(self, view: Follower) -> None:
        """Called by a view that stops following."""
        with self._lock:
            self._followers = [known for known in self._followers if known is not view]

    def wake(self) -> None:
        """Let the visible views that are out of date catch up, in a thread that ends with them."""
        with self._lock:
            if self._worker is None and self._next() is not None:
                self._worker = threading.Thread(target=self._work, name="subbyte-selection", daemon=True)
                self._worker.start()

    def _next(self) -> Follower | None:
        """The view that has been out of date for the longest time, so that none starves while the selection changes."""
        behind = [view for view in self._followers if view.is_behind and view.in_sight and not view.follows_at_once]
        return min(behind, key=lambda view: view.turn) if behind else None

    def _work(self) -> None:
        while True:
            with self._lock:
                view = self._next()
                if view is None:
                    self._worker = None
                    return
            view.catch_up()

    def __repr__(self) -> str:
        trial = f", trial {self.trial}" if self.trial >= 0 else ""
        return f"<Selection: {self.workload}, {self.configuration or 'best known configuration'}, {self.arch}{trial}>"


_turns = iter(range(1 << 62))


class Follower(traitlets.HasTraits):
    """Adds ``selection`` to a view. Such a view implements ``turn_to(choice)``, which shows what is selected."""

    selection = traitlets.Instance(Selection, allow_none=True, help="What the view follows")
    error: Any
    note: Any = ""
    in_sight: Any = True
    follows_at_once = False
    """True for a view that also writes the selection and must never be behind: its ``follow`` is cheap, and called
    after every change, whatever it already shows."""
    turn = 0
    _turning = False
    _shown: Choice | None = None
    _said = ""

    def turn_to(self, choice: Choice) -> None:
        """Show ``choice``; a known reason why it cannot be shown goes to ``error``. May run in a thread of its own."""
        raise NotImplementedError

    @property
    def is_behind(self) -> bool:
        """Whether something else is selected than what the view shows."""
        return self.selection is not None and self._shown != self.selection.now

    def catch_up(self) -> None:
        """Show what is selected. Anything that goes wrong is reported in the view."""
        with self.__dict__.setdefault("_following", threading.RLock()):
            if self.selection is None or not (self.is_behind or self.follows_at_once):
                return
            choice = self._shown = self.selection.now
            self.turn = next(_turns)
            outer, self._turning = self._turning, True
            self._wait(True)
            try:
                self.turn_to(choice)
                if self.error and self.error == self._said:
                    self.error = ""
            except SubbyteError as problem:
                self.error = self._said = str(problem)
            except Exception as problem:  # no cell to raise in: the view says it
                self.error = self._said = f"{type(problem).__name__}: {problem}"
            finally:
                if self.error:  # then nothing is shown that a note could speak of
                    self.note = ""
                self._turning = outer
                self._wait(False)

    def open(self) -> None:
        """Reopen the view after it was closed; it continues to follow."""
        super().open()  # type: ignore[misc]
        if self.selection is not None:
            self.selection.add(self)

    def close(self) -> None:
        """Remove the view from every page; it stops following."""
        if self.selection is not None:
            self.selection.remove(self)
        super().close()  # type: ignore[misc]

    def write_selection(self, **parts: Any) -> None:
        """Tell the selection, if there is one, what was chosen here; not while this view itself turns to it."""
        if self.selection is not None and not self._turning:
            self.selection.choose(**parts)

    def _wait(self, waiting: bool) -> None:
        """Called before and after ``turn_to``."""

    @traitlets.observe("selection")
    def _attach(self, change: Any) -> None:
        if change.old is not None and change.old is not traitlets.Undefined:
            change.old.remove(self)
        self._shown = None
        if change.new is not None:
            change.new.add(self)
