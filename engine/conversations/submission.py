"""`Submitter`: turns the nodes before an answer into a prompt and submits its requests to the engine.

It reads immutable nodes and calls the client, and knows nothing of conversations or the store. These are two
steps, so that `Answering` can submit on a thread of its own where that waits for a network.
"""

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import partial

from engine.api.errors import InvalidRequest, PravahaError, UnknownRequest
from engine.api.generation_defaults import DEFAULTED_PARAMETERS, SamplingChoice
from engine.api.grammar import Grammar
from engine.api.image import PlacedImage
from engine.api.request import MAX_PRIORITY, Request, SamplingParams, new_request_id
from engine.api.snapshot import ModelInfo
from engine.clients.client_tokenizer import ClientTokenizer
from engine.clients.engine_client import EngineClient
from engine.clients.model_set import ModelSet
from engine.conversations.answer import Answer, Beginning
from engine.conversations.errors import ContextFull, MessageTooLong
from engine.conversations.prompt_builder import Prompt, PromptBuilder
from engine.conversations.reasoning_reader import ReasoningReader
from engine.conversations.thinking import Thinking
from engine.conversations.tree import Node, NodeKind
from engine.grammar.call_plan import CallPlanner, call_planner
from engine.grammar.turn_tools import TurnTools
from engine.text.model_reasoning import reasoning_after
from engine.text.reasoning_markers import tail_of
from engine.text.tool_calls.forms.harmony import HARMONY
from engine.text.tool_calls.thresholds import call_thresholds

SMALL_MODEL_MAX_TOKENS = 1024
_PARAGRAPH = "\n\n"
WARM_PRIORITY = MAX_PRIORITY - 1
"""Priority of requests that only fill the prefix cache: the lowest."""


def default_max_tokens(model: ModelInfo) -> int | None:
    """The length limit of answers that have none: small models may not end by themselves."""
    return SMALL_MODEL_MAX_TOKENS if model.is_small else None


def _for_model(choice: SamplingChoice, model: ModelInfo | None) -> SamplingParams:
    """The sampling parameters to use: those chosen, else the model's; with the logprobs of sampled tokens.

    Alternatives are not stored with every answer: five of them took 3 % of the speed of one stream and
    14 % of sixteen. They can be computed at any time from the stored tokens.
    """
    params = replace(choice.params, logprobs=choice.params.logprobs or 0)
    if model is None:
        return params
    params = replace(choice, params=params).for_model(model.generation_defaults)
    if params.max_tokens is None and "max_tokens" not in choice.chosen:
        params = replace(params, max_tokens=default_max_tokens(model))
    return params


def _faithful(
    sampling: SamplingParams, choice: SamplingChoice, model: ModelInfo | None
) -> SamplingParams:
    """The parameters of an answer that is to say what its passages say: greedy, without penalties.

    A penalty of repetitions would keep a model from the words of the passages. Small models leave them in
    the second paragraph. What the user has set is kept.
    """
    plain = SamplingParams(temperature=0.0)
    left = [name for name in DEFAULTED_PARAMETERS if name not in choice.chosen]
    sampling = replace(sampling, **{name: getattr(plain, name) for name in left})
    if model is not None and model.is_small and not sampling.stop:
        sampling = replace(sampling, stop=(_PARAGRAPH,))
    return sampling


