"""`ModelDrafts`: speculative decoding with draft tokens from a second, smaller model.

As with prompt lookup, a draft token is accepted if it equals what the executor samples at its position, so
drafts change the number of steps and no token. The draft model samples with the same noise, so that its
samples agree where the two distributions are close.

A draft model costs time whether its tokens are accepted or not. Two things keep it from slowing an answer:

* *Drafting goes on while it pays.* Before each draft token, its expected gain per second is compared with
  that of the step so far. The acceptance rate is learned by the probability that the draft model gave its
  token; before the token is known, the mean rate counts. Both decay, so a bad draft model is tried again,
  ever more rarely.
* *Losses are limited.* A balance of seconds earns what steps with drafts save, pays what they lose and
  what catching up costs, and earns `ALLOWANCE` of other steps' time. Without a positive balance nothing is
  drafted. So an answer takes at most about `1 + ALLOWANCE` of its time, and `MAX_BALANCE` longer.

Only steps in which at most `SLOTS` rows decode and nothing else happens have such drafts: with more, the
verification costs more than it saves. A failure of the draft model turns it off; no request fails.
"""

import logging
import time
from collections.abc import Callable

import numpy as np
from numpy.typing import NDArray

from engine.api.step_costs import StepCosts, StepLoad
from engine.batch.rows import RowTable
from engine.executors.base import MAX_DRAFT_TOKENS
from engine.executors.draft_model import CATCH_UP_TOKENS, SLOTS, DraftModel, SamplingTables
from engine.scheduler.speculation import Drafts, draftable

_log = logging.getLogger(__name__)

ALLOWANCE = 0.03
"""Share of the time of steps that drafting may lose."""
MAX_BALANCE = 0.5
"""Upper bound of the balance and its first value, in seconds."""
MIN_SPEEDUP = 1.05
"""A draft token must promise this much more per second than the step has without it."""

_EDGES = np.array([0.2, 0.4, 0.6, 0.8, 0.95])
"""Bounds of the classes of probabilities that the draft model gives its tokens."""
_PRIOR = np.array([0.15, 0.3, 0.45, 0.63, 0.8, 0.92])
"""Acceptance rates by class before anything is learned: somewhat below the probabilities."""
_PRIOR_MEAN = 0.6
_PRIOR_WEIGHT = 4.0
"""Weight of the priors, in draft tokens."""
_DECAY = 0.98
"""Decay of what was learned per generated token; the half-life is 34 tokens, as for prompt lookup."""
_MAX_VERIFY_COST = 0.5
"""Upper bound of the cost of verifying a token, as a fraction of the step's time per row."""


