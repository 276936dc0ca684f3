"""`Answering`: runs the answers of open conversations: submits, drains, saves and stops them.

It keeps each `Conversation`, the store and the engine's requests consistent. States of an answer:

```
begin ──submit──▶ streaming ──drain, save ≤ 2/s──▶ finished ──save──▶ detached ──▶ next queued message
   └─(engine loading)─▶ waiting ─┘
```
"""

from collections.abc import Callable, Sequence
from dataclasses import replace

from engine.api.errors import EngineUnavailable, InvalidRequest, PravahaError
from engine.api.generation_defaults import SamplingChoice
from engine.api.request import FinishReason, Request, SamplingParams
from engine.api.snapshot import EngineState, ModelInfo
from engine.clients.engine_client import EngineClient
from engine.conversations.answer import Answer
from engine.conversations.conversation import Conversation
from engine.conversations.prompt_builder import PromptBuilder
from engine.conversations.store import Store
from engine.conversations.titles import UNTITLED, title_of
from engine.conversations.tree import Node, NodeDelta, NodeKind, NodeStatus

SMALL_MODEL_PARAMETERS = 1_000_000_000
SMALL_MODEL_MAX_TOKENS = 1024


def default_max_tokens(model: ModelInfo) -> int | None:
    """The length limit of answers that have none: small models may not end by themselves."""
    return SMALL_MODEL_MAX_TOKENS if model.parameters < SMALL_MODEL_PARAMETERS else None


def _for_model(choice: SamplingChoice, model: ModelInfo | None) -> SamplingParams:
    """The sampling parameters to use: those chosen, else the model's."""
    if model is None:
        return choice.params
    params = choice.for_model(model.generation_defaults)
    if params.max_tokens is None:
        params = replace(params, max_tokens=default_max_tokens(model))
    return params


