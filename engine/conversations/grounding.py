"""`Grounding`: the passages of answers, which are sought before an answer is submitted and checked after it.

```
begin ──search──▶ waiting ──passages stored with the message──▶ submitted ──▶ finished ──check──▶ citations
```

Passages that are stored with a message are used again, not sought again: for another answer to it, and in
the prompts of what follows. Used by the session's thread; nothing here waits, except `close`.
"""

import logging
from collections.abc import Sequence
from concurrent.futures import Future
from concurrent.futures import wait as wait_for
from dataclasses import dataclass, replace

from engine.api.errors import InvalidRequest, PravahaError
from engine.api.snapshot import ModelInfo
from engine.clients.engine_client import EngineClient
from engine.conversations.answer import Answer
from engine.conversations.conversation import Conversation
from engine.conversations.passage_source import CheckedAnswer, FoundPassages, PassageSource
from engine.conversations.store import Store
from engine.conversations.tree import Node, NodeDelta, NodeKind, NodeStatus

_log = logging.getLogger(__name__)

_ROOM_SHARE = 2
"""Passages get at most this part of the free context: the rest is for the answer and what follows."""
_CLOSE_S = 2.0
"""Most seconds that `close` waits for checks; each takes milliseconds."""


@dataclass(frozen=True, slots=True)
class _Check:
    """A finished answer whose citations are being checked."""

    conversation: Conversation
    node: Node
    future: "Future[CheckedAnswer]"


class Grounding:
    """The passages of a session's answers.

    Args:
        source: where passages are found; None for none.
        store: where they are saved.
        client: the engine, for the length of its context.
    """

    def __init__(self, source: PassageSource | None, store: Store, client: EngineClient) -> None:
        self._source = source
        self._store = store
        self._client = client
        self._checks: list[_Check] = []

    def must_search(self, conversation: Conversation, answers: Sequence[Answer]) -> bool:
        """Whether passages have to be found first. Passages of the message that are stored are used."""
        message = answers[0].asked[-1]
        if self._source is None or message.kind is not NodeKind.USER:
            return False
        found = found_of(message)
        if found is None:
            return bool(_sources(conversation, answers[0].asked))
        grammar = self._source.grammar(found)
        for answer in answers:
            answer.answers_from(message, grammar)
        return False

    def search(self, conversation: Conversation, answers: Sequence[Answer]) -> None:
        """Begin to find the passages for answers to one message."""
        if self._source is None:
            return
        *before, message = answers[0].asked
        model = self._client.snapshot().model
        earlier = [node.text for node in before if node.kind is NodeKind.USER]
        finding = self._source.find(
            _sources(conversation, answers[0].asked),
            message.text,
            earlier=earlier,
            model=model,
            room=None if model is None else _room(conversation, model),
        )
        for answer in answers:
            answer.finding = finding

    def is_ready(self, conversation: Conversation, answer: Answer, deltas: list[NodeDelta]) -> bool:
        """Whether an answer can be submitted; takes what was found for its message.

        Raises:
            PravahaError: the search failed.
        """
        finding = answer.finding
        if finding is None:
            return True
        if not finding.done():
            return False
        answer.finding = None
        found = _result(finding)
        message = _with_passages(answer.asked[-1], found)
        grammar = None if self._source is None else self._source.grammar(found)
        answer.answers_from(message, grammar)
        answer.faithful = True
        for other in conversation.answers.values():
            if other.finding is finding:
                other.finding = None
                other.answers_from(message, grammar)
        self._store.set_passages(message)
        _update(conversation, message)
        deltas.append(NodeDelta(message.id, "", message.status, message.finish, message.error))
        return True

    def begin_check(self, conversation: Conversation, answer: Answer) -> None:
        """Begin to check the citations of a finished answer."""
        node, message = answer.node(), answer.asked[-1] if answer.asked else None
        found = None if message is None else found_of(message)
        if self._source is None or found is None or not found.count or not node.text.strip():
            return
        if node.status in (NodeStatus.DONE, NodeStatus.STOPPED):
            self._checks.append(_Check(conversation, node, self._source.check(node.text, found)))

    @property
    def checking(self) -> bool:
        """Whether a check has not been collected."""
        return bool(self._checks)

    def collect(self) -> list[NodeDelta]:
        """Save the results of checks; the changes."""
        done = [one for one in self._checks if one.future.done()]
        self._checks = [one for one in self._checks if one not in done]
        deltas: list[NodeDelta] = []
        for one in done:
            try:
                checked = one.future.result()
            except Exception:
                _log.exception("the citations of an answer could not be checked")
                continue
            node = replace(one.node, citations=checked.citations, checked_text=checked.text)
            self._store.set_passages(node)
            _update(one.conversation, node)
            deltas.append(NodeDelta(node.id, "", node.status, node.finish, node.error))
        return deltas

    def close(self) -> None:
        """Save the checks that finish soon."""
        wait_for([one.future for one in self._checks], timeout=_CLOSE_S)
        self.collect()
        self._checks = []


def found_of(message: Node) -> FoundPassages | None:
    """The passages that are stored with a message; None if none were sought."""
    if message.passages is None or message.n_passages is None:
        return None
    return FoundPassages(message.context or "", message.passages, message.n_passages)


def _room(conversation: Conversation, model: ModelInfo) -> int:
    return max(0, model.context_length - conversation.context_used()) // _ROOM_SHARE


def _sources(conversation: Conversation, asked: Sequence[Node]) -> tuple[str, ...]:
    """The collections that are attached where the last of these nodes is."""
    saved = [node.id for node in asked[:-1] if node.id in conversation.tree]
    return conversation.tree.sources_after(saved[-1] if saved else None)


def _result(finding: "Future[FoundPassages]") -> FoundPassages:
    try:
        return finding.result()
    except PravahaError:
        raise
    except Exception as error:
        _log.exception("a search for passages failed")
        raise InvalidRequest(f"The passages could not be found: {error}.") from error


def _with_passages(message: Node, found: FoundPassages) -> Node:
    """The message; its turn is tokenized again."""
    return replace(
        message,
        context=found.context,
        passages=found.passages,
        n_passages=found.count,
    )


def _update(conversation: Conversation, node: Node) -> None:
    """Take the passages or citations of a node into the conversation; its flags may have changed."""
    tree = conversation.tree
    if node.id in tree:
        tree.add(
            replace(
                tree[node.id],
                n_passages=node.n_passages,
                citations=node.citations,
                checked_text=node.checked_text,
            )
        )
    conversation.nodes = [
        replace(
            old,
            context=node.context,
            passages=node.passages,
            n_passages=node.n_passages,
            citations=node.citations,
            checked_text=node.checked_text,
        )
        if old.id == node.id
        else old
        for old in conversation.nodes
    ]
    conversation.version += 1
