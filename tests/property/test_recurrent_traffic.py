"""The random traffic of `test_traffic` over a model with recurrent layers.

Its answers are functions of a recurrent state (`tests.fakes.recurrent_executor`), which is restored from
checkpoints, running rows and stored states, and recomputed from the nearest one. There are few slots, so
that checkpoints are dropped for others and requests wait for a slot; sometimes copying fails.
"""

from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import precondition, rule

from engine._core import BlockAllocator
from tests.property.test_traffic import Traffic


class RecurrentTraffic(Traffic):
    """Also checks after every step that no slot has two holders, and at the end that none is held."""

    def new_toy(self):
        size, blocks = self.settings["block_size"], self.settings["blocks"]
        self.settings["allocator"] = BlockAllocator
        self.settings["state_slots"] = 1 + blocks % 11
        self.settings["interval"] = size * (1 + blocks % 5)
        self.settings["stored_states"] = self.settings["swap"] // 2
        super().new_toy()

    @precondition(lambda self: self.toy.blocks.recurrent.saver is not None)
    @rule(times=st.integers(1, 5))
    def save_states(self, times):
        for _ in range(times):
            self.toy.blocks.recurrent.save_idle()

    @rule(broken=st.sampled_from([False, False, True]))
    def break_copies(self, broken):
        """Copying fails: rows that begin with a copy fail, and no states are kept."""
        self.toy.executor.fail_copies = broken


TestRecurrentTraffic = RecurrentTraffic.TestCase
TestRecurrentTraffic.settings = settings(max_examples=60, stateful_step_count=40)
