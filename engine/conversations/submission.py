"""`Submitter`: turns the nodes before an answer into a prompt and submits its requests to the engine.

It reads immutable nodes and calls the client, and knows nothing of conversations or the store: `Answering`
may call it on a thread of its own where the client's calls wait for a network.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace

from engine.api.errors import InvalidRequest, PravahaError
from engine.api.generation_defaults import SamplingChoice
from engine.api.request import MAX_PRIORITY, Request, SamplingParams
from engine.api.snapshot import ModelInfo
from engine.clients.engine_client import EngineClient
from engine.conversations.answer import Answer
from engine.conversations.errors import ContextFull, MessageTooLong
from engine.conversations.prompt_builder import PromptBuilder
from engine.conversations.tree import Node, NodeKind

SMALL_MODEL_PARAMETERS = 1_000_000_000
SMALL_MODEL_MAX_TOKENS = 1024
WARM_PRIORITY = MAX_PRIORITY - 1
"""Priority of requests that only fill the prefix cache: the lowest."""


def default_max_tokens(model: ModelInfo) -> int | None:
    """The length limit of answers that have none: small models may not end by themselves."""
    return SMALL_MODEL_MAX_TOKENS if model.parameters < SMALL_MODEL_PARAMETERS else None


def _for_model(choice: SamplingChoice, model: ModelInfo | None) -> SamplingParams:
    """The sampling parameters to use: those chosen, else the model's; with the logprobs of sampled tokens.

    Alternatives are not stored with every answer: five of them took 3 % of the speed of one stream and
    14 % of sixteen. They can be computed at any time from the stored tokens.
    """
    params = replace(choice.params, logprobs=choice.params.logprobs or 0)
    if model is None:
        return params
    params = replace(choice, params=params).for_model(model.generation_defaults)
    if params.max_tokens is None:
        params = replace(params, max_tokens=default_max_tokens(model))
    return params


@dataclass(frozen=True, slots=True)
class Submission:
    """Submitted requests, and what is to be recorded of them.

    Attributes:
        request_ids: one for each answer.
        tokenized: the user nodes with new token ids.
        n_prompt: tokens of the prompt, the answers' beginning included.
        tokenizer: the tokenizer's fingerprint.
        model: the model's name.
        sampling: the sampling parameters that are used.
    """

    request_ids: tuple[str, ...]
    tokenized: tuple[Node, ...]
    n_prompt: int
    tokenizer: str
    model: str | None
    sampling: SamplingParams

    def record(self, answers: Sequence[Answer]) -> None:
        """Record the submission in its answers."""
        for answer, request_id in zip(answers, self.request_ids, strict=True):
            answer.submitted(
                request_id,
                n_prompt=self.n_prompt,
                tokenizer=self.tokenizer,
                model=self.model,
                sampling=self.sampling,
            )


class Submitter:
    """Submits answers. One thread at a time.

    Attributes:
        builder: builds the prompts.
        abandoned: requests without an answer (cancelled, or of `warm`), whose output is to be discarded.
    """

    def __init__(self, client: EngineClient) -> None:
        self._client = client
        self.builder = PromptBuilder(client)
        self.abandoned: set[str] = set()

    def submit(
        self,
        prompt_nodes: Sequence[Node],
        choice: SamplingChoice,
        *,
        begun: tuple[int, ...] = (),
        count: int = 1,
        limit: int | None = None,
    ) -> Submission:
        """Submit `count` answers to the same nodes.

        Those after the first are forks of its request at the prompt's end: they share its KV.

        Args:
            prompt_nodes: the nodes that the prompt is made from, root first.
            choice: sampling parameters.
            begun: the tokens that each answer begins with.
            count: number of answers.
            limit: most tokens of each answer; None takes that of the sampling parameters.

        Raises:
            ContextFull, MessageTooLong: they are longer than the context; nothing was submitted.
            PravahaError: the chat template or the engine rejects the messages; nothing was submitted.
        """
        prompt = self.builder.build(prompt_nodes)
        ids = prompt.token_ids + begun
        model = self._client.snapshot().model
        if model is not None and len(ids) >= model.context_length:
            raise self._too_long(prompt_nodes, len(ids), model)
        sampling = _for_model(choice, model)
        if limit is not None:
            sampling = replace(sampling, max_tokens=limit)
        if sampling.max_tokens is not None and begun:
            sampling = replace(sampling, max_tokens=max(1, sampling.max_tokens - len(begun)))
        requests = [self._client.submit(Request(ids, sampling, continued_tokens=len(begun)))]
        if count > 1:
            try:
                requests += self._client.fork(
                    requests[0], at=len(ids), n=count - 1, sampling=sampling
                )
            except PravahaError:
                self.abandon(requests[0])
                raise
        return Submission(
            tuple(requests),
            prompt.tokenized,
            len(ids),
            self._client.tokenizer_fingerprint(),
            None if model is None else model.name,
            sampling,
        )

    def _too_long(self, nodes: Sequence[Node], length: int, model: ModelInfo) -> InvalidRequest:
        """The refusal of a prompt of `length` tokens; it says whether shortening the context helps."""
        limit = (
            f"and the context length of {model.name} is {model.context_length} including the answer"
        )
        system = [node for node in nodes[:-1] if node.kind is NodeKind.SYSTEM][-1:]
        alone = len(self.builder.build([*system, nodes[-1]]).token_ids)
        if nodes[-1].kind is NodeKind.USER and alone >= model.context_length:
            return MessageTooLong(
                f"The message alone has {alone} tokens, {limit}: shorten it, or restart with a larger "
                "--ctx if the model allows it."
            )
        return ContextFull(
            f"The conversation has {length} tokens, {limit}: start a new conversation, shorten the "
            "message, or restart with a larger --ctx if the model allows it."
        )

    def warm(self, token_ids: tuple[int, ...]) -> str:
        """Compute the KV of tokens without an answer, after all other requests; the request's id.

        Raises:
            InvalidRequest: the tokens are not a valid prompt.
            QueueFull, EngineUnavailable: the engine accepts no requests.
        """
        request = Request(token_ids, SamplingParams(max_tokens=0), priority=WARM_PRIORITY)
        request_id = self._client.submit(request)
        self.abandoned.add(request_id)
        return request_id

    def abandon(self, request_id: str) -> None:
        """Cancel a request whose answer is not wanted any more."""
        self._client.cancel(request_id)
        self.abandoned.add(request_id)

    def drain_abandoned(self) -> None:
        """Discard the output of requests without an answer, until their mailboxes are removed."""
        for request_id in list(self.abandoned):
            try:
                batch = self._client.drain(request_id)
            except PravahaError:
                self.abandoned.discard(request_id)
                continue
            if batch is not None and batch.finish_reason is not None:
                self.abandoned.discard(request_id)
