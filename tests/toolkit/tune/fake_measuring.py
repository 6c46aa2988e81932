"""Stands for a measuring process and a compiler: ``python fake_measuring.py FOLDER OUT --device N --share N/M ...``.

The GPU is made up: a kernel's time follows from its content, device 9 does not exist, and a kernel that says ``kill``
takes the process down. SLOW is the seconds a build takes.
"""

from __future__ import annotations

import hashlib
import os
import sys
import time
from types import SimpleNamespace

from subbyte.device.launch import Argument, Launch
from subbyte.errors import InvalidInput
from subbyte.records.result import Measured


def build(workload, config, arch):
    """A kernel whose program ignores the knob blk_col_warps."""
    if config.chunk == 2 and config.blk_row_warps == 2:
        raise RuntimeError("does not lower")
    time.sleep(float(os.environ.get("SLOW", "0")))
    launch = Launch("conv", (1, 1, 1), (32, 1, 1), 0, (Argument("Out", "int32", (8,), "out"),))
    fields = (config.blk_row_warps, config.warp_row_tiles, config.warp_col_tiles, config.chunk, config.reorder_inner)
    text = "kill" if fields == (4, 4, 4, 1, 0) else repr(fields)
    return SimpleNamespace(cubin=text.encode(), launch=launch, resources={"registers": 64})


class Info(SimpleNamespace):
    def to_dict(self):
        return dict(vars(self))


def open_device(ordinal):
    if ordinal == 9:
        raise InvalidInput("device 9: this machine has 8 GPUs")
    info = Info(ordinal=ordinal, name="made up", arch="sm_90a", bus_id=f"bus {ordinal}", sms=132, driver_version="1")
    return SimpleNamespace(info=info, lost=False)


class Judge:
    def __init__(self, device, case, protocol):
        self.device, self.case, self.protocol = device, case, protocol

    def evaluate(self, cubin, launch):
        if cubin == b"kill":
            os._exit(9)
        us = 4 + hashlib.sha256(cubin).digest()[0] / 100
        return Measured(us, (us, us * 1.01), verified=True, seconds={"measure": 0.01})

    def close(self):
        pass


if __name__ == "__main__":  # in a process of its own, never in the tests' nor in one that builds, which loads less
    from subbyte.measure import bundle

    bundle.open_device, bundle.Evaluator = open_device, Judge
    bundle.Telemetry = lambda bus: SimpleNamespace(uuid=lambda: f"GPU-{bus}")
    arguments = sys.argv[1:]
    if "--child" in arguments:
        sys.exit(bundle.main())
    real = bundle.subprocess.run
    bundle.subprocess.run = lambda command: real([os.environ["PYTHON"], __file__, *command[3:]])
    sys.exit(bundle.main())
