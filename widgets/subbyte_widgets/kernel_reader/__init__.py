"""The kernel reader."""

from subbyte_widgets.kernel_reader.editor import KernelEditor
from subbyte_widgets.kernel_reader.explorer import KernelExplorer
from subbyte_widgets.kernel_reader.view import KernelReader

__all__ = ["KernelEditor", "KernelExplorer", "KernelReader"]
