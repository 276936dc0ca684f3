"""The blocks that a sliding window takes, against the tokens that attention reads."""

from hypothesis import given
from hypothesis import strategies as st

from engine.memory.window_size import blocks_of_window, first_block

SIZES = {
    "window": st.integers(1, 200),
    "chunk": st.sampled_from([1, 2, 4, 8, 64]),
    "block_size": st.sampled_from([1, 2, 3, 4, 16, 32, 96]),
}


def test_a_window_of_gemma_3():
    sizes = {"window": 512, "chunk": 64, "block_size": 32}
    assert first_block(1024, **sizes) == 16
    assert first_block(1056, **sizes) == 16  # from token 544 on, but chunks of 64 are read
    assert first_block(1088, **sizes) == 18
    assert blocks_of_window(512, chunk=64, block_size=32) == 17


@given(tokens=st.integers(1, 1000), **SIZES)
def test_everything_is_there_that_the_next_token_or_the_last_one_again_reads(
    tokens, window, chunk, block_size
):
    first = first_block(tokens, window, chunk=chunk, block_size=block_size)
    for position in (tokens - 1, tokens):
        read_from = max(0, position + 1 - window) // chunk * chunk
        assert first * block_size <= read_from


@given(blocks=st.integers(0, 100), **SIZES)
def test_no_window_takes_more_blocks(blocks, window, chunk, block_size):
    sizes = {"chunk": chunk, "block_size": block_size}
    held = blocks - first_block(blocks * block_size, window, **sizes)
    assert held <= blocks_of_window(window, **sizes)
