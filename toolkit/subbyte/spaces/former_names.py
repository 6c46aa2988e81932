"""Names of spaces and families from earlier versions, kept for one minor version."""

from __future__ import annotations

import warnings
from typing import TYPE_CHECKING, Any


class FormerNames:
    """A space or a family whose :meth:`check` used to be called ``why_not``."""

    if TYPE_CHECKING:

        def check(self, which: Any, /) -> str | None:
            """Why something cannot be built; None when it can."""

    def why_not(self, which: Any, /) -> str | None:
        """:meth:`check` under its former name."""
        kind = type(self).__name__
        said = f"{kind}.why_not is now {kind}.check; the old name goes in the next minor version"
        warnings.warn(said, DeprecationWarning, stacklevel=2)
        return self.check(which)
