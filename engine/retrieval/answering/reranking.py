"""Orders passages by how likely the model finds the question after each: query likelihood.

The model reads a passage, is told to write a question that it answers, and the log-probability of the user's
question is read; nothing is generated (Ponte & Croft 1998). The mean per token is added to the cosine. Costs
one prompt of passage and question for each passage, computed in one batch; answers begin later by that.

Asking the model whether a passage answers the question ("Yes" or "No") was measured, too: with the demo
model it is worse than no reranking (docs/retrieval.md).
"""

from collections.abc import Sequence

from engine.api.request import FinishReason, Request, SamplingParams
from engine.clients.batch_reader import BatchReader
from engine.clients.engine_client import EngineClient
from engine.retrieval.answering.passage_text import quoted_text
from engine.retrieval.api.passage import Passage
from engine.text.chat_encoding import ChatEncoder

RERANKED = 5
"""Passages that are compared; what is behind them keeps its place."""

LIKELIHOOD_WEIGHT = 0.5
"""Of the mean log-probability of a token, against the cosine."""

_PROMPT = "Passage:\n{}\n\nWrite a question that the passage answers."
_UNLIKELY = -20.0
"""Mean log-probability where the engine returned none."""


def rerank_by_likelihood(
    client: EngineClient,
    reader: BatchReader,
    encoder: ChatEncoder,
    question: str,
    passages: Sequence[Passage],
) -> list[Passage]:
    """The passages with the first `RERANKED` of them reordered.

    Args:
        client: the engine.
        reader: reads its requests.
        encoder: the model's chat template.
        question: what was searched for.
        passages: what was found, best first.
    """
    head, tail = list(passages[:RERANKED]), list(passages[RERANKED:])
    if len(head) < 2:
        return [*head, *tail]
    asked = tuple(client.tokenize(question))
    sampling = SamplingParams(temperature=0.0, max_tokens=0, prompt_logprobs=0)
    requests = [
        client.submit(Request((*_prompt(encoder, passage), *asked), sampling)) for passage in head
    ]
    scores = {
        passage.chunk_id: (passage.dense or 0.0)
        + LIKELIHOOD_WEIGHT * _likelihood(reader, request_id, len(asked))
        for passage, request_id in zip(head, requests, strict=True)
    }
    return [*sorted(head, key=lambda one: -scores[one.chunk_id]), *tail]


def _prompt(encoder: ChatEncoder, passage: Passage) -> list[int]:
    text = _PROMPT.format(quoted_text(passage.shown_text))
    return encoder.encode_chat([{"role": "user", "content": text}])


def _likelihood(reader: BatchReader, request_id: str, tokens: int) -> float:
    """Mean log-probability of the last `tokens` prompt tokens."""
    found: tuple[float, ...] = ()
    for batch in reader.read(request_id):
        if batch.prompt_logprobs is not None:
            found = batch.prompt_logprobs.logprobs
        if batch.finish_reason is FinishReason.ERROR:
            return _UNLIKELY
    return sum(found[-tokens:]) / tokens if len(found) >= tokens > 0 else _UNLIKELY