@dataclass(frozen=True, slots=True)
class PreparedAnswers:
    """Answers to the same nodes that can be submitted, and what is to be recorded of them.

    Attributes:
        client: the engine that they are for.
        token_ids: the prompt, the answers' beginning included.
        begun: how many of them are that beginning.
        count: number of answers.
        tokenized: user nodes with new token ids.
        tokenizer: the tokenizer's fingerprint.
        model: the model's name.
        sampling: the sampling parameters that are used, without the grammar; stored with the answers.
        grammar: the language of the answers, or None.
        images: the images of the prompt.
        session: names the conversation to the engine, which keeps its KV while it is expected to go on.
        tools: what the model is offered, or None.
        planner: plans the answer of a model with tools; None if it decides itself whether it calls one.
        suffix: token ids of the plan after the prompt.
    """

    client: EngineClient
    token_ids: tuple[int, ...]
    begun: int
    count: int
    tokenized: tuple[Node, ...]
    tokenizer: str
    model: str | None
    sampling: SamplingParams
    grammar: Grammar | None = None
    images: tuple[PlacedImage, ...] = ()
    session: str | None = None
    tools: TurnTools | None = None
    planner: CallPlanner | None = None
    suffix: tuple[int, ...] = ()

    def planned(self, answer: Answer) -> "PreparedAnswers":
        """The only answer as its planner has planned it, or as the model writes it."""
        planner = self.planner
        if planner is None:
            if self.tools is not None:
                answer.read_calls(self.tools.parser())
            return self
        plan = planner.plan
        begun = None
        if plan.begun:
            begun = Beginning("", plan.suffix, plan.begun, (math.nan,) * len(plan.suffix))
        answer.read_calls(planner.whole_parser(), begun)
        sampling = planner.sampling(replace(self.sampling, grammar=self.grammar))
        grammar = sampling.grammar
        if plan.begun:  # nobody reasons inside of a call
            sampling = replace(sampling, reasoning=None)
        return replace(
            self, sampling=replace(sampling, grammar=None), grammar=grammar, suffix=plan.suffix
        )

    def record(self, answers: Sequence[Answer], request_ids: Sequence[str]) -> None:
        """Record the submission in its answers."""
        begins_call = self.planner is not None and bool(self.planner.plan.begun)
        read = self.token_ids + self.suffix if begins_call else self.token_ids
        for answer, request_id in zip(answers, request_ids, strict=True):
            answer.submitted(
                request_id,
                self.client,
                n_prompt=len(self.token_ids),
                tokenizer=self.tokenizer,
                model=self.model,
                sampling=self.sampling,
            )
            answer.prompt_ids = read


