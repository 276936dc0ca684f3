"""`complete_record`: everything that `pravaha agents profile` measures of a model."""

import time
from collections.abc import Callable
from dataclasses import replace

from agents.model.decisions import Decider
from agents.model.layout import SharedLayout
from agents.model.profile_record import ProfileRecord
from agents.model.session import ModelSession
from agents.steps.measures.answer_items import ANSWERS
from agents.steps.measures.bench import Bench
from agents.steps.measures.function_items import FUNCTIONS
from agents.steps.measures.label_items import LABELS
from agents.steps.measures.loop_items import LOOPS
from agents.steps.measures.measure import Measurement, Progress, Report
from agents.steps.measures.output_items import OUTPUTS_SUITE
from agents.steps.measures.question_measure import measure_questions, question_items

SUITES = (LABELS, ANSWERS, FUNCTIONS, LOOPS, OUTPUTS_SUITE)
_QUESTIONS = "one-token questions against the detectors"


async def complete_record(
    session: ModelSession,
    report: Report = lambda progress: None,
    clock: Callable[[], float] = time.monotonic,
) -> ProfileRecord:
    """Measure the loaded model. Nothing is kept: an interrupted measurement leaves nothing behind.

    Args:
        session: the engine.
        report: told how far it is.
        clock: monotonic seconds.

    Raises:
        ModelFailure: no model is loaded, or the engine failed.
    """
    layout = SharedLayout(session)
    name = session.model().name
    questions = len(question_items())
    suites = sum(suite.count for suite in SUITES)
    total = suites + questions
    done = 0

    def later(progress: Progress) -> None:
        report(replace(progress, total=total))

    def tick() -> None:
        nonlocal done
        done += 1
        report(Progress(name, _QUESTIONS, suites + done, total))

    begin = clock()
    record = await Measurement(SUITES).run(session, layout, later)
    results = {}
    if LOOPS.name in record.items:  # it was not given up
        results = await measure_questions(Bench(session, layout, Decider(session, layout), tick))
    return replace(record, questions=results, is_complete=True, seconds=clock() - begin)
