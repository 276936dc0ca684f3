"""`TokenWriter`: writes a step's tokens into the row table and finds the rows that finish.

Hot path: one call per step, with numpy expressions over all rows that got a token, or a single native
call for a steady decode step. Loops run only over rows that finish or get their first token, rows with
stop strings, whose text must be decoded before the next step, and rows with a grammar. Raising
`num_tokens` publishes a token, after everything else about it was written; see
`engine.batch.mailbox`.
"""

import logging
from collections.abc import Iterable
from typing import TypeVar

import numpy as np
from numpy.typing import NDArray

from engine.api.error_text import as_sentence
from engine.api.events import EventBus, FirstToken
from engine.api.request import FinishReason
from engine.batch.finish import LENGTH_REACHED, STOPPED, Finish, failed
from engine.batch.rows import RowTable
from engine.batch.sequence import Sequence
from engine.batch.steady_decode import FilledBlocks, SteadyDecode
from engine.executors.base import StepResult
from engine.observability.counters import EngineCounters

_log = logging.getLogger(__name__)

_T = TypeVar("_T", bound=np.generic)

SequenceFinish = tuple[Sequence, Finish]
"""A sequence that finishes, and how it finishes."""

NO_SAMPLES: NDArray[np.float64] = np.zeros(0)
_NO_ROWS: NDArray[np.int32] = np.zeros(0, np.int32)


