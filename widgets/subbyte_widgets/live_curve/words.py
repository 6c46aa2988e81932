"""What the live curve says in words."""

from __future__ import annotations

from subbyte.tune.record import StudyRecord

_ENDED = {"trials": "finished", "exhausted": "every configuration seen", "stopped": "stopped"}


def in_words(record: StudyRecord, total: int, running: bool) -> str:
    """How far a study is and its best; ``total``: trials asked for, 0 when unknown."""
    of = f" of {total}" if total else ""
    best = record.best
    found = f", best {best.microseconds:.2f} us at trial {best.number}" if best and best.microseconds else ""
    ended = "" if running or not record.ended else f" ({_ENDED.get(record.ended, record.ended)})"
    return f"{len(record.trials)}{of} trials{found}{ended}"
