"""What ``subbyte lab`` changes in Jupyter's file handling: a lesson opens as saved, whatever Python runs it.

JupyterLab writes the kernel's language, including its Python version, into a notebook as soon as the kernel runs; a
notebook saved with another version is "unsaved" the moment it opens. Only that server loads this module.
"""

from __future__ import annotations

import platform
from typing import Any

from jupyter_server.services.contents.largefilemanager import AsyncLargeFileManager


class LessonContents(AsyncLargeFileManager):
    """Jupyter's contents manager; a notebook with complete language information reports the Python version that runs
    it."""

    async def get(self, path: str, content: bool = True, *more: Any, **options: Any) -> Any:
        """The file; what is on the disk is not changed."""
        model = await super().get(path, content, *more, **options)
        if model["type"] == "notebook" and content:
            language = model["content"]["metadata"].get("language_info", {})
            if language.get("name") == "python" and "version" in language:
                language["version"] = platform.python_version()
        return model
