"""What the step-through views share: all steps are sent to the browser once, and a player there walks through them."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import traitlets

from subbyte_widgets._base import PACKED, RADIOS, RADIOS_STYLE, View

ROOT = Path(__file__).parent
PLAYER = (RADIOS, ROOT / "motion.js", ROOT / "stepper.js")
"""The player that the step-through views share, with buttons and flights: it comes before a view's own script."""
CODE = ROOT / "code.js"
"""CUDA text beside the picture, for a player whose view gives it lines: before :data:`PLAYER`."""


def style(folder: Path, *, code: bool = False, name: str = "view.css") -> str:
    """The styles of the view in ``folder``: the shared ones, with ``code`` those of CUDA text, then its own."""
    shared = ROOT / "stepper.css", *([ROOT / "code.css"] if code else []), folder / name
    return RADIOS_STYLE + "".join(file.read_text(encoding="utf-8") for file in shared)


class Stepper(View):
    """Base of the step-through views. ``step`` counts the steps done, from 0 (none) to :attr:`steps` (all of them).

    The browser writes ``step`` and the traits that the view's own docstring names; everything it draws is in ``data``.
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
