"""`Tokens`: the tokens of the open conversation's answers and prompts, and what continuing them costs."""

import math
from collections.abc import Iterable
from concurrent.futures import Future
from dataclasses import dataclass, replace

from engine.api.errors import InvalidRequest
from engine.api.fork_price import ForkPrice
from engine.api.request import TopLogprob
from engine.clients.engine_client import EngineClient
from engine.conversations.answer import Beginning
from engine.conversations.answering import Answering
from engine.conversations.loaded_conversations import LoadedConversations
from engine.conversations.next_tokens import NextTokens
from engine.conversations.open_nodes import OpenNodes
from engine.conversations.perplexity import perplexity
from engine.conversations.prompt_builder import Prompt
from engine.conversations.submission import warm_request
from engine.conversations.token_sources import TokenSource, token_sources
from engine.conversations.tree import Node, NodeKind


@dataclass(frozen=True, slots=True)
class AnswerTokens:
    """The tokens of an answer, for the token cursor.

    Attributes:
        texts: the text that each token adds; their concatenation begins the node's text.
        logprobs: natural logarithms, one per token, NaN where unknown.
        topk: alternatives per token, most likely first; empty where unknown.
        sources: one per token, None where unknown.
    """

    node_id: str
    token_ids: tuple[int, ...]
    texts: tuple[str, ...]
    logprobs: tuple[float, ...]
    topk: tuple[tuple[TopLogprob, ...], ...]
    sources: tuple[TokenSource | None, ...]


