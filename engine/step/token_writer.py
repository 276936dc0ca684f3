"""`TokenWriter`: a step's tokens into their rows, and which rows they end.

Hot: one call a step, and numpy expressions over all rows that got a token, or a single native call
where all rows just decode. The loops run over rows that end or get their first token here, over rows
with stop strings, whose text must be seen before the next step, and over rows that follow a grammar.
A token is published by raising `num_tokens`,
after everything else about it was written; see `engine.batch.mailbox`.
"""

import logging
from collections.abc import Iterable
from typing import TypeVar

import numpy as np
from numpy.typing import NDArray

from engine.api.error_text import as_sentence
from engine.api.events import EventBus, FirstToken
from engine.batch.finish import LENGTH_REACHED, STOPPED, Finish, failed
from engine.batch.rows import RowTable
from engine.batch.sequence import Sequence
from engine.batch.steady_decode import FilledBlocks, SteadyDecode
from engine.executors.base import StepResult
from engine.observability.counters import EngineCounters

_log = logging.getLogger(__name__)

_T = TypeVar("_T", bound=np.generic)

SequenceFinish = tuple[Sequence, Finish]
"""A sequence that finishes, and how."""

NO_SAMPLES: NDArray[np.float64] = np.zeros(0)
_NO_ROWS: NDArray[np.int32] = np.zeros(0, np.int32)


