"""Tuning on a GPU: every result verified, recorded, resumed; the best kernel built from the record runs."""

from __future__ import annotations

import pytest

from subbyte.families.mma.config import MmaConfig
from subbyte.families.wgmma.config import WgmmaConfig
from subbyte.records.result import Measured
from subbyte.tune import read_log, tune

pytestmark = [pytest.mark.gpu, pytest.mark.timeout(180)]


@pytest.mark.parametrize(("kind", "config"), [("paper", MmaConfig), ("wgmma", WgmmaConfig)])
def test_a_study_on_the_gpu(tmp_path, device, kind, config):
    if kind == "wgmma" and device.info.arch != "sm_90a":
        pytest.skip(f"wgmma exists only on sm_90a, this GPU is {device.info.arch}")
    log, spec = tmp_path / "study.jsonl", "n8h14w14c64k64r3s3p1"
    first = tune(spec, "cuda", trials=4, log=log, kind=kind).records[0]
    record = tune(spec, "cuda", trials=8, log=log, resume=True, kind=kind).records[0]
    assert record.trials[:4] == first.trials
    assert record.header["device"]["runner"] == "cuda"
    assert all(isinstance(trial.config, config) for trial in record.trials)
    timed = [trial.result for trial in record.trials if isinstance(trial.result, Measured)]
    assert timed, [trial.result for trial in record.trials]
    assert all(result.verified and result.samples for result in timed)
    kernel = read_log(log).build_best()
    assert kernel.config == record.best_config
    assert kernel.time().microseconds == pytest.approx(record.best_microseconds, rel=0.5)
