"""What is shipped, for the GPU tests: the configuration that `compile` takes for every recorded layer."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from subbyte.families.registry import config_from_dict
from subbyte.kernel import recommended
from subbyte.kernel.choose import recorded_best, recorded_fused
from subbyte.spaces.configuration import Configuration
from subbyte.workload import ConvWorkload, workload
from subbyte.workload.networks import NETWORKS

Named = tuple[str, ConvWorkload, Configuration | None, dict[str, Any]]
"""What a kernel is for, its workload, configuration (None: what compile takes) and the options of its output."""
SHIPPED = ("recorded", "recorded with more", "recommended")
"""Names of kernels with a configuration of a file of the package."""


def shipped() -> Iterator[Named]:
    """The recorded configurations of all families, those with pooling and residuals, the recommended ones, and what
    compile gives for each layer of three networks (ResNet-50 in three batches)."""
    seen = set()
    for spec, entry in recorded_best().items():
        seen.add(spec)
        yield SHIPPED[0], workload(spec), config_from_dict(entry["config"]), {}
    for text, entry in recorded_fused().items():
        spec, output = text.split()
        yield SHIPPED[1], workload(spec), config_from_dict(entry["config"]), {"output": output}
    for path in sorted(Path(recommended.FOLDER).glob("*.json")):
        entry = json.loads(path.read_text(encoding="utf-8"))
        yield SHIPPED[2], workload(entry["workload"]), config_from_dict(entry["config"]), {}
    for network, layers in NETWORKS.items():
        for batch in (8, 64, 256) if network == "resnet50" else (8,):
            for layer in layers:
                found = layer.workload(batch)
                if network in ("resnet18", "resnet50", "vgg16") and found.spec not in seen:
                    seen.add(found.spec)
                    yield "default", found, None, {}
