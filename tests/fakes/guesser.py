"""A `Speculation` that drafts known answers with chosen errors, to test that drafts change nothing."""

import numpy as np

from engine.scheduler.speculation import Drafts, Speculation
from tests.fakes.toy_executor import next_token


class Guesser(Speculation):
    """Drafts up to `length` tokens a row, each right with probability `right`."""

    def __init__(self, toy, *, length, right, seed=0):
        super().__init__(toy.table, token_budget=toy.budget)
        self._toy = toy
        self._length = length
        self._right = right
        self._rng = np.random.default_rng(seed)
        self.accepted = []  # a list of accepted counts for each step with drafts
        self.accepted_at = set()  # (request id, output position) of every accepted draft token
        self._first = {}  # row to the request id and output position of its first draft token

    def may_propose(self, steady):
        return True

    def propose(self, batch, num_scheduled_tokens, costs):
        table, spare = self._table, self._max_tokens - int(num_scheduled_tokens.sum())
        counts = np.zeros(len(batch), np.int32)
        for index, row in enumerate(batch.tolist()):
            num_tokens = int(table.num_tokens[row])
            decodes = num_scheduled_tokens[index] == 1 and num_tokens == table.num_computed[row] + 1
            if (
                not decodes
                or num_tokens <= table.num_prompt_tokens[row]
                or not table.may_draft[row]
            ):
                continue
            room = min(spare, int(table.max_total[row]) - num_tokens - 1, self._length)
            guess = self._guess(row, int(self._rng.integers(0, max(room, 0) + 1)))
            table.token_table[row, num_tokens : num_tokens + len(guess)] = guess
            counts[index] = len(guess)
            first = num_tokens - int(table.num_prompt_tokens[row])
            self._first[row] = table.sequence(row).request_id, first
            spare -= len(guess)
        drafting = np.flatnonzero(counts)
        if not drafting.size:
            return None
        return Drafts(counts, drafting, np.full(len(drafting), 2, np.int32))

    def _guess(self, row, count):
        table = self._table
        sequence = table.sequence(row)
        tokens = table.token_table[row, : table.num_tokens[row]].tolist()
        guess = []
        for _ in range(count):
            token = next_token(
                tokens + guess,
                sequence.request.sampling,
                int(table.sampling["seed"][row]),
                penalty_start=int(table.penalty_start[row]),
                forced=self._toy.executor.force.get(
                    len(tokens) + len(guess) - int(table.penalty_start[row])
                ),
            )
            if self._rng.random() >= self._right:
                token = (token + 1 + int(self._rng.integers(0, 50))) % 99
            if token in table.stop_ids[row].tolist():
                break
            guess.append(token)
        return guess

    def learn(self, batch, drafts, accepted):
        super().learn(batch, drafts, accepted)
        assert (accepted <= drafts.counts).all()
        assert not accepted[drafts.counts == 0].any()
        self.accepted.append(int(accepted.sum()))
        for row, count in zip(batch.tolist(), accepted.tolist(), strict=True):
            if count:
                request_id, first = self._first[row]
                self.accepted_at |= {(request_id, first + at) for at in range(count)}


def guess(toy, **options):
    """Install such a `Speculation` in a toy pipeline's scheduler."""
    guesser = toy.pipeline.scheduler.speculation = Guesser(toy, **options)
    return guesser
