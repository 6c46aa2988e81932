"""What the tests of the network's tuner share: the arguments of a part, stand-ins for texts, a search to begin."""

import argparse
import json
import time
from concurrent.futures import ThreadPoolExecutor

from benchmarks.network import schedule, tune
from subbyte.measure.fake import FakeRunner
from subbyte.workload import ConvWorkload

SMALL = ConvWorkload(8, 7, 7, 64, 64, 1, 1, name="small@8")


def arguments(out, **more):
    """What the command line gives, as far as a part looks at it."""
    usual = {"layers": [], "part": 0, "end": time.time() + 600, "seconds": 600.0, "remeasure_seconds": 0.0, "extra": [],
             "earlier": [], "only": "", "kinds": None, "record": None, "most": None}  # fmt: skip
    return argparse.Namespace(out=out, **{**usual, **more})


def texts_of(generator, changed=()):
    """Stands in for generating texts: those of the layers in ``changed`` are other ones."""
    return lambda job: f"{job[1].key} by {'another' if job[0].spec in changed else generator}"


def known_in(out):
    """What is known before, as :func:`tune.prepare` wrote it."""
    data = json.loads((out / "known.json").read_text())
    return {spec: schedule.Known.from_dict(one) for spec, one in data.items()}


def search_of(args, runner, pool, wanted, text=None):
    """The search of a part behind preparations; ``wanted`` stands for the tasks that the arguments ask for."""
    tune.prepare(args, pool, text=text or texts_of("today"))
    return tune.Search(args, runner, pool, known_in(args.out), {}, wanted)


def forty_trials(out, delay=0.0):
    """A run of one search of 40 trials, from where an earlier one stopped."""
    wanted = [schedule.Task(SMALL, "paper", 40)]
    tune.wanted_tasks = lambda *_: wanted
    search = search_of(arguments(out), FakeRunner(delay=delay), ThreadPoolExecutor(1), wanted)
    search.work(schedule.Turns(search.begin))
