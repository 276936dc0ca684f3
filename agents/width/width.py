"""`widen`: candidates are written, checked and chosen.

Cost: the prompt is computed once, and candidates are decoded in one batch, whose step takes a fraction of
their number (`agents.width.sampling`). Checks run while others are still decoded.

Where candidates can be compared (`agreement`), all are written together, and the rest is stopped once
`SUPPORT` of them pass every check and do the same on all generated inputs. Without a check that decides it
takes more than half of them. Where they cannot be compared, the greedy one is written alone, the others
follow if it fails, and the rest is stopped at the first that passes. If the caller compares them (`counted`),
all are written unless a check decides.

How many are written: at most `width`; no more than `check_s` seconds of checks allow, by what checking the
first one took; and no more than the meter's tokens allow.
"""

import itertools
import time
from collections.abc import Callable, Sequence
from typing import Any, Protocol

from agents.api.budget import BudgetMeter
from agents.api.errors import BudgetExhausted
from agents.api.events import RunEventType
from agents.api.usage import Usage
from agents.model.session import Generation, ModelSession, usage_of
from agents.width.agreement import Agreement
from agents.width.candidate import Candidate, Outcome
from agents.width.check import Check
from agents.width.choice import choose, furthest
from agents.width.chosen import Chosen
from agents.width.fence import code_of
from agents.width.prompt import CodePrompt
from agents.width.sampling import STOP, ladder, sample, sampling_params, second_ladder
from engine.api.request import FinishReason, Request

WIDTH = 8
REPAIRS = 4
"""Candidates of the second round, which see what the best one of the first failed."""
MAX_TOKENS = 768
SUPPORT = 3
"""Candidates that must agree before the rest is stopped."""
CHECK_S = 60.0
_numbers = itertools.count(1)


class Record(Protocol):
    """Appends an event, as `AgentRun.record` does."""

    def __call__(self, kind: RunEventType, **data: Any) -> None:
        """Append an event with these members."""
        ...


def _no_record(kind: RunEventType, **data: Any) -> None:
    """Without a log."""


async def widen(
    session: ModelSession,
    prompt: CodePrompt,
    checks: Sequence[Check],
    *,
    width: int = WIDTH,
    repairs: int = REPAIRS,
    agreement: Agreement | None = None,
    counted: bool = False,
    max_tokens: int = MAX_TOKENS,
    check_s: float = CHECK_S,
    record: Record = _no_record,
    meter: BudgetMeter | None = None,
    diff_of: Callable[[str], str] = lambda code: "",
    completed: Callable[[str], str] = lambda code: code,
) -> Chosen:
    """Write up to `width` candidates, check each, and choose.

    Args:
        session: the engine.
        prompt: what is asked.
        checks: from cheap to dear.
        width: candidates of the first round.
        repairs: candidates of a second round if none passes; 0 for none.
        agreement: compares candidates that pass; None takes the likeliest.
        counted: the caller compares the candidates, so one that passes is not enough if no check decides.
        max_tokens: of each candidate.
        check_s: seconds that checking all candidates may take, estimated from the first.
        record: where events go (`agents.width`).
        meter: pays for the tokens.
        diff_of: the change that a code is, for the event of the choice.
        completed: a candidate's code as it is checked and chosen, such as with imports that it forgot.

    Raises:
        BudgetExhausted: not even the first candidate can be paid.
        ModelFailure: the engine refused or failed.
        InvalidRequest: the chat template rejects the prompt.
        AgentError: a check could not be made at all, such as without a sandbox.
    """
    one = _Widening(session, checks, width, max_tokens, record, meter, agreement, completed)
    one.tell(
        RunEventType.WIDTH_STARTED,
        goal=prompt.goal,
        candidates=width,
        checks=[check.name for check in checks] + ["agreement"] * (agreement is not None),
    )
    temperatures = ladder(width)
    together = one.affordable(width, check_s) if one.compares else 1
    passed = await one.round(prompt, temperatures[:together], 0)
    # Without a comparison the greedy one is taken if it passes: others would change nothing.
    more = counted or not one.any_passed
    if not passed and not one.compares and more:
        await one.round(prompt, temperatures[1 : one.affordable(width, check_s)], 0)
    if not one.any_passed:
        await one.repair(prompt, one.affordable(one.written + repairs, check_s) - one.written)
    return await one.finish(diff_of)


