"""Tuning on a GPU: every result verified, recorded, resumed; the best kernel built from the record runs."""

from __future__ import annotations

import pytest

from subbyte.measure.result import Measured
from subbyte.tune import read_log, tune

pytest.importorskip("tvm", reason="tuning builds its candidates with TVM")

pytestmark = pytest.mark.gpu


def test_a_study_on_the_gpu(tmp_path):
    log = tmp_path / "study.jsonl"
    first = tune("n8h14w14c64k64r3s3p1", "cuda", trials=3, log=log).records[0]
    record = tune("n8h14w14c64k64r3s3p1", "cuda", trials=6, log=log, resume=True).records[0]
    assert record.trials[:3] == first.trials
    assert record.header["device"]["runner"] == "cuda"
    timed = [trial.result for trial in record.trials if isinstance(trial.result, Measured)]
    assert timed, [trial.result for trial in record.trials]
    assert all(result.verified and result.samples for result in timed)
    kernel = read_log(log).build_best()
    assert kernel.config == record.best_config
    assert kernel.time().microseconds == pytest.approx(record.best_microseconds, rel=0.5)
