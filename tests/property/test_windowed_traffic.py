"""The random traffic of `test_traffic` over a model with sliding windows that keeps no more than these.

Its answers are functions of every token in the window blocks that a token sees
(`tests.fakes.windowed_executor`). Window blocks are few, so that kept windows are dropped for others,
requests wait, and rows are preempted for want of them; windows are restored from the store, forks begin in
the middle of blocks and behind windows that are gone.
"""

from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import precondition, rule

from engine._core import BlockAllocator
from engine.memory.window_size import blocks_of_window
from tests.property.test_traffic import Traffic


class WindowedTraffic(Traffic):
    """Also checks after every step that a window block is held by the rows that see it, and by no other."""

    def new_toy(self):
        given = self.settings
        size, blocks = given["block_size"], given["blocks"]
        given["allocator"] = BlockAllocator
        given["window"] = window = 1 + blocks % 13
        given["chunk"] = chunk = (1, 2, 4, 6)[blocks % 4]
        most = blocks_of_window(window, chunk=chunk, block_size=size)
        least = most + 2 - (-given["budget"] // size)
        given["window_blocks"] = least + (0, 1, most, 3 * most)[blocks // 4 % 4]
        given["interval"] = size * (1 + blocks % 5)
        given["stored_states"] = given["swap"] // 2
        super().new_toy()

    @precondition(lambda self: self.toy.blocks.windows.saver is not None)
    @rule(times=st.integers(1, 5))
    def save_windows(self, times):
        for _ in range(times):
            self.toy.blocks.windows.save_idle()

    @rule(share=st.floats(0.1, 1.0))
    def drop_windows(self, share):
        """Kept windows make room for window blocks of a row."""
        blocks = self.toy.blocks
        blocks.discard(blocks.allocate(int(blocks.num_growable * share)))


TestWindowedTraffic = WindowedTraffic.TestCase
TestWindowedTraffic.settings = settings(max_examples=150, stateful_step_count=60)