class Submitter:
    """Prepares and submits answers. `prepare` asks nothing of a server; `submit` may wait for one.

    Attributes:
        builder: builds the prompts of the open branch.
        thinking: what is asked of models that reason.
    """

    def __init__(
        self,
        client: EngineClient,
        contexts: Callable[[Sequence[Node]], Sequence[Node]] | None = None,
        models: ModelSet | None = None,
    ) -> None:
        """Submit to the engine of each answer.

        Args:
            client: the engine, or that of the open branch's model.
            contexts: as in `PromptBuilder`.
            models: the models that answers may name; None if there is one engine.
        """
        self._client = client
        self._models = models
        self._contexts = contexts
        self.builder = PromptBuilder(client, contexts)
        self._builders: dict[int, PromptBuilder] = {}  # by the id of a client of `models`
        self._abandoned: dict[str, EngineClient] = {}
        self.thinking = Thinking()

    @property
    def discards(self) -> bool:
        """Whether there are requests whose output is to be discarded."""
        return bool(self._abandoned)

    def client_of(self, answer: Answer) -> EngineClient:
        """The engine that has the request of an answer, or will get it."""
        if answer.client is not None:
            return answer.client
        return self._client if self._models is None else self._models.client(answer.wanted_model)

    def client_named(self, model: str | None) -> EngineClient:
        """The engine of one of several models, or the only engine."""
        return self._client if self._models is None else self._models.client(model)

    def builder_for(self, client: EngineClient) -> PromptBuilder:
        """What builds the prompts of an engine."""
        if client is self._client:
            return self.builder
        found = self._builders.get(id(client))
        if found is None:
            found = self._builders[id(client)] = PromptBuilder(client, self._contexts)
        return found

    def prepare(self, answers: Sequence[Answer]) -> PreparedAnswers:
        """The requests of answers to the same nodes.

        Raises:
            ContextFull, MessageTooLong: the prompt has no room in the context.
            PravahaError: the chat template rejects the messages, or the model is not loaded.
        """
        first = answers[0]
        begun = () if first.beginning is None else first.beginning.token_ids
        client = self.client_of(first)
        builder = self.builder_for(client)
        tokenizer = ClientTokenizer(client)
        tools = None if first.tools is None else first.tools.turn(tokenizer)
        offered = () if tools is None else tools.for_template
        thinking = self._thinking_of(first, client)
        prompt = builder.build(first.prompt, tools=offered, variables=thinking.variables())
        ids = prompt.token_ids + begun
        model = client.snapshot().model
        if model is not None and len(ids) >= model.context_length:
            raise _too_long(builder, first.prompt, len(ids), model)
        sampling = _for_model(first.sampling, model)
        if first.faithful:
            sampling = _faithful(sampling, first.sampling, model)
        if tools is not None:
            shown = tools.shown_control_ids.union(sampling.shown_control_ids)
            sampling = replace(sampling, shown_control_ids=tuple(sorted(shown)))
        sampling = _with_reasoning(client, answers, ids, len(begun), sampling, tools, thinking)
        if first.limit is not None:
            sampling = replace(sampling, max_tokens=first.limit)
        if sampling.max_tokens is not None and begun:
            sampling = replace(sampling, max_tokens=max(1, sampling.max_tokens - len(begun)))
        planner = None  # an answer whose beginning is given goes on as the model does
        if tools is not None and model is not None and first.beginning is None:
            planner = _planner(client, first, tools, model, ids, thinking)
        return PreparedAnswers(
            client=client,
            token_ids=ids,
            begun=len(begun),
            count=len(answers),
            tokenized=prompt.tokenized,
            tokenizer=client.tokenizer_fingerprint(),
            model=None if model is None else model.name,
            sampling=sampling,
            grammar=first.grammar,
            images=prompt.images,
            session=f"conversation-{first.asked[0].id}" if first.asked else None,
            tools=tools,
            planner=planner,
        )

    def _thinking_of(self, answer: Answer, client: EngineClient) -> Thinking:
        """What is asked of the model for an answer.

        It does not think about a summary; one that always thinks has half of the summary's tokens for it.
        """
        if not answer.is_summary:
            return self.thinking
        limit = None
        if answer.limit is not None and client.controls_reasoning():
            limit = answer.limit // 2
        return Thinking(enabled=False, max_tokens=limit)

    def submit(self, prepared: PreparedAnswers) -> tuple[str, ...]:
        """Submit answers; the ids of their requests. May run on another thread than the other methods.

        Those after the first are forks of its request at the prompt's end: they share its KV.

        Raises:
            PravahaError: the engine rejects them; nothing was submitted.
        """
        ids = prepared.token_ids + prepared.suffix
        sampling = replace(prepared.sampling, grammar=prepared.grammar)
        request = Request(
            ids,
            sampling,
            continued_tokens=prepared.begun,
            session=prepared.session,
            images=prepared.images,
        )
        client = prepared.client
        first = client.submit(request)
        if prepared.count == 1:
            return (first,)
        try:
            others = client.fork(first, at=len(ids), n=prepared.count - 1, sampling=sampling)
        except UnknownRequest:  # it has finished: a short answer, or a slow connection
            others = [
                client.submit(replace(request, sampling=one, request_id=new_request_id()))
                for one in _with_own_seeds(sampling, prepared.count - 1)
            ]
        except PravahaError:
            self.abandon(first, client)
            raise
        return (first, *others)

    def abandon(self, request_id: str, client: EngineClient) -> None:
        """Cancel a request whose answer is not wanted any more."""
        client.cancel(request_id)
        self._abandoned[request_id] = client

    def discard(self, request_id: str, client: EngineClient) -> None:
        """Discard the output of a request that is no answer."""
        self._abandoned[request_id] = client

    def drain_abandoned(self) -> None:
        """Discard the output of requests without an answer, until their mailboxes are removed."""
        for request_id, client in list(self._abandoned.items()):
            try:
                batch = client.drain(request_id)
            except PravahaError:
                del self._abandoned[request_id]
                continue
            if batch is not None and batch.finish_reason is not None:
                del self._abandoned[request_id]


