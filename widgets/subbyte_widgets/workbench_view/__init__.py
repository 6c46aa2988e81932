"""The workbench."""

from subbyte_widgets.workbench_view.view import Workbench, workbench

__all__ = ["Workbench", "workbench"]