class _Widening:
    """One call of `widen`."""

    def __init__(
        self,
        session: ModelSession,
        checks: Sequence[Check],
        width: int,
        max_tokens: int,
        record: Record,
        meter: BudgetMeter | None,
        agreement: Agreement | None,
        completed: Callable[[str], str],
    ) -> None:
        self._width = width
        self._agreement = agreement if agreement is not None and agreement.calls else None
        self._completed = completed
        self._session = session
        self._checks = checks
        self._max_tokens = max_tokens
        self._record = record
        self._meter = meter
        self._number = next(_numbers)
        self._candidates: list[Candidate] = []
        self._trees: dict[str, Candidate] = {}
        self._stopped = 0
        self._usage = Usage()

    def tell(self, kind: RunEventType, **data: Any) -> None:
        """Append an event of this widening."""
        self._record(kind, width=self._number, **data)

    @property
    def compares(self) -> bool:
        """Whether candidates can be compared."""
        return self._agreement is not None and self._width > 1

    @property
    def written(self) -> int:
        """How many candidates there are."""
        return len(self._candidates)

    @property
    def any_passed(self) -> bool:
        """Whether a candidate passed every check."""
        return bool(self._passed())

    @property
    def _decisive(self) -> list[str]:
        """Names of the checks that decide. One may learn that it does from the candidates that it judges."""
        return [check.name for check in self._checks if check.decides]

    def affordable(self, width: int, check_s: float) -> int:
        """How many candidates may be written in all."""
        spent = max((sum(o.seconds for o in one.outcomes) for one in self._candidates), default=0.0)
        number = min(width, 1 + max(1, int(check_s / spent))) if spent else width
        if self._meter is not None:
            paid = len(self._candidates) + self._meter.tokens_left // self._max_tokens
            number = max(1, min(number, paid))
        return number

    async def round(self, prompt: CodePrompt, temperatures: Sequence[float], round_: int) -> bool:
        """Write candidates and check each as it finishes; whether the rest was not needed."""
        if not temperatures:
            return False
        ids = prompt.token_ids(self._session)
        requests = [
            Request(
                ids,
                sampling_params(
                    temperature,
                    number=len(self._candidates) + at,
                    max_tokens=self._max_tokens,
                    stop=STOP if prompt.opening else (),
                ),
            )
            for at, temperature in enumerate(temperatures)
        ]
        answers = sample(self._session, requests, self._meter)
        finished = 0
        try:
            async for at, generation in answers:
                finished += 1
                candidate = self._written(prompt, generation, temperatures[at], round_)
                if candidate.same_as is None:
                    await self._judge(candidate)
                if candidate.failed is None and await self._suffices(round_):
                    self._stopped += len(requests) - finished
                    return True
        except BudgetExhausted:
            if not self._candidates:
                raise
        finally:
            await answers.aclose()
        return False

    async def repair(self, prompt: CodePrompt, repairs: int) -> None:
        """A second round, which is told what the best candidate failed."""
        usable = [one for one in self._candidates if one.code.strip()]
        failed = furthest(usable).failed if usable else None
        if repairs > 0 and failed is not None:
            await self.round(prompt.again(failed.detail), second_ladder(repairs), 1)

    async def finish(self, diff_of: Callable[[str], str]) -> Chosen:
        """Choose, and tell."""
        passed = self._passed()
        votes = None
        if self._agreement is not None and len(passed) > 1:
            votes = await self._agreement.votes([one.code for one in passed])
        best, decided, reason = choose(self._candidates, self._decisive, votes)
        verified = best is not None and best.failed is None and bool(self._decisive)
        self.tell(
            RunEventType.CANDIDATE_CHOSEN,
            candidate=None if best is None else best.number,
            verified=verified,
            decided_by=decided,
            reason=reason,
            stopped=self._stopped,
            diff="" if best is None else diff_of(best.code),
        )
        return Chosen(
            best, verified, decided, reason, tuple(self._candidates), self._stopped, self._usage
        )

    def _written(
        self, prompt: CodePrompt, generation: Generation, temperature: float, round_: int
    ) -> Candidate:
        """Enter a candidate; one that equals an earlier one gets its outcomes."""
        self._usage = self._usage.plus(usage_of([generation]))
        logprobs = generation.logprobs
        code = ""
        if generation.text.strip():
            code = code_of(prompt.prefix + generation.text, opened=bool(prompt.opening))
        candidate = Candidate(
            number=len(self._candidates),
            temperature=temperature,
            code=self._completed(code),
            tokens=len(generation.token_ids),
            mean_logprob=sum(logprobs) / len(logprobs) if logprobs else 0.0,
            complete=generation.finish_reason is FinishReason.STOP,
            round=round_,
        )
        self._candidates.append(candidate)
        twin = self._trees.setdefault(candidate.tree_key(), candidate)
        if twin is not candidate:
            candidate.same_as = twin.number
            candidate.outcomes = twin.outcomes
        self.tell(
            RunEventType.CANDIDATE_WRITTEN,
            candidate=candidate.number,
            temperature=temperature,
            round=round_,
            code=candidate.code,
            tokens=candidate.tokens,
            same_as=candidate.same_as,
        )
        return candidate

    def _passed(self) -> list[Candidate]:
        """The candidates that passed every check."""
        return [one for one in self._candidates if one.code.strip() and one.failed is None]

    async def _suffices(self, round_: int) -> bool:
        """Whether no further candidate is needed, after one passed every check."""
        decides = bool(self._decisive)
        if self._agreement is None or round_:
            return decides
        needed = min(SUPPORT if decides else self._width // 2 + 1, self._width)
        passed = self._passed()
        if len(passed) < needed:
            return False
        votes = await self._agreement.votes([one.code for one in passed])
        return max(votes.sizes) >= needed

    async def _judge(self, candidate: Candidate) -> None:
        if not candidate.code.strip():
            self._checked(candidate, Outcome("code", False, "The answer has no code."))
            return
        for check in self._checks:
            began = time.monotonic()
            outcome = await check.judge(candidate.code)
            seconds = time.monotonic() - began
            self._checked(
                candidate,
                Outcome(check.name, outcome.passed, outcome.detail, outcome.score, seconds),
            )
            if not outcome.passed:
                return

    def _checked(self, candidate: Candidate, outcome: Outcome) -> None:
        candidate.outcomes.append(outcome)
        self.tell(
            RunEventType.CANDIDATE_CHECKED,
            candidate=candidate.number,
            check=outcome.check,
            passed=outcome.passed,
            detail=outcome.detail,
            seconds=round(outcome.seconds, 3),
        )
