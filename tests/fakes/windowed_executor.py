"""A toy executor of a model whose layers with a sliding window keep no more than it.

What it keeps of a token in its window blocks is a hash of all tokens so far, computed from that of the token
before: as in a model, where the keys of a token depend on the windows of those before it. Logits are those
of `ToyExecutor` if everything in the chunks that a token sees is right, and others if anything is wrong: a
window block that was given to another block, was not copied, or was restored from a window that ended
elsewhere.
"""

import numpy as np

from engine.api.errors import ExecutorError
from tests.fakes.toy_executor import ToyExecutor, logits_of, next_hash

_EMPTY = 0xCBF29CE484222325
_MARK = 0x9E3779B97F4A7C15


class WindowedExecutor(ToyExecutor):
    """`window` and `chunk` as of `engine.memory.window_size`."""

    def __init__(self, num_blocks, block_size, *, num_window_blocks, window, chunk, **options):
        super().__init__(num_blocks, block_size, **options)
        self.window_kv = np.full((num_window_blocks, block_size), 0x5555, np.uint64)
        self.window, self.chunk = window, chunk
        self.window_copies = []  # (source, target) of window blocks
        self.windows_read = self.windows_written = 0  # blocks
        self._hashes = {}  # (row, tokens) → hash after so many, in the running step

    @property
    def window_block_bytes(self):
        return self.window_kv[0].nbytes

    def copy_window_blocks(self, sources, targets):
        for source, target in zip(sources.tolist(), targets.tolist(), strict=True):
            assert min(source, target) >= 0
            self.window_kv[target] = self.window_kv[source]
            self.window_copies.append((source, target))

    def read_window_blocks(self, blocks, out):
        if self.fail_swap:
            raise ExecutorError("broken")
        assert (blocks >= 0).all()
        out[:] = self.window_kv[blocks].view(np.uint8).reshape(len(blocks), -1)
        self.windows_read += len(blocks)

    def write_window_blocks(self, blocks, data):
        if self.fail_swap:
            raise ExecutorError("broken")
        assert (blocks >= 0).all()
        self.window_kv[blocks] = np.ascontiguousarray(data).view(np.uint64)
        self.windows_written += len(blocks)

    def execute(self, plan):
        assert plan.window_blocks.shape == (len(self.kv),)  # as the native executor demands
        if not self.fail_with:
            self._hashes = {}
            for index, row in enumerate(plan.rows.tolist()):
                self._advance(plan, index, row)
        return super().execute(plan)

    def _advance(self, plan, index, row):
        run = slice(plan.query_start[index], plan.query_start[index + 1])
        first, last = int(plan.positions[run][0]), int(plan.positions[run][-1])
        tokens = plan.token_table[row, : last + 1].tolist()
        marks = [mark * _MARK % 2**64 for mark in self.salts(row, np.arange(last + 1)).tolist()]
        right, hashed = [], _EMPTY
        for token in tokens:
            hashed = next_hash(hashed, token)
            right.append(hashed)
        for position in range(first, last + 1):
            before = _EMPTY
            if position:
                before = self._read(plan, row, position - 1) ^ marks[position - 1]
            value = next_hash(before, tokens[position]) ^ marks[position]
            block, slot = self._place(plan, row, position)
            self.window_kv[block, slot] = value
        for position in range(first, last + 1):
            start = max(0, position + 1 - self.window) // self.chunk * self.chunk
            wrong = 0
            for seen in range(start, position + 1):
                value = self._read(plan, row, seen) ^ marks[seen]
                wrong = next_hash(wrong, value ^ right[seen]) if value != right[seen] else wrong
            self._hashes[row, position + 1] = right[position] ^ wrong

    def _place(self, plan, row, position):
        block = plan.block_tables[row, position // self.block_size]
        own = int(plan.window_blocks[block])
        assert own >= 0, f"row {row} has no window block for token {position}"
        return own, position % self.block_size

    def _read(self, plan, row, position):
        return int(self.window_kv[self._place(plan, row, position)])

    def _logits(self, plan, row, length):
        super()._logits(plan, row, length)  # checks that the KV is the row's own
        return self.forced(
            plan, row, length, logits_of(self._hashes[int(row), length], self.vocab_size)
        )
