"""`Measurement`: measures suites of items one after another.

A model that nothing is known of gets a short test when an agent first needs it (`SHORT`: a minute or two with
a 1.5B on two cores). `pravaha agents profile` measures everything (`complete_record`: some minutes). A model
that cannot read a sentence is tested for nothing more.
"""

import logging
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from agents.model.decisions import Decider
from agents.model.layout import SharedLayout
from agents.model.profile_record import ProfileRecord, save_record, share
from agents.model.session import ModelSession
from agents.steps.measures.answer_items import ANSWERS
from agents.steps.measures.bench import Bench, Suite
from agents.steps.measures.function_items import SHORT_FUNCTIONS
from agents.steps.measures.label_items import LABELS
from agents.steps.measures.loop_items import SHORT_LOOPS

_LOG = logging.getLogger(__name__)
SHORT = (LABELS, ANSWERS, SHORT_FUNCTIONS, SHORT_LOOPS)
_LEAST_ANSWERS = 0.4
"""Share of short answers below which a model is not tested for more: it cannot read a sentence."""


@dataclass(frozen=True, slots=True)
class Progress:
    """How far a measurement is.

    Attributes:
        model: its name.
        title: what is being measured.
        done, total: items of all suites.
    """

    model: str
    title: str
    done: int
    total: int

    @property
    def text(self) -> str:
        """The state as one line."""
        return f"testing {self.model} once: {self.title}, {self.done} of {self.total}"

    def fields(self) -> dict[str, Any]:
        """The data of an event."""
        return {"text": self.text, "measured": self.title, "done": self.done, "total": self.total}


Report = Callable[[Progress], None]


@dataclass(slots=True)
class Measurement:
    """A measurement that can be interrupted: finished suites are kept for the next `run`, in memory alone.

    Attributes:
        suites: in order.
        record: what was measured so far.
    """

    suites: Sequence[Suite]
    record: ProfileRecord = field(default_factory=lambda: ProfileRecord(""))

    async def run(
        self,
        session: ModelSession,
        layout: SharedLayout,
        report: Report = lambda progress: None,
        clock: Callable[[], float] = time.monotonic,
    ) -> ProfileRecord:
        """Measure the suites that are missing.

        Raises:
            ModelFailure: no model is loaded, or the engine failed.
        """
        name = session.model().name
        total = sum(suite.count for suite in self.suites)
        decider = Decider(session, layout)
        before = 0
        for suite in self.suites:
            begin = clock()
            if suite.name not in self.record.items:
                counter = _Counter(name, suite.title, before, total, report)
                bench = Bench(session, layout, decider, counter.tick)
                counter.say()
                items = dict(await suite.measure(bench))
                self.record = replace(
                    self.record,
                    name=name,
                    items={**self.record.items, suite.name: items},
                    seconds=self.record.seconds + clock() - begin,
                )
            before += suite.count
            if (
                suite.name == ANSWERS.name
                and share(self.record.items[ANSWERS.name].values()) < _LEAST_ANSWERS
            ):
                break
        return self.record


@dataclass(slots=True)
class _Counter:
    model: str
    title: str
    done: int
    total: int
    report: Report

    def tick(self) -> None:
        self.done += 1
        self.say()

    def say(self) -> None:
        self.report(Progress(self.model, self.title, self.done, self.total))


def keep(identity: str, record: ProfileRecord) -> None:
    """Keep a short test's results; a full or read-only disk costs only its repetition."""
    try:
        save_record(identity, record)
    except OSError:
        _LOG.warning("the capability profile of %s cannot be kept", identity, exc_info=True)
