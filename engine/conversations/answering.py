"""`Answering`: runs the answers of conversations: submits, drains, saves and stops them.

It keeps each `Conversation`, the store and the engine's requests consistent. A conversation may have
several running answers, in any of its branches. States of an answer:

```
begin ──submit──▶ streaming ──drain, save ≤ 2/s──▶ finished ──save──▶ removed ──▶ next queued message
   └─(engine loading)─▶ waiting ─┘   also while no model is loaded, until its passages are found, and until it
                                     is decided whether it calls a tool
```
"""

import logging
from collections.abc import Callable, Sequence
from concurrent.futures import CancelledError, Future
from dataclasses import replace
from functools import partial

from engine.api.errors import EngineUnavailable, PravahaError
from engine.api.generation_defaults import SamplingChoice
from engine.api.image import Image
from engine.api.request import FinishReason, Request
from engine.api.snapshot import EngineState
from engine.api.tools import ToolRound
from engine.clients.engine_client import EngineClient
from engine.clients.model_set import ModelSet
from engine.conversations.answer import Answer, Beginning
from engine.conversations.assignment import Assignment
from engine.conversations.background import BackgroundSubmitter
from engine.conversations.chat_tools import ToolSource, ToolUse
from engine.conversations.conversation import Conversation, system_prompt_of
from engine.conversations.deciding import Deciding
from engine.conversations.grounding import Grounding
from engine.conversations.made_calls import begun_calls, finished_calls, results_text
from engine.conversations.new_nodes import NewNodes
from engine.conversations.passage_source import PassageSource
from engine.conversations.prompt_builder import PromptBuilder
from engine.conversations.storage.store import Store
from engine.conversations.submission import PreparedAnswers, Submitter
from engine.conversations.text_guard import NoGuard, TextGuard
from engine.conversations.thinking import Thinking
from engine.conversations.tree import Node, NodeDelta, NodeKind, NodeStatus, NodeView
from engine.text.clipped import clipped

_log = logging.getLogger(__name__)

Answered = Callable[[str, Sequence[int], Sequence[int], int], object]
"""Called with a session's name, the ids of prompt and answer, and how many of the prompt were cached."""

TOOL = "tool"
"""The operation in the oplog that adds calls and the answers to their results."""
RESULT_SHARE = 8
"""The result of a call takes at most this part of the model's context."""

_CLOSE_S = 2.0
"""Most seconds that `close` waits for the check of an answer's citations, which takes milliseconds."""


def with_next_seed(sampling: SamplingChoice, steps: int, seed: int | None = None) -> SamplingChoice:
    """The parameters with a seed `steps` after `seed`, or after their own; unchanged if they have none.

    With the same seed an answer would be repeated.
    """
    own = sampling.params.seed
    if own is None:
        return sampling
    following = ((own if seed is None else seed) + steps) % 2**64
    return replace(sampling, params=replace(sampling.params, seed=following))