class ModelDrafts:
    """Proposes draft tokens from a draft model. Owned by the scheduler.

    Attributes:
        error: why there are no more drafts; None while the draft model works.
    """

    def __init__(
        self,
        table: RowTable,
        model: DraftModel,
        *,
        token_budget: int,
        clock: Callable[[], float] = time.perf_counter,
    ) -> None:
        """Propose for rows of `table`, in steps of at most `token_budget` tokens."""
        self.error: str | None = None
        self._table = table
        self._model = model
        self._max_tokens = min(MAX_DRAFT_TOKENS, token_budget)
        self._clock = clock
        self._tried = np.zeros(len(_PRIOR))
        self._accepted = np.zeros(len(_PRIOR))
        self._balance = MAX_BALANCE
        self._plain_seconds = 0.0  # of the step without drafts, as predicted
        self._seconds = 0.0  # spent since `take_seconds`
        self._classes: list[
            list[int]
        ] = []  # of the last draft tokens, in the order of `Drafts.batch`

    @property
    def name(self) -> str:
        """The draft model's name."""
        return self._model.name

    def may_propose(self, num_rows: int) -> bool:
        """Whether a step of this many decodes may have drafts."""
        return num_rows <= SLOTS and self._balance > 0 and self.error is None

    def take_seconds(self) -> float:
        """Seconds that drafting took since the last call."""
        seconds, self._seconds = self._seconds, 0.0
        return seconds

    def propose(
        self,
        batch: NDArray[np.int32],
        num_scheduled_tokens: NDArray[np.int32],
        costs: StepCosts | None,
    ) -> Drafts | None:
        """Draft tokens for a step, written to the token table; None if there are none.

        Args:
            batch: [R] int32, the step's rows.
            num_scheduled_tokens: [R] int32, tokens each row computes without drafts.
            costs: coefficients of the step-time model; None before it is fitted.
        """
        if not self.may_propose(len(batch)) or costs is None:
            return None
        if np.count_nonzero(num_scheduled_tokens == 1) != len(batch):
            return None
        room = self._room(batch)
        candidates = np.flatnonzero(room > 0)
        if not candidates.size:
            return None
        began = self._clock()
        try:
            return self._draft(batch, candidates, room, costs)
        except BaseException as error:  # a Rust panic is not an Exception
            if isinstance(error, KeyboardInterrupt | SystemExit):
                raise
            _log.exception("The draft model failed; there are no more drafts of it.")
            self.error = str(error) or type(error).__name__
            return None
        finally:
            self._seconds += self._clock() - began

    def learn(self, drafts: Drafts, accepted: NDArray[np.int32]) -> None:
        """Update the acceptance rates after a step.

        Args:
            drafts: what `propose` returned for it.
            accepted: [R] int32, draft tokens accepted of each row of the step.
        """
        for classes, hits in zip(self._classes, accepted[drafts.batch].tolist(), strict=True):
            # Tokens after the first mismatch were not verified.
            for at, one in enumerate(classes[: hits + 1]):
                self._tried[one] += 1
                self._accepted[one] += at < hits

    def settle(
        self, seconds: float, drafting_seconds: float, generated: int, rows: int, *, drafted: bool
    ) -> None:
        """Update the balance after a step.

        Args:
            seconds: time of the step without drafting.
            drafting_seconds: time of drafting before it.
            generated: tokens that its rows got.
            rows: number of its rows.
            drafted: whether it verified drafts of this model.
        """
        change = ALLOWANCE * seconds - drafting_seconds
        if drafted:
            change = generated / rows * self._plain_seconds - seconds - drafting_seconds
        else:
            self._model.rest()
        self._balance = min(self._balance + change, MAX_BALANCE)
        decay = _DECAY ** (generated / rows)
        self._tried *= decay
        self._accepted *= decay

    def close(self) -> None:
        """Free the draft model's memory."""
        self._model.close()

    def _room(self, batch: NDArray[np.int32]) -> NDArray[np.int32]:
        """[R] int32, how many draft tokens each row may have; 0 unless it decodes past its prompt."""
        table = self._table
        num_tokens = table.num_tokens[batch]
        # The step samples one more token than it accepts, so the last allowed token is not drafted.
        room = np.minimum(table.max_total[batch], self._model.max_len) - num_tokens - 1
        room = np.minimum(room, (self._max_tokens - len(batch)) // len(batch))
        room *= draftable(table, batch)
        if table.images:
            room *= np.array([row not in table.images for row in batch.tolist()])
        return room

    def _draft(
        self,
        batch: NDArray[np.int32],
        candidates: NDArray[np.intp],
        room: NDArray[np.int32],
        costs: StepCosts,
    ) -> Drafts | None:
        """Drafts of the candidates; none in a step in which their slots catch up."""
        table, model = self._table, self._model
        rows = batch[candidates]
        num_tokens = table.num_tokens[rows]
        self._plain_seconds, verify = _step_costs(costs, len(batch), table.num_tokens[batch])
        if not self._pays(len(batch), np.ones(len(rows)), 0.0, 0.0, verify):
            return None
        order = np.argsort(rows)
        slots = [0] * len(rows)
        followed = model.follow(
            [table.token_table[rows[at], : num_tokens[at]] for at in order.tolist()],
            rows[order].tolist(),
            self._sampling_tables(),
        )
        for at, slot in zip(order.tolist(), followed, strict=True):
            slots[at] = slot
        behind = [slot for slot in slots if model.pending(slot) > CATCH_UP_TOKENS]
        for slot in behind:
            model.catch_up(slot)
        if behind:
            return None
        drafts, self._classes = self._propose(slots, rows, room[candidates], len(batch), verify)
        counts = np.zeros(len(batch), np.int32)
        counts[candidates] = [len(draft) for draft in drafts]
        if not counts.any():
            return None
        for row, first, draft in zip(rows.tolist(), num_tokens.tolist(), drafts, strict=True):
            table.token_table[row, first : first + len(draft)] = draft
        self._classes = [one for one in self._classes if one]
        return Drafts(counts, np.flatnonzero(counts), np.zeros(0, np.int32), by_model=True)

    def _propose(
        self,
        slots: list[int],
        rows: NDArray[np.int32],
        room: NDArray[np.int32],
        num_rows: int,
        verify: float,
    ) -> tuple[list[list[int]], list[list[int]]]:
        """The draft of each slot, and the classes of its tokens' probabilities."""
        drafts: list[list[int]] = [[] for _ in slots]
        classes: list[list[int]] = [[] for _ in slots]
        rates = self._rates()
        likely = np.ones(len(slots))  # probability that a slot's whole draft is accepted
        gained = spent = 0.0
        active = list(range(len(slots)))
        while active and self._pays(num_rows, likely[active], gained, spent, verify):
            tokens, probabilities = self._model.propose([slots[at] for at in active])
            spent += self._model.token_seconds
            going_on = []
            for at, token, probability in zip(active, tokens, probabilities, strict=True):
                if token < 0 or token in self._table.stop_ids[rows[at]]:
                    continue
                one = int(np.searchsorted(_EDGES, probability))
                likely[at] *= rates[one]
                drafts[at].append(token)
                classes[at].append(one)
                gained += likely[at]
                spent += verify
                if len(drafts[at]) < room[at]:
                    going_on.append(at)
            active = going_on
        return drafts, classes

    def _pays(
        self,
        num_rows: int,
        likely: NDArray[np.float64],
        gained: float,
        spent: float,
        verify: float,
    ) -> bool:
        """Whether one more draft token for some rows is expected to raise the step's tokens per second.

        Args:
            num_rows: rows of the step, each of which gets a token without drafts.
            likely: for each of those rows, the probability that its draft so far is accepted.
            gained: expected accepted tokens so far.
            spent: seconds of drafting and verifying so far.
            verify: seconds of verifying a token.
        """
        gain = float(likely.sum()) * self._mean_rate()
        cost = self._model.token_seconds + verify * len(likely)
        speed = (num_rows + gained) / (self._plain_seconds + spent)
        return gain > MIN_SPEEDUP * cost * speed

    def _rates(self) -> NDArray[np.float64]:
        """Acceptance rate by class."""
        rates: NDArray[np.float64] = (self._accepted + _PRIOR_WEIGHT * _PRIOR) / (
            self._tried + _PRIOR_WEIGHT
        )
        return rates

    def _mean_rate(self) -> float:
        """Acceptance rate of all tokens."""
        hits = float(self._accepted.sum()) + _PRIOR_WEIGHT * _PRIOR_MEAN
        return hits / (float(self._tried.sum()) + _PRIOR_WEIGHT)

    def _sampling_tables(self) -> SamplingTables:
        table = self._table
        return SamplingTables(
            table.sampling,
            table.penalty_start,
            table.bias_rows,
            table.bias_ids,
            table.bias_values,
            table.breakers.heads,
            table.breakers.tails,
        )


def _step_costs(
    costs: StepCosts, num_rows: int, num_tokens: NDArray[np.int32]
) -> tuple[float, float]:
    """Predicted seconds of a step of decodes, and of one more token in it."""
    kv_tokens = int(num_tokens.sum())
    seconds = costs.seconds(StepLoad(0, num_rows, kv_tokens))
    token = costs.decode_row + costs.kv_token * kv_tokens / num_rows
    return seconds, min(token, _MAX_VERIFY_COST * seconds / num_rows)
