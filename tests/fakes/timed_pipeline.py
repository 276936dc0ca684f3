"""A toy pipeline on a simulated machine whose step times are known."""

import numpy as np

from engine.api.events import RequestScheduled
from engine.api.request import Request, SamplingParams
from engine.api.scheduling import Scheduling
from engine.api.step_costs import StepLoad
from tests.fakes.toy_pipeline import ToyPipeline

COSTS = (0.01, 0.001, 0.0005)
"""Seconds a step, a prefilled token and a decoding row take on the simulated machine."""


def prompt(length, start=1):
    return tuple((start + i) % 90 for i in range(length))


def ask(length=4, start=1, *, max_tokens=4, priority=0, deadline_ms=None):
    params = SamplingParams(temperature=0.0, max_tokens=max_tokens, ignore_eos=True)
    return Request(prompt(length, start), params, priority=priority, deadline_ms=deadline_ms)


class TimedPipeline(ToyPipeline):
    """A toy pipeline whose steps take time; records the order of admissions."""

    def __init__(self, policy, *, fitted=True, **options):
        """`fitted`: whether the step-time model has observed such steps before."""
        scheduling = Scheduling(policy=policy)
        super().__init__(scheduling=scheduling, **options)
        watch = self.executor.watch

        def take_time(plan):
            watch(plan)
            scheduled = np.diff(plan.query_start)
            self.clock.now += step_seconds(
                int(scheduled[scheduled > 1].sum()), int((scheduled == 1).sum())
            )

        self.executor.watch = take_time
        if fitted:
            teach(self.pipeline.scheduler.work)
        self.admitted = []
        self.events.subscribe(
            RequestScheduled, lambda event: self.admitted.append(event.request_id)
        )

    def names(self, **requests):
        """Submit requests by name; returns the names in order of admission."""
        named = {request.request_id: name for name, request in requests.items()}
        for request in requests.values():
            self.submit(request)
        self.run()
        return [named[one] for one in self.admitted if one in named]


def step_seconds(prefill, decodes):
    constant, token, row = COSTS
    return constant + token * prefill + row * decodes


def teach(work):
    for prefill, rows in ((0, 1), (0, 8), (16, 0), (32, 0), (8, 4), (24, 2), (0, 3), (4, 1)) * 4:
        load = StepLoad(prefill, rows, 10 * (prefill + rows))
        work.model.observe(load, step_seconds(prefill, rows))
