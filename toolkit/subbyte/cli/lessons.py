"""What ``subbyte lab`` changes in Jupyter's files: a lesson opens as saved, whatever Python runs it.

JupyterLab writes the kernel's language, with the version of its Python, into a notebook as soon as the kernel runs; one
that came with another version is "unsaved" the moment it opens. Only that server loads this module.
"""

from __future__ import annotations

import platform
from typing import Any

from jupyter_server.services.contents.largefilemanager import AsyncLargeFileManager


class LessonContents(AsyncLargeFileManager):
    """Jupyter's files, where a notebook that already names all of Python's language names the version that runs."""

    async def get(self, path: str, content: bool = True, *more: Any, **options: Any) -> Any:
        """The file; what is on the disk stays as it is."""
        model = await super().get(path, content, *more, **options)
        if model["type"] == "notebook" and content:
            language = model["content"]["metadata"].get("language_info", {})
            if language.get("name") == "python" and "version" in language:
                language["version"] = platform.python_version()
        return model
