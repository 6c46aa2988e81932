"""What the step-through views share: all steps go to the browser once, there a player walks through them."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import traitlets

from subbyte_widgets._base import PACKED, RADIOS, RADIOS_STYLE, View

ROOT = Path(__file__).parent
PLAYER = (RADIOS, ROOT / "motion.js", ROOT / "code.js", ROOT / "stepper.js")
"""The player that the step-through views share, with buttons, flights and CUDA text: before a view's own script."""


def shared_style() -> str:
    """The styles of the player, its buttons and the CUDA text beside it."""
    shared = (ROOT / name for name in ("stepper.css", "code.css"))
    return RADIOS_STYLE + "".join(file.read_text(encoding="utf-8") for file in shared)


def style(folder: Path) -> str:
    """The styles of the view in ``folder``: the shared ones, then its own."""
    return shared_style() + (folder / "view.css").read_text(encoding="utf-8")


class Stepper(View):
    """Base of the step-through views. ``step`` counts the steps done, from 0 (none) to :attr:`steps` (all of them).

    The browser writes ``step`` and what the view's own docstring names; everything it draws from is in ``data``.
    """

    data = traitlets.Dict({}, help="Everything the browser draws from, sent once").tag(**PACKED)
    step = traitlets.Int(0, help="Steps done").tag(sync=True)

    @property
    def steps(self) -> int:
        """Number of steps."""
        raise NotImplementedError

    @traitlets.validate("step")
    def _keep_inside(self, proposal: Any) -> int:
        return max(0, min(self.steps, proposal.value))