class TokenWriter:
    """Writes the tokens of steps. Sequences that finish are returned, not finished here."""

    def __init__(self, table: RowTable, *, counters: EngineCounters, events: EventBus) -> None:
        """Write into `table`; count deadlines and publish first-token events."""
        self._table = table
        self._counters = counters
        self._events = events
        self._last_step_rows = _NO_ROWS  # rows that got a token in the last step
        self._steady: SteadyDecode | None = None  # set if that step was a steady decode step

    def write(
        self,
        rows: NDArray[np.int32],
        result: StepResult,
        chosen: NDArray[np.intp] | None,
        accepted: NDArray[np.int32] | None,
        now: float,
    ) -> tuple[list[SequenceFinish], NDArray[np.float64], NDArray[np.float64]]:
        """Append the sampled tokens to their rows, after the accepted draft tokens.

        Args:
            rows: [N] int32, rows that got a token.
            result: the step's result.
            chosen: [N] indices of those rows in the batch, or None for all of it.
            accepted: [R] int32, draft tokens accepted in each row of the batch; None without drafts.
            now: the timestamp of the tokens.

        Returns:
            Sequences that finish here; [F] float64 times to first token; [M] float64 inter-token
            latencies.
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
        if len(table.token_id_logprobs):
            self._write_token_id_logprobs(rows, at, result)
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
            got = sampled >= 0  # False where a row failed after some accepted draft tokens
            at += got
            stopped &= got
            # The tokens of one step arrive together; the time is divided evenly among them.
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
        """Append the sampled tokens of a steady decode step: `write` in one native call.

        Args:
            steady: the rows of the step.
            result: the step's result.
            now: the timestamp of the tokens.

        Returns:
            Number of KV tokens attended to, inter-token latencies ([M] float64 as bytes), newly full
            blocks, and sequences that finish here. None, with nothing published, if a row got no
            token.
        """
        table, rows = self._table, steady.rows
        if table.logprob_rows:
            self._write_logprobs(rows, table.num_tokens[rows], result, None)
        if len(table.token_id_logprobs):
            self._write_token_id_logprobs(rows, table.num_tokens[rows], result)
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
        """The finishes of (row, whether by a stop token rather than by length)."""
        finishes = LENGTH_REACHED, STOPPED
        return [(self._table.sequence(row), finishes[stopped]) for row, stopped in rows]

    def _write_logprobs(
        self,
        rows: NDArray[np.int32],
        at: NDArray[np.int32],
        result: StepResult,
        chosen: NDArray[np.intp] | None,
    ) -> None:
        """Store logprobs and alternatives of sampled tokens, before the tokens are published.

        Args:
            rows: [N] int32, rows that got a token.
            at: [N] int32, the position of the token in the row.
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

    def _write_token_id_logprobs(
        self, rows: NDArray[np.int32], at: NDArray[np.int32], result: StepResult
    ) -> None:
        """Store the logprobs of chosen token ids; arguments as of `_write_logprobs`."""
        table = self._table
        outputs = at - table.num_prompt_tokens[rows]
        table.token_id_logprobs.record(rows, outputs, result.token_id_logprobs)

    def take_refilled(self) -> bool:
        """Whether the last step wrote a token to a row that was drained; clears the flags of its rows."""
        if self._steady is not None:
            return self._steady.take_drained()
        rows, drained = self._last_step_rows, self._table.drained
        refilled = rows[drained[rows]]
        drained[refilled] = False
        return bool(refilled.size)

    def _count_deadlines(self, first_token_rows: NDArray[np.int32], now: float) -> None:
        """Count deadlines met and missed at the first token."""
        deadlines = self._table.deadline[first_token_rows]
        named = int(np.count_nonzero(np.isfinite(deadlines)))
        if named:
            met = int(np.count_nonzero(now <= deadlines))
            # Rows without a deadline have an infinite one, so they are among those met.
            unnamed = len(first_token_rows) - named
            self._counters.record_deadlines(met=met - unnamed, missed=len(first_token_rows) - met)

    def _publish_first_tokens(self, rows: NDArray[np.int32], now: float) -> None:
        if self._events.has_subscribers(FirstToken):
            for sequence in map(self._table.sequence, rows.tolist()):
                ttft = now - sequence.queued_at
                self._events.publish(FirstToken(now, sequence.request_id, ttft))

    def _stopped_by_text(
        self, rows: NDArray[np.int32], at: NDArray[np.int32], texts: list[tuple[Sequence, str]]
    ) -> list[SequenceFinish]:
        """Detokenize the new tokens of rows with stop strings; those that contain one finish there.

        Args:
            rows: [N] int32, rows that got tokens.
            at: [N] int32, number of tokens of each; lowered in place where a stop string ends sooner.
            texts: the new texts are appended here.
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
                # One by one, because a stop string may end within the accepted draft tokens.
                for token in table.token_table[row, begin:end].tolist():
                    text += detokenizer.feed([token])
                    sequence.num_detokenized += 1
                    if detokenizer.stopped:
                        break
            except Exception as error:
                _log.exception("Detokenization failed.")
                message = f"The answer could not be decoded: {as_sentence(error)}"
                finished.append((sequence, failed(message)))
                continue
            if text:
                texts.append((sequence, text))
            if detokenizer.stopped:
                counts[row] = sequence.num_prompt + sequence.num_detokenized
                finish = Finish(FinishReason.STOP, stop_string=detokenizer.stop_string)
                finished.append((sequence, finish))
        at[:] = counts[rows]
        return finished

    def _stopped_by_grammar(
        self, rows: NDArray[np.int32], sampled: NDArray[np.int32]
    ) -> list[SequenceFinish]:
        """Sequences whose grammar is complete after their new token, or whose matcher failed."""
        return [
            (self._table.sequence(row), STOPPED if matcher.error is None else failed(matcher.error))
            for row, matcher in self._table.grammars.advance(rows, sampled)
        ]


def _rows_with_any(found: NDArray[np.bool_]) -> NDArray[np.bool_]:
    """[N] bool, any of [N, k]. Usually all False; counting first is 5 times cheaper than reducing."""
    if np.count_nonzero(found):
        return np.asarray(found.any(axis=1))
    return np.zeros(len(found), np.bool_)


def _chosen(values: NDArray[_T], chosen: NDArray[np.intp] | None) -> NDArray[_T]:
    return values if chosen is None else values[chosen]