class Answering:
    """The running answers of a session's conversations, at most one per conversation.

    Args:
        store: where messages are saved.
        client: the engine.
        clock: monotonic seconds.
        wall: seconds since the epoch.
        new_id: returns increasing ids.
        stop_repetition: stop answers that repeat themselves without end.
    """

    def __init__(
        self,
        store: Store,
        client: EngineClient,
        *,
        clock: Callable[[], float],
        wall: Callable[[], float],
        new_id: Callable[[], str],
        stop_repetition: bool = True,
    ) -> None:
        self._store = store
        self._stop_repetition = stop_repetition
        self._client = client
        self._clock = clock
        self._wall = wall
        self._new_id = new_id
        self._builder = PromptBuilder(client)
        self._active: dict[str, tuple[Conversation, Answer]] = {}  # by tree id
        self._pending_deltas: list[NodeDelta] = []  # of answers that finished outside `pump`

    def running(self, tree_id: str) -> Conversation | None:
        """The conversation, if it has a running answer."""
        active = self._active.get(tree_id)
        return None if active is None else active[0]

    def ask(
        self,
        conversation: Conversation,
        text: str,
        sampling: SamplingChoice,
        *,
        keep_failed: bool = False,
    ) -> None:
        """Add a user message, preceded by the system prompt if it changed, and begin its answer.

        Args:
            conversation: one without a running answer.
            text: the message.
            sampling: sampling parameters of the answer.
            keep_failed: record an error as a failed answer instead of raising it.

        Raises:
            PravahaError: the chat template or the engine rejects the messages; nothing was added.
        """
        self._leave_out_optional_system(conversation)
        added: list[Node] = []
        parent = conversation.nodes[-1] if conversation.nodes else None
        if conversation.system_prompt != conversation.sent_system_prompt():
            parent = self._node(
                conversation, parent, NodeKind.SYSTEM, conversation.system_prompt or ""
            )
            added.append(parent)
        added.append(self._node(conversation, parent, NodeKind.USER, text))
        self._begin(conversation, conversation.nodes, added, sampling, "send", keep_failed)

    def answer_again(
        self, conversation: Conversation, path: list[Node], sampling: SamplingChoice
    ) -> None:
        """Begin another answer to the last node of `path`, a user message.

        Raises:
            PravahaError: the chat template or the engine rejects the messages; nothing was added.
        """
        self._begin(conversation, path, [], sampling, "regenerate", keep_failed=False)

    def stop(self, conversation: Conversation) -> None:
        """Stop the running answer at the next step boundary; its text is kept."""
        answer = conversation.answer
        if answer is None or answer.finished:
            return
        if answer.request_id is not None:
            self._client.cancel(answer.request_id)
        else:
            self._pending_deltas.append(answer.finish(NodeStatus.STOPPED, FinishReason.ABORT))

    def pump(self) -> list[NodeDelta]:
        """Drain the engine's output; returns the changes. Costs microseconds if there are none."""
        if not self._active:
            return []
        deltas, self._pending_deltas = self._pending_deltas, []
        now = self._clock()
        for conversation, answer in list(self._active.values()):
            if not answer.finished:
                self._advance(conversation, answer, deltas)
            self._save(answer, now)
            if answer.finished:
                self._detach(conversation)
                self._begin_queued(conversation, answer.sampling, deltas)
                if conversation.answer is None:
                    self._store.release(conversation.id)
        return deltas

    def close(self) -> None:
        """Stop all answers and save their text. Idempotent."""
        for conversation, answer in list(self._active.values()):
            conversation.queued.clear()
            self.stop(conversation)
            if not answer.finished and answer.request_id is not None:
                self._drain(answer, answer.request_id, [])
            if not answer.finished:
                answer.finish(NodeStatus.STOPPED, FinishReason.ABORT)
            self._save(answer, self._clock())
            self._detach(conversation)
            self._store.release(conversation.id)

    def _begin(
        self,
        conversation: Conversation,
        path: list[Node],
        added: list[Node],
        sampling: SamplingChoice,
        operation: str,
        keep_failed: bool,
    ) -> None:
        """Begin the answer to `path` + `added`, then save the new nodes as `operation` in the oplog."""
        asked = [*path, *added]
        node = self._node(
            conversation, asked[-1], NodeKind.ASSISTANT, "", status=NodeStatus.STREAMING
        )
        answer = Answer(node, sampling, self._clock())
        try:
            # The model's generation defaults are known once it is loaded; `pump` submits it then.
            tokenized = () if self._is_loading() else self._submit(answer, asked)
        except PravahaError as error:
            tokenized = ()
            if not keep_failed:
                raise
            answer.finish(NodeStatus.ERROR, FinishReason.ERROR, str(error))
        self._create_tree(conversation, asked)
        node = answer.node()
        self._store.add_nodes([*added, node], name=operation)
        answer.mark_saved(self._clock())
        conversation.nodes = [*asked, node]
        conversation.answer = answer
        self._active[conversation.id] = (conversation, answer)
        self._store_turn_ids(conversation, tokenized)

    def _leave_out_optional_system(self, conversation: Conversation) -> None:
        if not conversation.system_optional or conversation.nodes:
            return
        try:
            if not self._builder.takes_system_prompt():
                conversation.system_prompt = None
        except EngineUnavailable:
            pass  # `_begin` reports the error or waits for the model

    def _create_tree(self, conversation: Conversation, asked: Sequence[Node]) -> None:
        if conversation.saved:
            return
        if conversation.title == UNTITLED:
            conversation.title = title_of(asked[-1].text)
        self._store.create_tree(conversation.id, conversation.title)
        conversation.saved = True

    def _submit(self, answer: Answer, asked: Sequence[Node]) -> tuple[Node, ...]:
        """Submit the answer's request; returns the user nodes with new token ids."""
        prompt = self._builder.build(asked)
        length = len(prompt.token_ids)
        model = self._client.snapshot().model
        if model is not None and length >= model.context_length:
            raise InvalidRequest(
                f"The conversation has {length} tokens, and the context length of {model.name} is "
                f"{model.context_length} including the answer: start a new conversation, shorten the "
                "message, or restart with a larger --ctx if the model allows it."
            )
        sampling = _for_model(answer.sampling, model)
        answer.submitted(
            self._client.submit(Request(prompt.token_ids, sampling)),
            n_prompt=length,
            tokenizer=self._client.tokenizer_fingerprint(),
            model=None if model is None else model.name,
            sampling=sampling,
        )
        return prompt.tokenized

    def _store_turn_ids(self, conversation: Conversation, tokenized: Sequence[Node]) -> None:
        """Store the token ids of newly tokenized turns."""
        fresh = {node.id: node for node in tokenized}
        conversation.nodes = [fresh.get(node.id, node) for node in conversation.nodes]
        for node in tokenized:
            self._store.set_token_ids(node)

    def _is_loading(self) -> bool:
        return self._client.snapshot().state is EngineState.LOADING

    def _advance(self, conversation: Conversation, answer: Answer, deltas: list[NodeDelta]) -> None:
        if answer.request_id is not None:
            self._drain(answer, answer.request_id, deltas)
        elif not self._is_loading():
            try:
                self._store_turn_ids(conversation, self._submit(answer, conversation.nodes[:-1]))
            except PravahaError as error:
                deltas.append(answer.finish(NodeStatus.ERROR, FinishReason.ERROR, str(error)))

    def _drain(self, answer: Answer, request_id: str, deltas: list[NodeDelta]) -> None:
        try:
            batch = self._client.drain(request_id)
        except PravahaError as error:
            deltas.append(answer.finish(NodeStatus.ERROR, FinishReason.ERROR, str(error)))
            return
        if batch is None:
            return
        deltas.append(answer.add(batch))
        if self._stop_repetition and answer.repeats and not answer.stopped_for_repetition:
            answer.stopped_for_repetition = True
            self._client.cancel(request_id)

    def _save(self, answer: Answer, now: float) -> None:
        if answer.needs_save(now):
            self._store.update_streaming(answer.node())
            answer.mark_saved(now)

    def _detach(self, conversation: Conversation) -> None:
        conversation.detach_answer()
        del self._active[conversation.id]

    def _begin_queued(
        self, conversation: Conversation, sampling: SamplingChoice, deltas: list[NodeDelta]
    ) -> None:
        if not conversation.queued:
            return
        before = len(conversation.nodes)
        self.ask(conversation, conversation.queued.popleft(), sampling, keep_failed=True)
        deltas += [
            NodeDelta(node.id, "", node.status, node.finish, node.error)
            for node in conversation.nodes[before:]
        ]

    def _node(
        self,
        conversation: Conversation,
        parent: Node | None,
        kind: NodeKind,
        text: str,
        status: NodeStatus = NodeStatus.DONE,
    ) -> Node:
        return Node(
            id=self._new_id(),
            tree_id=conversation.id,
            parent_id=None if parent is None else parent.id,
            kind=kind,
            text=text,
            status=status,
            created_at=self._wall(),
        )
