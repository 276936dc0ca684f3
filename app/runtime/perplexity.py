"""Perplexity of a text, from the logprobs of its tokens in overlapping windows.

A text longer than the context is scored in several windows. Each window after the first scores only
its last `stride` tokens; the tokens before them are their context. Every token is scored exactly once,
except the first one of a text without a BOS token, which has no context.
"""

import math
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass

from engine.api.errors import EngineUnavailable, InvalidRequest
from engine.api.request import FinishReason, PromptLogprobs, Request, SamplingParams
from engine.clients.batch_reader import BatchReader
from engine.clients.engine_client import EngineClient


@dataclass(frozen=True, slots=True)
class Window:
    """Tokens [start, stop) of a text, of which [first, stop) are scored."""

    start: int
    stop: int
    first: int


@dataclass(frozen=True, slots=True)
class TextScore:
    """The score of a text.

    Attributes:
        tokens: number of scored tokens.
        text_bytes: length of their text in UTF-8 bytes.
        total: their summed negative log-likelihood, nats.
        windows: number of windows.
    """

    tokens: int
    text_bytes: int
    total: float
    windows: int

    @property
    def mean(self) -> float:
        """Mean negative log-likelihood of a token, nats."""
        return self.total / self.tokens

    @property
    def perplexity(self) -> float:
        """The exponential of the mean; infinite if a token has probability 0."""
        return math.exp(self.mean) if self.mean < 700 else math.inf

    @property
    def bits_per_byte(self) -> float:
        """Bits per byte of text, comparable between models with different tokenizers."""
        return self.total / math.log(2) / self.text_bytes


def windows(count: int, size: int, stride: int, *, first: int = 1) -> Iterator[Window]:
    """Windows of at most `size` tokens that score tokens [first, count) once each, in order.

    Args:
        count: tokens of the text.
        size: at least 2.
        stride: new tokens of each window after the first, in [1, size - 1].
        first: 1, or 0 if a BOS token precedes the text's first token.
    """
    stop = min(count, size)
    yield Window(0, stop, first)
    while stop < count:
        done, stop = stop, min(count, stop + stride)
        yield Window(stop - size, stop, done)


def score_text(
    client: EngineClient,
    text: str,
    *,
    context: int,
    stride: int,
    bos: int | None = None,
    progress: Callable[[int, int], None] = lambda done, count: None,
) -> TextScore:
    """Score a text; control tokens in it are encoded as ordinary text.

    Args:
        client: a client of an engine that is loaded.
        text: the text to score.
        context: tokens in a window.
        stride: see `windows`.
        bos: the BOS token that precedes each window, for models that expect one.
        progress: called with the number of processed tokens and of all tokens.

    Raises:
        InvalidRequest: the text is too short, or the engine refuses the windows.
        EngineUnavailable: the engine failed or was shut down during the run.
    """
    ids = client.tokenize(text)
    lead = () if bos is None else (bos,)
    size, skipped = context - len(lead), 1 - len(lead)
    if len(ids) <= skipped:
        raise InvalidRequest("The text is too short to score: it needs at least two tokens.")
    if not 1 <= stride < size:
        raise InvalidRequest(
            f"The stride must be between 1 and {size - 1} in windows of {size} tokens, not {stride}.",
            param="stride",
        )
    parts: list[float] = []
    scored = 0
    reader = BatchReader(client)
    for window in windows(len(ids), size, stride, first=skipped):
        part = ids[window.start : window.stop]
        scores = _prompt_logprobs(client, reader, (*lead, *part)).logprobs
        new = window.stop - window.first
        parts.append(-math.fsum(scores[len(scores) - new :]))
        scored += new
        progress(window.stop, len(ids))
    return TextScore(scored, _text_bytes(client, text, ids[:skipped]), math.fsum(parts), len(parts))


def _prompt_logprobs(
    client: EngineClient, reader: BatchReader, ids: tuple[int, ...]
) -> PromptLogprobs:
    request = Request(ids, SamplingParams(temperature=0.0, prompt_logprobs=0, max_tokens=0))
    request_id = client.submit(request)
    scores = None
    try:
        for batch in reader.read(request_id):
            scores = scores or batch.prompt_logprobs
            last = batch
    except BaseException:
        client.cancel(request_id)
        raise
    if last.finish_reason is not FinishReason.LENGTH or scores is None:
        raise EngineUnavailable(last.error or "The engine stopped before the text was scored.")
    return scores


def _text_bytes(client: EngineClient, text: str, unscored: Sequence[int]) -> int:
    """Length in bytes of the text without that of the unscored tokens."""
    head = client.detokenize(unscored, skip_special=False) if unscored else ""
    return len((text.removeprefix(head) or text).encode())
