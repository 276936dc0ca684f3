"""`SteadyRows` against a plain loop over rows, and the errors it raises."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from engine._core import SteadyRows, draft_by_lookup

BLOCK, WIDTH, MAX_ROWS = 4, 24, 6
ROW_ARRAYS = ("num_tokens", "num_computed", "num_blocks", "num_indexed", "max_total")


class Tables:
    """Row-indexed arrays of steady rows, with the blocks that their computed tokens need."""

    def __init__(self, known: list[int]) -> None:
        count = len(known)
        self.num_tokens = np.array(known, np.int32)
        self.num_computed = self.num_tokens - 1
        self.num_blocks = -(-self.num_computed // BLOCK)
        self.num_indexed = self.num_computed // BLOCK
        self.max_total = np.full(count, WIDTH, np.int32)
        self.token_table = np.arange(count * WIDTH, dtype=np.int32).reshape(count, WIDTH)
        self.block_tables = np.full((count, WIDTH // BLOCK), -1, np.int32)
        self.stop_ids = np.full((count, 2), -1, np.int32)
        self.last_token_at = np.arange(count, dtype=np.float64)
        self.drained = np.zeros(count, np.bool_)

    def steady(self, rows: list[int]) -> tuple[SteadyRows, np.ndarray, np.ndarray]:
        """The rows, and where `look_up` writes their tokens and positions."""
        token_ids, positions = np.zeros((2, len(rows)), np.int32)
        rows_array = np.array(rows, np.int32)
        core = SteadyRows(rows_array, token_ids, positions, **vars(self), block_size=BLOCK)
        return core, token_ids, positions

    def copies(self) -> dict[str, list]:
        """Every array as lists."""
        return {name: value.tolist() for name, value in vars(self).items()}


@st.composite
def steps(draw: st.DrawFn) -> tuple[Tables, list[int], list[list[int]]]:
    """Tables, some of their rows in any order, and what several steps sample."""
    known = draw(st.lists(st.integers(1, WIDTH - 4), min_size=1, max_size=MAX_ROWS))
    tables = Tables(known)
    count = len(known)
    tables.max_total[:] = draw(st.lists(st.integers(2, WIDTH), min_size=count, max_size=count))
    tables.stop_ids[:, 0] = draw(st.lists(st.integers(-1, 5), min_size=count, max_size=count))
    rows = draw(st.permutations(range(count)))[: draw(st.integers(1, count))]
    token = st.integers(0, 6)
    sampled = st.lists(token, min_size=len(rows), max_size=len(rows))
    return tables, rows, draw(st.lists(sampled, min_size=1, max_size=4))


@given(steps())
def test_steps_match_a_loop_over_the_rows(case: tuple[Tables, list[int], list[list[int]]]):
    tables, rows, sampled = case
    steady, token_ids, positions = tables.steady(rows)
    expected = tables.copies()
    next_block = 100
    for number, tokens in enumerate(sampled):
        lacking = [
            row
            for row in rows
            if expected["num_computed"][row] // BLOCK >= expected["num_blocks"][row]
        ]
        assert steady.look_up() == len(lacking)
        assert positions.tolist() == [expected["num_computed"][row] for row in rows]
        assert token_ids.tolist() == [
            expected["token_table"][row][expected["num_computed"][row]] for row in rows
        ]
        steady.append_blocks(np.arange(next_block, next_block + len(lacking), dtype=np.int32))
        for row in lacking:
            expected["block_tables"][row][expected["num_blocks"][row]] = next_block
            expected["num_blocks"][row] += 1
            next_block += 1

        now = 10.0 + number
        advance = steady.advance(np.array(tokens, np.int32), now)
        kv_tokens, inter_token_latencies, ended, filled = 0, [], [], []
        for row, token in zip(rows, tokens, strict=True):
            inter_token_latencies.append(now - expected["last_token_at"][row])
            expected["last_token_at"][row] = now
            expected["token_table"][row][expected["num_tokens"][row]] = token
            expected["num_tokens"][row] += 1
            expected["num_computed"][row] += 1
            computed, known = expected["num_computed"][row], expected["num_tokens"][row]
            kv_tokens += computed
            if computed % BLOCK == 0:
                filled.append((row, expected["num_indexed"][row], computed // BLOCK))
            stopped = token in expected["stop_ids"][row]
            if stopped or known >= expected["max_total"][row]:
                ended.append((row, stopped))
        assert advance is not None
        assert (advance[0], np.frombuffer(advance[1]).tolist(), advance[2]) == (
            kv_tokens,
            inter_token_latencies,
            ended,
        )
        found = (
            []
            if advance[3] is None
            else list(zip(*(part.tolist() for part in advance[3]), strict=True))
        )
        assert found == filled
        assert tables.copies() == expected
        for row, _, stop in filled:
            tables.num_indexed[row] = expected["num_indexed"][row] = stop


@pytest.mark.parametrize(
    ("change", "sampled"),
    [
        (lambda tables: None, [5, -1]),
        (lambda tables: None, [5]),
        (lambda tables: tables.last_token_at.__setitem__(1, np.nan), [5, 5]),
        (lambda tables: tables.num_computed.__setitem__(1, 3), [5, 5]),
        (lambda tables: tables.num_tokens.__setitem__(1, WIDTH), [5, 5]),
        (lambda tables: tables.num_tokens.__setitem__(1, 0), [5, 5]),
    ],
    ids=["failed", "too few", "first token", "behind", "no room", "empty"],
)
def test_nothing_changes_if_a_row_is_not_steady(change, sampled: list[int]) -> None:
    tables = Tables([6, 9, 3])
    steady, _, _ = tables.steady([2, 1])
    change(tables)
    before = str(tables.copies())  # NaN differs from itself
    assert steady.advance(np.array(sampled, np.int32), 1.0) is None
    assert str(tables.copies()) == before


@given(st.lists(st.lists(st.integers(0, 3), min_size=1, max_size=WIDTH), min_size=1, max_size=4))
def test_repeats_finds_the_drafts_of_prompt_lookup(tokens: list[list[int]]) -> None:
    tables = Tables([len(row) for row in tokens])
    for row, known in enumerate(tokens):
        tables.token_table[row, : len(known)] = known
    rows = list(range(len(tokens)))
    steady, _, _ = tables.steady(rows)
    found = draft_by_lookup(
        tables.token_table,
        tables.stop_ids,
        tables.num_tokens,
        np.full(len(rows), 4, np.int32),
        np.array(rows, np.int32),
        np.zeros((len(rows), 4), np.int32),
        np.zeros(len(rows), np.int32),
        np.zeros(len(rows), np.int32),
        min_match=2,
        max_match=8,
    )
    assert steady.repeats(2) == found


def test_take_drained_reads_steady_rows_only() -> None:
    tables = Tables([5, 9, 3])
    steady, _, _ = tables.steady([2, 0])
    tables.drained[1] = True
    assert not steady.take_drained()
    tables.drained[:] = True
    assert steady.take_drained()
    assert not steady.take_drained()
    assert tables.drained.tolist() == [False, True, False]


def test_append_blocks_takes_one_block_for_each_row_that_lacks_one() -> None:
    tables = Tables([5, 9, 3])
    steady, _, _ = tables.steady([0, 1, 2])
    before = tables.copies()
    for blocks in ([], [7], [7, 8, 9]):
        with pytest.raises(ValueError, match="one block for each row"):
            steady.append_blocks(np.array(blocks, np.int32))
    tables.num_blocks[1] = WIDTH // BLOCK  # a full table, and yet no block for the next token
    tables.num_computed[1] = WIDTH
    with pytest.raises(ValueError, match="no room"):
        steady.append_blocks(np.array([7, 8], np.int32))
    tables.num_blocks[1], tables.num_computed[1] = 2, 8
    assert tables.copies() == before


def test_arrays_of_the_wrong_shape_are_refused() -> None:
    for rows in ([0, 3], [-1]):
        with pytest.raises(ValueError, match="do not fit"):
            Tables([5, 9, 3]).steady(rows)
    for name in ROW_ARRAYS:
        tables = Tables([5, 9, 3])
        setattr(tables, name, np.zeros(2, np.int32))
        with pytest.raises(ValueError, match="do not fit"):
            tables.steady([0])
    tables = Tables([5, 9, 3])
    tables.num_blocks = tables.num_tokens  # one array under two names
    with pytest.raises(Exception, match="borrowed"):
        tables.steady([0])
