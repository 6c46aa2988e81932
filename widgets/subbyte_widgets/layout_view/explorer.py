"""The layout view with controls."""

from __future__ import annotations

from typing import Any

import ipywidgets

from subbyte.errors import InvalidInput, SubbyteError
from subbyte.spaces.configuration import Configuration
from subbyte.technique import Tiling, tiling
from subbyte.workload import ConvWorkload
from subbyte_widgets._base import Panel, refuse_unknown
from subbyte_widgets._clamp import clamped
from subbyte_widgets._selection import Choice
from subbyte_widgets.layout_view.picture import KINDS
from subbyte_widgets.layout_view.view import LayoutView

MOVES = {
    "tile": (), "activation load": ("block", "warp", "stage"), "weight load": ("warp", "stage"),
    "activation fragment": ("warp",), "weight fragment": ("warp",), "output store": ("block", "warp"),
}  # fmt: skip
"""What changes the addresses of each kind of access; nothing changes those of an operand tile."""


class LayoutExplorer(Panel):
    """A :class:`LayoutView` with controls: the block's pixel tile, its warp, and the stage of the main loop.

    ``workload``: a name, a spec or a ConvWorkload; ``block``: the initial pixel tile. Blocks at the edge of the image
    have inactive lanes. Controls that change nothing for the chosen kind of access are disabled. With a ``selection``,
    the kernel is the selected one.
    """

    def __init__(
        self,
        workload: ConvWorkload | str = "resnet50.stage2@8",
        config: Configuration | None = None,
        arch: str = "sm_90a",
        block: int = 0,
        **options: Any,
    ) -> None:
        refuse_unknown(LayoutView, options)
        selection = options.pop("selection", None)
        self.controls = {name: ipywidgets.IntSlider(0, description=name) for name in ("block", "warp", "stage")}
        for control in self.controls.values():
            control.layout = ipywidgets.Layout(width="270px")
        self._moved = False
        self._open(tiling(workload, config, arch=arch))
        last = self.controls["block"].max
        if not 0 <= block <= last:
            raise InvalidInput(f"LayoutExplorer: block={block}: this kernel has pixel tiles 0 to {last:,}")
        self.controls["block"].value = block
        for control in self.controls.values():
            control.observe(self._update, "value")
        self.view = LayoutView(self.workload, self.config, {"arch": arch, "block": (block, 0)}, **options)
        self.view.observe(self._allow, "kind")
        self._allow()
        layout = ipywidgets.Layout(flex_flow="row wrap", max_width="900px")
        super().__init__([ipywidgets.HBox([*self.controls.values()], layout=layout), self.view], selection)

    def turn_to(self, choice: Choice) -> None:
        """Draw the selected kernel, at the same place where it has one."""
        config, note = choice.config_for(Tiling)
        self._moved = True
        try:
            self._open(tiling(choice.workload, config, arch=choice.arch))
        finally:
            self._moved = False
        self._allow()
        self._update()
        self.note = note

    def _open(self, cut: Tiling) -> None:
        self.workload, self.config, self.arch = cut.workload, cut.config, cut.arch
        limits = (cut.blocks // cut.column_blocks, len(cut.warps), cut.iterations)
        for control, limit in zip(self.controls.values(), limits, strict=True):
            control.min, control.max = 0, limit - 1

    def _allow(self, _change: Any = None) -> None:
        """Only what moves something in the picture can be moved."""
        for name, control in self.controls.items():
            moves = name in MOVES.get(self.view.kind, ())
            control.disabled = not moves or control.max == 0
            control.tooltip = "" if moves else f"{KINDS.get(self.view.kind, self.view.kind)}: the same for every {name}"

    def _update(self, change: Any = None) -> None:
        if self._moved:
            return
        self._moved = True
        try:
            with self.view.hold_sync():
                if change is None:
                    self._draw({})
                    self.note = ""
                else:
                    change.owner.value, self.note = clamped(change, lambda value: self._draw({change.owner: value}))
        except SubbyteError as problem:
            self.view.error = str(problem)
        finally:
            self._moved = False

    def _draw(self, other: dict[Any, Any]) -> None:
        """Draw what the controls say, with other values of some. Raises what stands against it."""
        block, warp, stage = (other.get(control, control.value) for control in self.controls.values())
        where = {"arch": self.arch, "block": (block, 0), "warp": warp, "iteration": stage}
        self.view.show(self.workload, self.config, whole=False, **where)
        kind = self.view.kind
        if kind in KINDS and kind not in self.view.kinds:
            raise InvalidInput(f"no {KINDS[kind]} happens there")
        if self.view.error:
            raise InvalidInput(self.view.error)
