"""`Grounding`: the passages that answers are taken from, and the check of what they cite.

```
begin ──search──▶ waiting ──passages stored with the message──▶ submitted ──▶ checked while it streams
```

Passages that are stored with a message are used again, not sought again: for another answer to it, and in
the prompts of what follows. A passage that two messages of a prompt have is in it once: `contexts` leaves out
the later one whenever a prompt is built, so that a prompt without the first message has the whole text.
Used by the session's thread; nothing here waits.
"""

import logging
from collections.abc import Callable, Sequence
from concurrent.futures import Future
from dataclasses import replace

from engine.api.errors import InvalidRequest, PravahaError
from engine.api.snapshot import ModelInfo
from engine.clients.engine_client import EngineClient
from engine.conversations.answer import Answer
from engine.conversations.conversation import Conversation
from engine.conversations.passage_source import CitationCheck, FoundPassages, PassageSource
from engine.conversations.storage.store import Store
from engine.conversations.tree import Node, NodeDelta, NodeKind

_log = logging.getLogger(__name__)

_ROOM_SHARE = 2
"""Passages get at most this part of the free context: the rest is for the answer and what follows."""


class Grounding:
    """The passages of a session's answers.

    Args:
        source: where passages are found; None for none.
        store: where they are saved.
        client_of: the engine of an answer, for the length of its context.
    """

    def __init__(
        self,
        source: PassageSource | None,
        store: Store,
        client_of: Callable[[Answer], EngineClient],
    ) -> None:
        self._source = source
        self._store = store
        self._client_of = client_of

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
            answer.answers_from(message, grammar, self._check_of(answer, found))
        return False

    def search(self, conversation: Conversation, answers: Sequence[Answer]) -> None:
        """Begin to find the passages for answers to one message."""
        if self._source is None:
            return
        message = answers[0].asked[-1]
        model = self._client_of(answers[0]).snapshot().model
        finding = self._source.find(
            _sources(conversation, answers[0].asked),
            message.text,
            earlier=_earlier(answers[0]),
            model=model,
            room=None if model is None else _room(conversation, model),
            anyway=answers[0].anyway,
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
        answer.answers_from(message, grammar, self._check_of(answer, found))
        answer.faithful = True
        for other in conversation.answers.values():
            if other.finding is finding:
                other.finding = None
                other.answers_from(message, grammar, self._check_of(other, found))
        self._store.nodes.set_passages(message)
        _update(conversation, message)
        deltas.append(NodeDelta(message.id, "", message.status, message.finish, message.error))
        return True

    def contexts(self, nodes: Sequence[Node]) -> list[Node]:
        """The nodes of a prompt as the model reads them: each passage once, messages without collections."""
        source = self._source
        given = [(node, found_of(node)) for node in nodes]
        found = [one for _, one in given if one is not None]
        if source is None or not found:
            return list(nodes)
        contexts = iter(source.contexts(found))
        return [
            node
            if one is None
            else replace(node, context=next(contexts), text=source.question(one, node.text))
            for node, one in given
        ]

    def _check_of(self, answer: Answer, found: FoundPassages) -> CitationCheck | None:
        """The check of an answer to a message with these passages."""
        if self._source is None or not found.count:
            return None
        return self._source.begin_check(
            found,
            answer.asked[-1].text,
            earlier=_earlier(answer),
            model=self._client_of(answer).snapshot().model,
        )


def found_of(message: Node) -> FoundPassages | None:
    """The passages that are stored with a message; None if none were sought."""
    if message.passages is None or message.n_passages is None:
        return None
    return FoundPassages(message.context or "", message.passages, message.n_passages)


def _earlier(answer: Answer) -> list[str]:
    """The messages of the user before the one that is answered."""
    return [node.text for node in answer.asked[:-1] if node.kind is NodeKind.USER]


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
    """Take the passages of a message into the conversation; its flags may have changed."""
    tree = conversation.tree
    if node.id in tree:
        tree.add(replace(tree[node.id], n_passages=node.n_passages))
    conversation.nodes = [
        replace(
            old,
            context=node.context,
            passages=node.passages,
            n_passages=node.n_passages,
        )
        if old.id == node.id
        else old
        for old in conversation.nodes
    ]
    conversation.version += 1
