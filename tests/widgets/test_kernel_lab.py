"""The kernel laboratory: controls to configuration, refusals with reasons, a checked attempt."""

from __future__ import annotations

from dataclasses import replace

import pytest

from subbyte.families import space
from subbyte.records.landscape import Landscape
from subbyte.records.result import Failed, Measured
from subbyte_widgets import KernelLab
from subbyte_widgets.kernel_lab import attempt

LAYER = "n8h7w7c32k32r3s3p1"


def test_the_controls_name_a_configuration_of_the_space() -> None:
    lab = KernelLab(LAYER)
    assert lab.space.check(lab.config) is None
    lab.knobs["chunk"].value = 1
    lab.knobs["duplicate_aware"].value = "none"
    assert lab.config.duplicate_aware == "none"


def test_a_refused_configuration_says_why_and_cannot_be_built() -> None:
    lab = KernelLab(LAYER)
    lab.knobs["warp_col_tiles"].value = 16
    reason = lab.space.check(lab.config)
    assert reason is not None
    assert reason.split(":")[0] in lab.status.value
    assert lab.button.disabled
    lab.start()
    tried = lab.wait()
    assert tried is not None
    assert not tried.ok
    assert reason in tried.outcome


def test_an_attempt_is_built_run_and_checked() -> None:
    lab = KernelLab(LAYER, device="emulator")
    lab.start()
    tried = lab.wait(120)
    assert tried is not None
    assert tried.ok, tried.outcome
    assert "equal the reference" in tried.outcome
    assert "registers" in tried.needs
    bundle, _ = lab._repr_mimebundle_()
    assert tried.config.key in bundle["text/html"]


def test_a_wrong_kernel_is_not_called_right(monkeypatch: pytest.MonkeyPatch) -> None:
    from subbyte.kernel import execute

    right = execute.expected
    monkeypatch.setattr(execute, "expected", lambda *a: right(*a) ^ 1)
    lab = KernelLab(LAYER, device="emulator")
    lab.start()
    tried = lab.wait(120)
    assert tried is not None
    assert not tried.ok
    assert "differ from the reference" in tried.outcome


def test_whatever_goes_wrong_is_said_and_the_button_comes_back(monkeypatch: pytest.MonkeyPatch) -> None:
    from subbyte.kernel import kernel

    def fail(*_: object) -> None:
        raise OSError("the disk is full")

    monkeypatch.setattr(kernel, "build", fail)
    lab = KernelLab(LAYER, device="emulator")
    lab.start()
    tried = lab.wait(60)
    assert tried is not None
    assert "the disk is full" in tried.outcome
    assert not lab.button.disabled


def test_the_recorded_time_stands_beside_the_attempt() -> None:
    known = space(LAYER, "sm_90a")
    first, second, third = known.valid[:3]
    landscape = Landscape.from_results(known, {first: Measured(12.5), second: Failed("timeout", "slow")}, {"name": "x"})
    tries = [attempt.Attempt(known.config(index), True, "equal") for index in (first, second, third)]
    table = attempt.table(tries, landscape)
    assert "12.50" in table
    assert "failed: timeout" in table
    assert "not recorded" in table
    assert "<th>recorded</th>" not in attempt.table([replace(tries[0])], None)
