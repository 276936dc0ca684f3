"""The test of a model takes none of a run's seconds."""

import asyncio

from agents.api.budget import Budget, BudgetMeter
from agents.api.events import RunState
from agents.outputs.answer import Answer
from agents.procedures.procedure import AgentTask
from agents.runs.agent_run import AgentRun, detector_results
from agents.runs.approvals import Approvals
from tests.unit.agents.conftest import spec


def test_a_stopped_clock_keeps_what_is_left():
    meter = BudgetMeter(Budget(seconds=10), started=100.0)
    assert meter.seconds_left(103.0) == 7
    meter.stop_clock(103.0)
    meter.stop_clock(150.0)  # it is stopped already
    assert meter.is_stopped
    assert meter.seconds_left(500.0) == 7
    meter.start_clock(600.0)
    meter.start_clock(700.0)
    assert not meter.is_stopped
    assert meter.seconds_left(604.0) == 3


async def test_a_run_outlives_its_seconds_while_a_model_is_tested(registry):
    now = 0.0

    class Phase:
        model = "toy"

        async def __call__(self, task, output, run):
            nonlocal now
            with run.untimed():
                now += 1_000.0  # the test takes far more than the run may
                await asyncio.sleep(0)
            run.check_cancelled()
            return Answer(text="tested")

    task = AgentTask("x")
    stop = asyncio.Event()
    run = AgentRun(
        spec("echo"),
        task,
        registry,
        results=detector_results(task, stop),
        cancelled=stop,
        approvals=Approvals(has_approver=False),
        budget=Budget(seconds=5.0),
        model=Phase(),
        clock=lambda: now,
    )
    result = await run.execute()
    assert (result.state, result.output.text) == (RunState.OK, "tested")
    assert run.meter.seconds_left(now) == 5.0