def _planner(
    client: EngineClient,
    answer: Answer,
    tools: TurnTools,
    model: ModelInfo,
    prompt: Sequence[int],
    thinking: Thinking,
) -> CallPlanner | None:
    """The planner of an answer with tools; None if the model decides itself whether it calls one."""
    return call_planner(
        tools,
        model,
        call_thresholds(model, tools.tokenizer),
        prompt,
        render=partial(client.render_chat, variables=thinking.variables()),
        follows_result=answer.prompt[-1].kind is NodeKind.TOOL,
        in_loop=True,
        in_words=answer.tools is not None and answer.tools.in_words,
    )


def _with_reasoning(
    client: EngineClient,
    answers: Sequence[Answer],
    ids: tuple[int, ...],
    begun: int,
    sampling: SamplingParams,
    tools: TurnTools | None,
    thinking: Thinking,
) -> SamplingParams:
    """Let the answers be read for reasoning; the parameters with which it can be limited and ended.

    Args:
        client: the engine.
        answers: to one prompt.
        ids: the prompt, whose last `begun` tokens are the beginning of the answers.
        begun: see `ids`.
        sampling: the parameters without it.
        tools: what the model is offered, or None.
        thinking: what is asked of the model.
    """
    markers = client.reasoning_markers()
    if markers is None:
        return sampling
    tokenizer = ClientTokenizer(client)
    reasoning = reasoning_after(
        tail_of(ids[: len(ids) - begun], 0, partial(tokenizer.decode, skip_special=False)),
        markers,
        encode=partial(tokenizer.encode, special=True),
        encode_rest=tokenizer.encode_rest,
    )
    if reasoning is None:  # the template has ended it: the model is not to think
        return sampling
    divides_messages = False
    if markers.is_message and tools is not None:
        if tools.form is not HARMONY:  # a form that was chosen for it does not divide its messages
            return sampling
        divides_messages = True
    for answer in answers:
        answer.read_reasoning(ReasoningReader(reasoning, passes_all=divides_messages))
    shown = reasoning.shown_control_ids(client.control_tokens().ids).union(
        sampling.shown_control_ids
    )
    sampling = replace(sampling, shown_control_ids=tuple(sorted(shown)))
    if not client.controls_reasoning():
        if thinking.max_tokens is not None:
            raise InvalidRequest(
                "The thinking of an attached server's answers cannot be limited: /think default."
            )
        return sampling
    if begun:  # the engine counts from the prompt's end, where it may think or be done with it
        return sampling
    return replace(sampling, reasoning=reasoning.control(thinking.max_tokens))


def _too_long(
    builder: PromptBuilder, nodes: Sequence[Node], length: int, model: ModelInfo
) -> InvalidRequest:
    """The refusal of a prompt of `length` tokens; it says whether shortening the context helps."""
    limit = f"and the context length of {model.name} is {model.context_length} including the answer"
    system = [node for node in nodes[:-1] if node.kind is NodeKind.SYSTEM][-1:]
    alone = len(builder.build([*system, nodes[-1]]).token_ids)
    if nodes[-1].kind is NodeKind.USER and alone >= model.context_length:
        return MessageTooLong(
            f"The message alone has {alone} tokens, {limit}: shorten it, or restart with a larger "
            "--ctx if the model allows it."
        )
    return ContextFull(
        f"The conversation has {length} tokens, {limit}: start a new conversation, shorten the "
        "message, or restart with a larger --ctx if the model allows it."
    )


def _with_own_seeds(sampling: SamplingParams, count: int) -> list[SamplingParams]:
    """The parameters of further answers: with the same seed they would be the same."""
    seed = sampling.seed
    if seed is None:
        return [sampling] * count
    return [replace(sampling, seed=(seed + 1 + at) % 2**64) for at in range(count)]


def warm_request(prompt: Prompt) -> Request:
    """A request that computes the KV of a prompt without an answer, after all other requests."""
    return Request(
        prompt.token_ids,
        SamplingParams(max_tokens=0),
        priority=WARM_PRIORITY,
        images=prompt.images,
    )