class TokenWriter:
    """Writes the tokens of step after step. It ends nothing itself."""

    def __init__(self, table: RowTable, *, counters: EngineCounters, events: EventBus) -> None:
        """Write into `table`; count deadlines and tell of first tokens."""
        self._table = table
        self._counters = counters
        self._events = events
        self._last_step_rows = _NO_ROWS  # rows that got a token in the last step
        self._steady: SteadyDecode | None = None  # the same rows, if all of them just decode

    def write(
        self,
        rows: NDArray[np.int32],
        result: StepResult,
        chosen: NDArray[np.intp] | None,
        accepted: NDArray[np.int32] | None,
        now: float,
    ) -> tuple[list[SequenceFinish], NDArray[np.float64], NDArray[np.float64]]:
        """Append the sampled tokens to their rows, behind the draft tokens that were accepted.

        Args:
            rows: [N] int32, rows that got a token.
            result: the step's result.
            chosen: [N] indices of those rows in the batch, or None for all of it.
            accepted: [R] int32, draft tokens accepted in each row of the batch; None without drafts.
            now: the tokens' instant.

        Returns:
            Sequences that end here, times to first token, and times between tokens.
        """
        table = self._table
        at = table.num_tokens[rows]
        sampled = result.sampled if chosen is None else result.sampled[chosen]
        extra = None if accepted is None else _chosen(accepted, chosen)
        if extra is not None:
            at += extra
        table.token_table[rows, at] = sampled
        if table.logprob_rows:
            self._write_logprobs(rows, at, result, chosen)
        since = now - table.last_token_at[rows]  # NaN at a first token
        table.last_token_at[rows] = now
        first = np.isnan(since)
        if np.count_nonzero(first):
            first_token_rows = rows[first]
            table.first_token_at[first_token_rows] = now
            first_tokens = now - table.queued_at[first_token_rows]
            self._count_deadlines(first_token_rows, now)
            since = since[~first]
            self._publish_first_tokens(first_token_rows, now)
        else:
            first_tokens = NO_SAMPLES
        stopped = _rows_with_any(table.stop_ids[rows] == sampled[:, None])
        if extra is None:
            at += 1
        else:
            got = sampled >= 0  # all but a row that failed after some accepted draft tokens
            at += got
            stopped &= got
            # The tokens of a step come at once; each counts as if it had taken its share of the time.
            later = extra[~first] + 1
            since = np.repeat(since / later, later)
        texts: list[tuple[Sequence, str]] = []
        finished = self._stopped_by_text(rows, at, texts) if table.stop_string_rows else []
        self._last_step_rows, self._steady = rows, None
        table.num_tokens[rows] = at  # publishes: readers see the tokens from here on
        for sequence, text in texts:
            sequence.mailbox.text.append(text)
        if len(table.grammars):
            finished += self._stopped_by_grammar(rows, sampled)
        done = np.flatnonzero(stopped | (at >= table.max_total[rows]))
        finished += self._finishes(zip(rows[done].tolist(), stopped[done].tolist(), strict=True))
        return finished, first_tokens, since

    def advance(
        self, steady: SteadyDecode, result: StepResult, now: float
    ) -> tuple[int, bytes, FilledBlocks | None, list[SequenceFinish]] | None:
        """Append the sampled tokens of rows that just decode: `write`, in one native call.

        Args:
            steady: the rows of the step, all of it.
            result: the step's result.
            now: the tokens' instant.

        Returns:
            The tokens that the step's tokens attended to, times between tokens as bytes, blocks that
            are full now, and sequences that end here. None, with nothing published, if a row has no
            token.
        """
        table, rows = self._table, steady.rows
        if table.logprob_rows:
            self._write_logprobs(rows, table.num_tokens[rows], result, None)
        advance = steady.advance(result.sampled, now)
        if advance is None:
            return None
        kv_tokens, inter_token_latencies, stopped, filled = advance
        self._steady = steady
        finished: list[SequenceFinish] = []
        if table.stop_string_rows:
            texts: list[tuple[Sequence, str]] = []
            finished += self._stopped_by_text(rows, table.num_tokens[rows], texts)
            for sequence, text in texts:
                sequence.mailbox.text.append(text)
        if len(table.grammars):
            finished += self._stopped_by_grammar(rows, result.sampled)
        if stopped:
            finished += self._finishes(stopped)
        return kv_tokens, inter_token_latencies, filled, finished

    def _finishes(self, rows: Iterable[tuple[int, bool]]) -> list[SequenceFinish]:
        """Rows that finish: (row, whether by a stop token and not by length)."""
        finishes = LENGTH_REACHED, STOPPED
        return [(self._table.sequence(row), finishes[stopped]) for row, stopped in rows]

    def _write_logprobs(
        self,
        rows: NDArray[np.int32],
        at: NDArray[np.int32],
        result: StepResult,
        chosen: NDArray[np.intp] | None,
    ) -> None:
        """Keep the sampled tokens' logprobs and alternatives; their tokens are not published yet.

        Args:
            rows: [N] int32, rows that got a token.
            at: [N] int32, its place in the row.
            result: the step's result.
            chosen: [N] indices of those rows in the batch, or None for all of it.
        """
        table = self._table
        table.logprob_table[rows, at] = _chosen(result.logprobs, chosen)
        if table.top_rows and len(rows):
            outputs = at - table.num_prompt_tokens[rows]
            table.top_logprobs.record(
                rows, outputs, _chosen(result.top_ids, chosen), _chosen(result.top_logprobs, chosen)
            )

    def take_refilled(self) -> bool:
        """Whether the last step put a token into a mailbox that was empty; asking takes note."""
        if self._steady is not None:
            return self._steady.take_drained()
        rows, drained = self._last_step_rows, self._table.drained
        refilled = rows[drained[rows]]
        drained[refilled] = False
        return bool(refilled.size)

    def _count_deadlines(self, first_token_rows: NDArray[np.int32], now: float) -> None:
        """Note whose first token came in time, of those that named a deadline."""
        deadlines = self._table.deadline[first_token_rows]
        named = int(np.count_nonzero(np.isfinite(deadlines)))
        if named:
            met = int(np.count_nonzero(now <= deadlines))
            unnamed = (
                len(first_token_rows) - named
            )  # their deadline is infinite, so they count as met
            self._counters.record_deadlines(met=met - unnamed, missed=len(first_token_rows) - met)

    def _publish_first_tokens(self, rows: NDArray[np.int32], now: float) -> None:
        if self._events.wanted(FirstToken):
            for sequence in map(self._table.sequence, rows.tolist()):
                ttft = now - sequence.queued_at
                self._events.publish(FirstToken(now, sequence.request_id, ttft))

    def _stopped_by_text(
        self, rows: NDArray[np.int32], at: NDArray[np.int32], texts: list[tuple[Sequence, str]]
    ) -> list[SequenceFinish]:
        """Decode the new tokens of rows with stop strings; those whose text holds one end there.

        Args:
            rows: [N] int32, rows that got tokens.
            at: [N] int32, how many tokens they have now; lowered where a stop string ends sooner.
            texts: filled with the new texts.
        """
        table = self._table
        counts = table.num_tokens.copy()
        counts[rows] = at
        finished: list[SequenceFinish] = []
        for row, (sequence, detokenizer) in table.stop_string_rows.items():
            begin = sequence.num_prompt + sequence.num_detokenized
            end = int(counts[row])
            if begin >= end:
                continue
            text = ""
            try:
                # One by one: a stop string may end inside a run of accepted draft tokens.
                for token in table.token_table[row, begin:end].tolist():
                    text += detokenizer.feed([token])
                    sequence.num_detokenized += 1
                    if detokenizer.stopped:
                        break
            except Exception as error:
                _log.exception("Decoding failed.")
                message = f"The answer could not be decoded: {as_sentence(error)}"
                finished.append((sequence, failed(message)))
                continue
            if text:
                texts.append((sequence, text))
            if detokenizer.stopped:
                counts[row] = sequence.num_prompt + sequence.num_detokenized
                finished.append((sequence, STOPPED))
        at[:] = counts[rows]
        return finished

    def _stopped_by_grammar(
        self, rows: NDArray[np.int32], sampled: NDArray[np.int32]
    ) -> list[SequenceFinish]:
        """Sequences whose grammar allows nothing after their new token, or could not follow it."""
        return [
            (self._table.sequence(row), STOPPED if matcher.error is None else failed(matcher.error))
            for row, matcher in self._table.grammars.advance(rows, sampled)
        ]


def _rows_with_any(found: NDArray[np.bool_]) -> NDArray[np.bool_]:
    """[N] bool of [N, k]. Nearly always nothing is found, and a reduction costs five counts."""
    if np.count_nonzero(found):
        return np.asarray(found.any(axis=1))
    return np.zeros(len(found), np.bool_)


def _chosen(values: NDArray[_T], chosen: NDArray[np.intp] | None) -> NDArray[_T]:
    return values if chosen is None else values[chosen]
