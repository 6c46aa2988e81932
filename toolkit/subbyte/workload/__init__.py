"""What to compute: convolution shapes, named networks, free specs.

The package can be called: ``subbyte.workload("resnet50.stage2@8")`` works whether or not this module was imported
by its own name before, which puts the module in the place of the function.
"""

from subbyte.callable_package import make_callable
from subbyte.workload.conv import BATCH_GROUP, CHANNEL_BLOCK, ConvWorkload, ceil_div
from subbyte.workload.networks import DEFAULT_BATCH, LAYERS, NETWORKS, Layer
from subbyte.workload.parse import WorkloadList, workload, workloads

__all__ = [
    "BATCH_GROUP",
    "CHANNEL_BLOCK",
    "DEFAULT_BATCH",
    "LAYERS",
    "NETWORKS",
    "ConvWorkload",
    "Layer",
    "WorkloadList",
    "ceil_div",
    "workload",
    "workloads",
]

make_callable(__name__, workload)
