"""Recommended configurations: shipped with their text, taken by default, exact, and usable without TVM."""

import json
import subprocess
import sys

import numpy as np
import pytest

import subbyte
from subbyte.families.mma.estimate import estimated_cycles
from subbyte.kernel import recommended
from subbyte.kernel.default import default_config
from subbyte.kernel.execute import expected, random_operands
from subbyte.kernel.recommended import FOLDER, recommendation

FILES = sorted(FOLDER.glob("*.json"))


def test_the_four_stages_are_there():
    names = {file.stem for file in FILES}
    assert {f"{subbyte.workload(f'resnet50.stage{stage}@8').spec}-sm_90a" for stage in (2, 3, 4, 5)} <= names


@pytest.mark.sample(2)
@pytest.mark.parametrize("file", FILES, ids=lambda file: file.stem)
def test_the_kept_text_is_what_the_generator_gives(file):
    spec, _, arch = file.stem.rpartition("-")
    found = recommendation(spec, arch)
    kernel = subbyte.build(spec, arch=arch)
    assert kernel.config == found.config == default_config(kernel.workload, arch)
    assert kernel.cuda == found.cuda, f"the generator changed: run tools/recommend.py {found.source}"
    assert found.microseconds > 0


@pytest.mark.deep
def test_a_kept_text_computes_the_layer():
    kernel = subbyte.build("resnet50.stage5@8")
    x, w, requant = random_operands(kernel, 4)
    np.testing.assert_array_equal(kernel.run(x, w, requant, "emulator"), expected(kernel, x, w, requant))


def test_without_tvm_recommended_kernels_still_build(tmp_path):
    code = """
import sys
from importlib import metadata
known = metadata.version
def version(name):
    if name.startswith("apache-tvm"):
        raise metadata.PackageNotFoundError(name)
    return known(name)
metadata.version = version
sys.modules["tvm"] = None
import subbyte
from subbyte.errors import MissingDependency
kernel = subbyte.build("resnet50.stage2@8")
print(kernel.resources.registers, len(kernel.cubin) > 1000)
try:
    subbyte.build("n8h9w9c32k32r3s3p1")
except MissingDependency as error:
    print(error)
"""
    run = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=True,
        env={**__import__("os").environ, "SUBBYTE_CACHE": str(tmp_path)},
    )  # fmt: skip
    first, second = run.stdout.splitlines()
    assert first.endswith("True")
    assert "only recommended configurations can be built" in second


def test_another_output_or_requantization_is_not_the_recommended_text():
    found = recommendation(subbyte.workload("resnet50.stage2@8").spec, "sm_90a")
    raw = subbyte.build("resnet50.stage2@8", found.config, output="int32")
    assert recommended.recommended_text(raw.plan) is None
    clipped = subbyte.build("resnet50.stage2@8", found.config, clip=(0, 7))
    assert recommended.recommended_text(clipped.plan) is None


def test_unmeasured_layers_take_the_best_estimate():
    layer = subbyte.workload("n8h14w14c64k64r3s3p1")
    chosen = default_config(layer, "sm_80")
    space = subbyte.space(layer, "sm_80")
    assert chosen == min((space.config(i) for i in space.valid), key=lambda c: estimated_cycles(space.plan(c)))


def test_files_are_plain_json():
    for file in FILES:
        assert set(json.loads(file.read_text())) == {
            "workload", "arch", "config", "microseconds", "device", "source", "cuda",
        }  # fmt: skip