class Tokens:
    """The tokens of the open conversation. Used by the session's thread.

    Args:
        loaded: the conversations in memory.
        answering: knows the engine of each path, builds prompts, and submits requests that are no answers.
        nodes: the messages of the open conversation.
    """

    def __init__(
        self,
        loaded: LoadedConversations,
        answering: Answering,
        nodes: OpenNodes,
    ) -> None:
        self._loaded = loaded
        self._answering = answering
        self._nodes = nodes

    def of(self, node_id: str) -> AnswerTokens:
        """The tokens of an answer.

        Raises:
            InvalidRequest: no tokens are stored with the node, they are another tokenizer's, or the
                conversation does not have the node.
            EngineUnavailable: the model is not loaded.
        """
        self._nodes.view_of(node_id)
        path = self._nodes.path_to(node_id)
        node = path[-1]
        if not node.token_ids or node.kind is not NodeKind.ASSISTANT:
            raise InvalidRequest("Tokens are stored with generated answers only.")
        client, _ = self._answering.engine_of(self._loaded.current, path)
        _check_tokenizer(node, client)
        count = len(node.token_ids)
        return AnswerTokens(
            node_id,
            node.token_ids,
            tuple(client.token_texts(node.token_ids)),
            node.logprobs or (math.nan,) * count,
            node.topk or ((),) * count,
            token_sources(node),
        )

    def texts_of(self, node_id: str, token_ids: Iterable[int]) -> list[str]:
        """The text of each of any tokens of the model of an answer; control tokens are spelled out.

        Raises:
            EngineUnavailable: the model is not loaded.
        """
        client = self._client_of(node_id)
        return [client.detokenize([one], skip_special=False) for one in token_ids]

    def beginning(self, tokens: AnswerTokens, at: int, forced: int | None) -> Beginning | None:
        """The first `at` tokens, then the forced one; None if that is no token."""
        ids, texts = tokens.token_ids[:at], list(tokens.texts[:at])
        logprobs, topk = list(tokens.logprobs[:at]), list(tokens.topk[:at])
        if forced is not None:
            ids = (*ids, forced)
            texts = self._client_of(tokens.node_id).token_texts(ids)
            known = tokens.topk[at] if at < len(tokens.topk) else ()
            logprobs.append(next((t.logprob for t in known if t.token_id == forced), math.nan))
            topk.append(known)
            # The text of a last, incomplete character comes with the token that completes it.
            texts[-1] = texts[-1].rstrip("\ufffd")
        if not ids:
            return None
        return Beginning(tokens.node_id, tuple(ids), "".join(texts), tuple(logprobs), tuple(topk))

    def perplexity(self, node_id: str) -> float | None:
        """The perplexity of an answer, so far if it runs; None without logprobs. Costs O(tokens).

        Raises:
            InvalidRequest: the answer is not on disk yet and cannot be read at present.
        """
        answer = self._loaded.current.answers.get(node_id)
        node = self._nodes.full(node_id) if answer is None else answer.node()
        return perplexity(node.logprobs)

    def prompt_ids(self, node_id: str, *, at: int | None = None) -> tuple[int, ...]:
        """The token ids that a continuation of a node starts from, those of images included.

        Args:
            node_id: a node; after a user message the ids of its answer's prompt.
            at: of an answer: number of its tokens to keep, which its own model continues; None keeps all, for
                the model that goes on after it.

        Raises:
            PravahaError: the tokens are those of a model that is not there, the chat template rejects the
                messages, or the model is not loaded.
        """
        return self._prompt(node_id, at)[1].token_ids

    def prompt_of(self, answer_id: str) -> tuple[EngineClient, tuple[int, ...]]:
        """The engine that gave an answer, and the token ids of the prompt that it has for it now.

        Raises:
            PravahaError: the chat template rejects the messages, or the model is not loaded.
        """
        path = self._nodes.path_to(answer_id)
        client, builder = self._answering.engine_of(self._loaded.current, path)
        return client, builder.build(path[:-1]).token_ids

    def price(self, node_id: str, *, at: int | None = None) -> "Future[ForkPrice]":
        """The predicted cost of continuing a node, with the cache as it is now; arguments as `prompt_ids`.

        The future is that of `EngineClient.price`.

        Raises:
            PravahaError: as `prompt_ids`.
        """
        return self.measured_price(node_id, at=at)[1]

    def measured_price(
        self, node_id: str, *, at: int | None = None
    ) -> "tuple[int, Future[ForkPrice]]":
        """The length of the prompt that `price` is about, and the price."""
        client, prompt = self._prompt(node_id, at)
        return len(prompt.token_ids), client.price(prompt.token_ids)

    def next_tokens(self, node_id: str, at: int) -> NextTokens:
        """Begin to compute the most likely tokens after the first `at` tokens of an answer.

        Raises:
            PravahaError: as `prompt_ids`.
        """
        client, prompt = self._prompt(node_id, at)
        request = NextTokens.request(prompt, continued=at)
        return NextTokens(client, self._answering.submit_aside(request, client))

    def warm(self, node_id: str) -> tuple[str, "Future[str]"]:
        """Compute the KV of the path to a node and keep it in the prefix cache.

        It has the lowest priority. What it did is in its events, `PrefixHit` and `RequestFinished`.

        Returns:
            The request's id, and a future that fails if the engine accepts no requests.

        Raises:
            PravahaError: as `prompt_ids`.
        """
        client, prompt = self._prompt(node_id)
        request = warm_request(prompt)
        submitted = self._answering.submit_aside(request, client)
        self._answering.discard_output(submitted, client)
        return request.request_id, submitted

    def _client_of(self, node_id: str) -> EngineClient:
        """The engine that gave an answer."""
        path = self._nodes.path_to(node_id)
        return self._answering.engine_of(self._loaded.current, path)[0]

    def _prompt(self, node_id: str, at: int | None = None) -> tuple[EngineClient, Prompt]:
        """The engine that continues a node, and the prompt of `prompt_ids`, with its images.

        The engine is that which goes on after the node; after a part of an answer, the answer's.
        """
        path = self._nodes.path_to(node_id)
        last = path[-1]
        whole = at is None or last.kind is not NodeKind.ASSISTANT
        engine = self._answering.engine_after if whole else self._answering.engine_of
        client, builder = engine(self._loaded.current, path)
        if last.kind is not NodeKind.ASSISTANT:
            return client, builder.build(path)
        if not whole:
            _check_tokenizer(last, client)
        elif last.token_ids and last.tokenizer != client.tokenizer_fingerprint():
            return client, builder.build(path)  # another model reads the text of the answer
        begun = (last.token_ids or ())[:at]
        prompt = builder.build(path[:-1])
        return client, replace(prompt, token_ids=prompt.token_ids + begun)


def _check_tokenizer(answer: Node, client: EngineClient) -> None:
    """Refuse an answer whose tokens an engine does not have.

    Raises:
        InvalidRequest: they are another tokenizer's.
        EngineUnavailable: the model is not loaded.
    """
    if answer.tokenizer != client.tokenizer_fingerprint():
        raise InvalidRequest(
            f"The answer is from {answer.model}, whose tokens the loaded model does not have."
        )
