"""A toy executor of a model with recurrent layers: logits are a function of a state, not of the KV.

The state is a hash of every token so far, kept in the row's slot: a wrong restore, a copy too early or too
late, or a state that was computed on twice changes the next token. Without a mistake the logits are those of
`ToyExecutor`, so `oracle` holds for both. The KV is written and checked as by `ToyExecutor`.
"""

import numpy as np

from engine.api.errors import ExecutorError
from tests.fakes.toy_executor import ToyExecutor, logits_of, next_hash

STATE_DTYPE = np.dtype([("hash", np.uint64), ("salt", np.int64)])
_EMPTY = 0xCBF29CE484222325


class RecurrentExecutor(ToyExecutor):
    """Records every copied state in `state_copies`; each slot begins with the bytes of no state."""

    def __init__(self, num_blocks, block_size, *, num_slots, **options):
        super().__init__(num_blocks, block_size, **options)
        self.states = np.full(num_slots, 0x5555, np.int64).astype(STATE_DTYPE)
        self.state_copies = []  # (source, target)
        self.fail_copies = False
        self.states_read = self.states_written = 0
        self._hashes = {}  # (row, tokens) → hash after so many, in the running step

    @property
    def state_bytes(self):
        return STATE_DTYPE.itemsize

    def copy_states(self, sources, targets):
        if self.fail_copies:
            raise ExecutorError("broken")
        for source, target in zip(sources.tolist(), targets.tolist(), strict=True):
            self.states[target] = self.states[source]
            self.state_copies.append((source, target))

    def read_states(self, slots, out):
        if self.fail_swap:
            raise ExecutorError("broken")
        out[:] = self.states[slots].view(np.uint8).reshape(len(slots), -1)
        self.states_read += len(slots)

    def write_states(self, slots, data):
        if self.fail_swap:
            raise ExecutorError("broken")
        self.states[slots] = np.ascontiguousarray(data).view(STATE_DTYPE)[:, 0]
        self.states_written += len(slots)

    def execute(self, plan):
        assert plan.state_slots.shape == plan.num_tokens.shape  # as the native executor demands
        slots = plan.state_slots[plan.rows]
        assert len(set(slots.tolist())) == len(slots)
        assert (slots >= 0).all()
        if not self.fail_with:
            self._hashes = {}
            for index, row in enumerate(plan.rows.tolist()):
                self._advance(plan, index, row, int(slots[index]))
        return super().execute(plan)

    def _advance(self, plan, index, row, slot):
        run = slice(plan.query_start[index], plan.query_start[index + 1])
        first, salt = int(plan.positions[run][0]), self.salt_of(row)
        state = self.states[slot]
        if first == 0:
            state["hash"], state["salt"] = _EMPTY, salt
        hashed = int(state["hash"]) ^ int(state["salt"]) ^ salt
        for nth, token in enumerate(plan.token_ids[run].tolist()):
            hashed = next_hash(hashed, token)
            self._hashes[row, first + nth + 1] = hashed
        self.states[slot]["hash"] = hashed

    def _logits(self, plan, row, length):
        super()._logits(plan, row, length)  # checks that the KV is the row's own
        return self.forced(
            plan, row, length, logits_of(self._hashes[int(row), length], self.vocab_size)
        )