class Answering:
    """The running answers of a session's conversations.

    Args:
        store: where messages are saved.
        client: the engine.
        nodes: adds the nodes of messages and answers.
        clock: monotonic seconds.
        stop_repetition: stop answers that repeat themselves without end.
        background: submit on a thread of its own, for a client whose `submit` waits for a network. A
            refusal by the engine, such as a full queue, then ends the answer instead of being raised.
        guard: checks the answers while they are generated; None lets everything pass.
        passages: finds the passages of messages on branches with sources; None if there is no source.
        tools: opens the tools that answers may call; None if there are none. Branches with sources have none.
        models: the models that branches may choose between; None if there is one engine. `client` is then
            that of the open branch.
        on_answered: called after each answer whose prompt was read; see `Answered`.
    """

    def __init__(
        self,
        store: Store,
        client: EngineClient,
        nodes: NewNodes,
        *,
        clock: Callable[[], float],
        stop_repetition: bool = True,
        background: bool = False,
        guard: TextGuard | None = None,
        passages: PassageSource | None = None,
        tools: ToolSource | None = None,
        models: ModelSet | None = None,
        on_answered: Answered | None = None,
    ) -> None:
        self._store = store
        self._on_answered = on_answered
        self._models = models
        self._nodes = nodes
        self._tools = tools
        self._grounding = Grounding(
            passages, store, lambda answer: self._submitter.client_of(answer)
        )
        self._guard: TextGuard = NoGuard() if guard is None else guard
        self._stop_repetition = stop_repetition
        self._clock = clock
        self._submitter = Submitter(client, self._grounding.contexts, models)
        self.builder = self._submitter.builder
        self._background = BackgroundSubmitter(self._submitter) if background else None
        self._active: dict[str, tuple[Conversation, Answer]] = {}  # by node id
        self._deciding: dict[str, Deciding] = {}  # by node id
        self._pending_deltas: list[NodeDelta] = []  # of answers that finished outside `pump`

    def running(self, tree_id: str) -> Conversation | None:
        """The conversation, if it has a running answer."""
        found = (one for one, _ in self._active.values() if one.id == tree_id)
        return next(found, None)

    def ask(
        self,
        conversation: Conversation,
        path: Sequence[Node],
        text: str,
        sampling: SamplingChoice,
        *,
        images: Sequence[Image] = (),
        keep_failed: bool = False,
    ) -> None:
        """Add a user message, preceded by the system prompt if it changed, and begin its answer.

        Args:
            conversation: the conversation.
            path: the nodes before the message, root first.
            text: the message.
            sampling: sampling parameters of the answer.
            images: images of the message.
            keep_failed: record an error as a failed answer instead of raising it.

        Raises:
            PravahaError: the chat template or the engine rejects the messages; nothing was added.
        """
        self._leave_out_optional_system(conversation)
        added: list[Node] = []
        parent = path[-1] if path else None
        if conversation.system_prompt != system_prompt_of(list(path)):
            system = conversation.system_prompt or ""
            parent = self._nodes.make(conversation, parent, NodeKind.SYSTEM, system)
            added.append(parent)
        added.append(
            self._nodes.make(conversation, parent, NodeKind.USER, text, images=tuple(images))
        )
        self.begin(conversation, path, added, sampling, "send", keep_failed=keep_failed)

    def begin(
        self,
        conversation: Conversation,
        path: Sequence[Node],
        added: Sequence[Node],
        sampling: SamplingChoice,
        operation: str,
        *,
        count: int = 1,
        beginning: Beginning | None = None,
        branch: str | None = None,
        kind: NodeKind = NodeKind.ASSISTANT,
        prompt: Sequence[Node] | None = None,
        forked_from: str | None = None,
        limit: int | None = None,
        keep_failed: bool = False,
        anyway: bool = False,
        tools: ToolUse | None = None,
        model: str | None = None,
        then: str | None = None,
    ) -> list[Answer]:
        """Begin answers to `path` + `added`, then save the new nodes as `operation` in the oplog.

        HEAD moves to the first answer if `path` is a part of the open path.

        Args:
            conversation: the conversation.
            path: saved nodes, root first.
            added: nodes to add after them.
            sampling: sampling parameters of the answers.
            operation: name in the oplog.
            count: number of answers, siblings of each other, decoded from one prefill.
            beginning: the tokens that each answer begins with.
            branch: name of a new branch that ends at the first answer; None moves the branch that ended
                at the open path's end.
            kind: the kind of the answers' nodes.
            prompt: the nodes to make the prompt from; None takes `path` + `added`.
            forked_from: a node that the answers refer to; see `Node.forked_from`.
            limit: most tokens of these answers; does not apply to the answers of queued messages.
            keep_failed: record an error as a failed answer instead of raising it.
            anyway: answer also if the passages of the message do not seem to answer it.
            tools: those of the answer before, whose calls were made; None opens tools if they are on.
            model: the one of several models that answers, here and in what follows; None takes that of the
                branch.
            then: the model of what follows, if it is not `model`.

        Raises:
            PravahaError: the chat template or the engine rejects the messages; nothing was added.
        """
        asked = [*path, *added]
        answers = [
            self._new_answer(conversation, asked, with_next_seed(sampling, i), beginning, kind)
            for i in range(count)
        ]
        for answer in answers:
            answer.refer(prompt=prompt, forked_from=forked_from)
            answer.limit, answer.anyway = limit, anyway
            answer.wanted_model = model or self.model_after(conversation, asked)
        prepared: PreparedAnswers | None = None
        # The model's generation defaults are known once it is loaded; `pump` submits it then. Without a
        # model a new message is refused and stays in the prompt; one that was queued waits.
        own = prompt is None and kind is NodeKind.ASSISTANT
        searches = own and self._grounding.must_search(conversation, answers)
        if own and not searches:
            for answer in answers:
                answer.tools = tools or self._open_tools(conversation, asked)
        elif tools is not None:  # sources were attached meanwhile
            tools.close()
        try:
            client = self._submitter.client_of(answers[0])
            if not self._must_wait(answers[0], client, accepted=keep_failed):
                if self._background is not None:
                    _refuse_if_away(client)
                prepared = self._submitter.prepare(answers)
                if searches or any(answer.tools is not None for answer in answers):
                    # It fits without passages and tools; the prompt is built with them.
                    prepared = None
                elif self._background is None:
                    prepared.record(answers, self._submitter.submit(prepared))
        except PravahaError as error:
            if not keep_failed:
                for answer in answers:
                    _close_tools(answer)
                raise
            for answer in answers:
                answer.finish(NodeStatus.ERROR, FinishReason.ERROR, str(error))
        self._nodes.create_tree(conversation, asked)
        nodes = [answer.node() for answer in answers]
        follows = not path or any(node.id == path[-1].id for node in conversation.nodes)
        follower = then or model
        chosen = (
            [] if follower is None else [Assignment("model", one.id, follower) for one in nodes]
        )
        self._nodes.add(
            conversation, path, [*added, *nodes], operation, branch=branch, follow=follows,
            end=nodes[0], more=chosen,
        )  # fmt: skip
        for answer, node in zip(answers, nodes, strict=True):
            answer.mark_saved(self._clock())
            conversation.answers[node.id] = answer
            self._active[node.id] = (conversation, answer)
        if searches and not answers[0].finished:
            self._grounding.search(conversation, answers)
        if prepared is not None:
            self._nodes.set_turn_ids(conversation, prepared.tokenized)
            if self._background is not None:
                self._background.begin(tuple(answers), prepared)
        return answers

    def model_after(
        self, conversation: Conversation, path: Sequence[Node | NodeView]
    ) -> str | None:
        """The one of several models that goes on after a path; None for the only or the primary one."""
        if self._models is None:
            return None
        name = conversation.tree.model_after(node.id for node in reversed(path))
        return name if name is not None and self._models.has(name) else None

    def stop(self, conversation: Conversation, node_id: str | None) -> None:
        """Stop a running answer at the next step boundary; its text is kept."""
        answer = conversation.answers.get(node_id or "")
        if answer is None or answer.finished or answer.awaits_citations:
            return
        if answer.request_id is not None:
            self._submitter.client_of(answer).cancel(answer.request_id)
        else:
            if self._background is not None:
                self._background.withdraw(answer)
            self._stop_deciding(answer)
            _close_tools(answer)
            self._pending_deltas.append(answer.finish(NodeStatus.STOPPED, FinishReason.ABORT))

    def stop_all(self, conversation: Conversation) -> None:
        """Stop all running answers of a conversation and forget its queued messages."""
        conversation.queues.clear()
        for node_id in list(conversation.answers):
            self.stop(conversation, node_id)

    @property
    def thinking(self) -> Thinking:
        """What is asked of models that reason."""
        return self._submitter.thinking

    @thinking.setter
    def thinking(self, thinking: Thinking) -> None:
        self._submitter.thinking = thinking

    def end_reasoning(self, conversation: Conversation, node_id: str | None) -> bool:
        """End the reasoning of a running answer; False if it does not reason.

        Raises:
            InvalidRequest: the engine is a server, which is not told.
        """
        answer = conversation.answers.get(node_id or "")
        if answer is None or answer.request_id is None or not answer.reasons:
            return False
        self._submitter.client_of(answer).end_reasoning(answer.request_id)
        return True

    def engine_after(
        self, conversation: Conversation, path: Sequence[Node]
    ) -> tuple[EngineClient, PromptBuilder]:
        """The engine that goes on after a path, and what builds its prompts."""
        client = self._submitter.client_named(self.model_after(conversation, path))
        return client, self._submitter.builder_for(client)

    def model_of(self, conversation: Conversation, path: Sequence[Node]) -> str | None:
        """The one of several models that gave the answer at the end of a path, so that its tokens are known.

        That which goes on after the path, if the answer's is not there; None for the only or the primary one.
        """
        own = path[-1].model
        if self._models is not None and own is not None and self._models.has(own):
            return own
        return self.model_after(conversation, path)

    def engine_of(
        self, conversation: Conversation, path: Sequence[Node]
    ) -> tuple[EngineClient, PromptBuilder]:
        """The engine of `model_of`, and what builds its prompts."""
        client = self._submitter.client_named(self.model_of(conversation, path))
        return client, self._submitter.builder_for(client)

    def reading_id(self, answer: Answer) -> str | None:
        """The request of an answer, or before it the one that reads its prompt."""
        deciding = self._deciding.get(answer.node_id)
        return answer.request_id if deciding is None else deciding.request_id

    def submit_aside(self, request: Request, client: EngineClient) -> "Future[str]":
        """Submit a request that is no answer; its id. The future is done at once unless in `background`.

        It fails as `EngineClient.submit` does.
        """
        if self._background is not None:
            return self._background.submit(request, client)
        future: Future[str] = Future()
        try:
            future.set_result(client.submit(request))
        except PravahaError as error:
            future.set_exception(error)
        return future

    def discard_output(self, submitted: "Future[str]", client: EngineClient) -> None:
        """Discard the output of a request that is no answer, once it is submitted to `client`."""

        def done(future: "Future[str]") -> None:
            if not future.cancelled() and future.exception() is None:
                self._submitter.discard(future.result(), client)

        submitted.add_done_callback(done)

    def pump(self) -> list[NodeDelta]:
        """Drain the engine's output; returns the changes. Costs microseconds if there are none."""
        if not (self._active or self._submitter.discards or self._submitting):
            return []
        deltas, self._pending_deltas = self._pending_deltas, []
        self._collect_submissions(deltas)
        now = self._clock()
        for conversation, answer in list(self._active.values()):
            if not answer.finished:
                self._advance(conversation, answer, deltas)
            self._save(answer, now)
            if answer.finished:
                self._remove(conversation, answer)
                if self._on_answered is not None and answer.n_cached is not None:
                    self._on_answered(
                        f"{conversation.title} ({conversation.id[-4:].lower()})",
                        answer.prompt_ids,
                        answer.generated,
                        answer.n_cached,
                    )
                if not self._goes_on(conversation, answer, deltas):
                    self._begin_queued(conversation, answer, deltas)
                if not conversation.answers:
                    self._store.leases.release(conversation.id)
        self._submitter.drain_abandoned()
        return deltas

    @property
    def _submitting(self) -> bool:
        return self._background is not None and self._background.busy

    def close(self) -> None:
        """Stop all answers and save their text. Idempotent."""
        if self._background is not None:
            self._background.close()
        for conversation, answer in list(self._active.values()):
            conversation.queues.clear()
            self.stop(conversation, answer.node_id)
            if not answer.finished and answer.request_id is not None:
                self._drain(answer, answer.request_id, [])
            if answer.awaits_citations:
                answer.wait_for_citations(_CLOSE_S)
            if not answer.finished:
                answer.finish(NodeStatus.STOPPED, FinishReason.ABORT)
            _close_tools(answer)
            self._save(answer, self._clock())
            self._remove(conversation, answer)
            self._store.leases.release(conversation.id)

    def _new_answer(
        self,
        conversation: Conversation,
        asked: Sequence[Node],
        sampling: SamplingChoice,
        beginning: Beginning | None,
        kind: NodeKind,
    ) -> Answer:
        node = self._nodes.make(conversation, asked[-1], kind, "", NodeStatus.STREAMING)
        if beginning is not None:
            node = replace(
                node, forked_from=beginning.forked_from, fork_token=len(beginning.token_ids)
            )
        return Answer(
            node,
            sampling,
            self._clock(),
            asked=asked,
            beginning=beginning,
            begin_check=partial(self._guard.begin_answer, conversation.id),
        )

    def _leave_out_optional_system(self, conversation: Conversation) -> None:
        if not conversation.system_optional or conversation.nodes:
            return
        client, builder = self.engine_after(conversation, [])
        if self._background is not None and _is_loading(client):
            return  # the template is not known yet
        try:
            takes = builder.takes_system_prompt()
        except EngineUnavailable:
            return  # `begin` reports the error or waits for the model
        if not takes:
            conversation.system_prompt = None

    def _collect_submissions(self, deltas: list[NodeDelta]) -> None:
        """Record what was submitted in the background; a refusal ends the answers."""
        if self._background is None:
            return
        for pending in self._background.finished():
            waiting = [answer for answer in pending.answers if not answer.finished]
            error = pending.future.exception()
            if error is not None:
                if not isinstance(error, PravahaError):
                    _log.error("a submission failed", exc_info=error)
                deltas += [
                    answer.finish(NodeStatus.ERROR, FinishReason.ERROR, str(error))
                    for answer in waiting
                ]
                continue
            pending.prepared.record(pending.answers, pending.future.result())
            deltas += [_accepted(answer) for answer in waiting]

    def _must_wait(self, answer: Answer, client: EngineClient, *, accepted: bool) -> bool:
        """Whether an answer waits for its model, which is loaded if it is one of several.

        Args:
            answer: not submitted yet.
            client: its engine.
            accepted: whether it waits, too, until the user has chosen a model.

        Raises:
            PravahaError: its model could not be loaded.
        """
        if self._models is not None and self._models.awaits(answer.wanted_model):
            return True
        return _is_loading(client) or (accepted and client.snapshot().state is EngineState.UNLOADED)

    def _advance(self, conversation: Conversation, answer: Answer, deltas: list[NodeDelta]) -> None:
        if answer.request_id is not None:
            self._drain(answer, answer.request_id, deltas)
            return
        if self._background is not None and self._background.holds(answer):
            return
        try:
            if answer.acting is not None:
                self._take_results(answer, answer.acting, deltas)
                return
            if not self._grounding.is_ready(conversation, answer, deltas):
                return
            deciding = self._deciding.get(answer.node_id)
            if deciding is not None and not deciding.is_done():
                return  # also while its model is to be unloaded, which waits for these rows
            if self._must_wait(answer, self._submitter.client_of(answer), accepted=True):
                return
            if not self._has_tools(answer):
                return
            prepared = self._planned(conversation, answer, deltas)
            if prepared is None:
                return
            if self._background is not None:
                self._background.begin((answer,), prepared)
            else:
                prepared.record([answer], self._submitter.submit(prepared))
                deltas.append(_accepted(answer))
        except PravahaError as error:
            self._stop_deciding(answer)
            deltas.append(answer.finish(NodeStatus.ERROR, FinishReason.ERROR, str(error)))

    # Tools.

    def _planned(
        self, conversation: Conversation, answer: Answer, deltas: list[NodeDelta]
    ) -> PreparedAnswers | None:
        """An answer to submit; None until it is decided whether it calls a tool.

        Raises:
            PravahaError: its prompt is rejected, or what decides is.
        """
        deciding = self._deciding.get(answer.node_id)
        if deciding is not None and not deciding.is_for(self._submitter.client_of(answer)):
            self._stop_deciding(answer)
            deciding = None
        if deciding is None:
            prepared = self._submitter.prepare([answer])
            self._nodes.set_turn_ids(conversation, prepared.tokenized)
            if prepared.planner is None:
                return prepared.planned(answer)
            deciding = Deciding(prepared, prepared.planner, self.submit_aside, self._clock())
            self._deciding[answer.node_id] = deciding
            if deciding.submitted:
                deltas.append(answer.reads(len(prepared.token_ids)))
        if not deciding.is_done():
            return None
        del self._deciding[answer.node_id]
        if deciding.submitted:
            seconds = self._clock() - deciding.began
            answer.decided(cached_tokens=deciding.cached_tokens, seconds=seconds)
        return deciding.prepared.planned(answer)

    def _stop_deciding(self, answer: Answer) -> None:
        deciding = self._deciding.pop(answer.node_id, None)
        if deciding is None:
            return
        for submitted in deciding.unfinished:
            submitted.add_done_callback(partial(self._abandon, deciding.prepared.client))

    def _abandon(self, client: EngineClient, submitted: "Future[str]") -> None:
        if not submitted.cancelled() and submitted.exception() is None:
            self._submitter.abandon(submitted.result(), client)

    def _open_tools(self, conversation: Conversation, asked: Sequence[Node]) -> ToolUse | None:
        if self._tools is None:
            return None
        written = [one.text for one in asked if one.kind in (NodeKind.USER, NodeKind.SYSTEM)]
        opened = self._tools.open(
            conversation.id,
            "\n".join(written),
            has_results=any(one.kind is NodeKind.TOOL for one in asked),
        )
        if opened is None:
            return None
        return ToolUse(opened, form=self._tools.form, decision=self._tools.decision)

    def _has_tools(self, answer: Answer) -> bool:
        """Whether an answer has the tools that it may call, or needs none.

        Raises:
            PravahaError: they cannot be used.
        """
        client = self._submitter.client_of(answer)
        return answer.tools is None or answer.tools.is_ready(client.control_tokens())

    def _goes_on(self, conversation: Conversation, answer: Answer, deltas: list[NodeDelta]) -> bool:
        """Whether another node follows a finished one: that of its calls, or the answer to their results."""
        tools, node = answer.tools, answer.node()
        if tools is None:
            return False
        path = [*answer.asked, node]
        is_done = node.status is NodeStatus.DONE and node.finish == FinishReason.STOP.value
        is_empty = not (answer.calls or node.prompt_text.strip() or tools.in_words)
        if is_done and (node.kind is NodeKind.TOOL or is_empty):
            tools.in_words = tools.in_words or is_empty
            try:
                model, then = self._same_model(conversation, answer, path)
                (new,) = self.begin(
                    conversation, path, [], answer.sampling, TOOL, keep_failed=True, tools=tools,
                    model=model, then=then,
                )  # fmt: skip
            except PravahaError as error:
                _log.warning("the results of tools were not answered: %s", error)
                _close_tools(answer)
                return False
        elif is_done and answer.calls and not tools.in_words:
            new = self._act(conversation, answer, path, tools)
        else:
            _close_tools(answer)
            return False
        if (queue := conversation.queues.pop(answer.node_id, None)) is not None:
            conversation.queues[new.node_id] = queue
        deltas.append(_added(new.node()))
        return True

    def _same_model(
        self, conversation: Conversation, answer: Answer, path: Sequence[Node]
    ) -> tuple[str | None, str | None]:
        """`model` and `then` of `begin`: the model that called tools goes on, then one chosen meanwhile."""
        chosen = self.model_after(conversation, path)
        if self._models is None or chosen is None:
            return None, None
        own = answer.wanted_model or self._models.primary
        return (None, None) if chosen == own else (own, chosen)

    def _act(
        self,
        conversation: Conversation,
        answer: Answer,
        path: Sequence[Node],
        tools: ToolUse,
    ) -> Answer:
        """Make the calls of an answer; the node that gets their results."""
        node = self._nodes.make(conversation, path[-1], NodeKind.TOOL, "", NodeStatus.STREAMING)
        node = replace(node, calls=begun_calls(answer.calls))
        acting = Answer(node, answer.sampling, self._clock(), asked=path)
        acting.wanted_model, acting.client = answer.wanted_model, answer.client
        acting.tools = tools
        acting.acting = tools.act(answer.calls)
        follows = any(one.id == answer.node_id for one in conversation.nodes)
        self._nodes.add(conversation, path, [node], TOOL, end=node, follow=follows)
        acting.mark_saved(self._clock())
        conversation.answers[node.id] = acting
        self._active[node.id] = (conversation, acting)
        return acting

    def _take_results(
        self, answer: Answer, acting: "Future[ToolRound]", deltas: list[NodeDelta]
    ) -> None:
        """Take the results of calls, each with at most a part of the context.

        They wait for a model that is not there: its tokens measure them, and it is to answer them.

        Raises:
            PravahaError: the model could not be loaded, or its engine has failed.
        """
        if not acting.done():
            return
        try:
            made = acting.result()
        except CancelledError:
            deltas.append(answer.finish(NodeStatus.STOPPED, FinishReason.ABORT))
            return
        except Exception as error:
            _log.exception("calls of tools failed")
            deltas.append(answer.finish(NodeStatus.ERROR, FinishReason.ERROR, str(error)))
            return
        client = self._submitter.client_of(answer)
        if self._must_wait(answer, client, accepted=True):
            return
        model = client.snapshot().model
        limit = (model.context_length if model else 4096) // RESULT_SHARE
        texts = [
            clipped(one.text, limit, client.tokenize, client.detokenize) for one in made.results
        ]
        if answer.tools is not None:
            answer.tools.in_words = not made.may_call
        names = [one.call.name for one in made.results]
        deltas.append(answer.take_results(results_text(texts, names), finished_calls(made.results)))

    def _drain(self, answer: Answer, request_id: str, deltas: list[NodeDelta]) -> None:
        self._take_checked(answer, deltas)
        if answer.finished or answer.awaits_citations:
            return
        client = self._submitter.client_of(answer)
        try:
            batch = client.drain(request_id)
        except PravahaError as error:
            deltas.append(answer.finish(NodeStatus.ERROR, FinishReason.ERROR, str(error)))
            return
        if batch is None:
            return
        deltas.append(answer.add(batch))
        self._take_checked(answer, deltas)
        if answer.leaves_passages and not (
            answer.finished or answer.awaits_citations or answer.stopped_by_citations
        ):
            answer.stopped_by_citations = True
            client.cancel(request_id)
        if answer.blocked and not (answer.finished or answer.stopped_by_check):
            answer.stopped_by_check = True
            client.cancel(request_id)
        if self._stop_repetition and answer.repeats and not answer.stopped_for_repetition:
            answer.stopped_for_repetition = True
            client.cancel(request_id)

    def _take_checked(self, answer: Answer, deltas: list[NodeDelta]) -> None:
        if (checked := answer.take_checked()) is not None:
            deltas.append(checked)

    def _save(self, answer: Answer, now: float) -> None:
        if answer.needs_save(now):
            self._store.nodes.update_streaming(answer.node())
            answer.mark_saved(now)

    def _remove(self, conversation: Conversation, answer: Answer) -> None:
        conversation.finish_answer(answer)
        del self._active[answer.node_id]

    def _begin_queued(
        self, conversation: Conversation, answer: Answer, deltas: list[NodeDelta]
    ) -> None:
        queue = conversation.queues.pop(answer.node_id, None)
        if not queue:
            return
        before = set(conversation.answers)
        path = [*answer.asked, answer.node()]
        sampling = conversation.sampling.get(answer.node_id, answer.sampling)
        self.ask(conversation, path, queue.popleft(), sampling, keep_failed=True)
        for node_id in conversation.answers.keys() - before:
            if queue:
                conversation.queues[node_id] = queue
            new = conversation.answers[node_id]
            deltas += [_added(node) for node in (*new.asked[len(path) :], new.node())]


def _refuse_if_away(client: EngineClient) -> None:
    """Refuse a message for an engine that is known not to answer: the text stays in the prompt.

    Raises:
        EngineUnavailable: it failed, or has no model.
    """
    snapshot = client.snapshot()
    if snapshot.state in (EngineState.FAILED, EngineState.STOPPED, EngineState.UNLOADED):
        raise EngineUnavailable(snapshot.last_error or "The engine does not answer.")


def _is_loading(client: EngineClient) -> bool:
    """Whether a model is being loaded, or will be: requests wait for it."""
    snapshot = client.snapshot()
    return snapshot.state is EngineState.LOADING or snapshot.changes_model


def _close_tools(answer: Answer) -> None:
    if answer.tools is not None:
        answer.tools.close()


def _added(node: Node) -> NodeDelta:
    """The change that adds a node."""
    return NodeDelta(node.id, "", node.status, node.finish, node.error)


def _accepted(answer: Answer) -> NodeDelta:
    """The change of an answer whose request the engine has now: its prompt's length is known."""
    return NodeDelta(answer.node_id, "", NodeStatus.STREAMING, None, None)
