"""`ConversationGuard`: the guardrails of a chat, as the session's `TextGuard`.

What the user writes is checked before it is stored: placeholders stand in the conversation's file, in the
prompt and in the KV cache, and the values in the `RedactionStore` alone. What is shown has the values
again. Answers are stored as they were generated and checked when they are shown, piece by piece or as a
whole, with the same result (`StreamCheck`).

Cost: of a message, one check of its text; of a shown answer, one check, once for each text.
"""

import logging
import sqlite3
from collections import Counter, OrderedDict
from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import cached_property

from agents.guardrails.detection import Action, Kind
from agents.guardrails.guardrails import CheckedText, Guardrails, OutputCheck
from agents.guardrails.redaction import RedactionMap
from agents.guardrails.redaction_store import RedactionStore
from agents.guardrails.words import counted, refusal, remarks_of
from engine.api.errors import InvalidRequest
from engine.conversations.tree import NodeKind, NodeStatus, NodeView

_LOG = logging.getLogger(__name__)

_GENERATED = frozenset({NodeKind.ASSISTANT, NodeKind.SUMMARY})
_WRITTEN = frozenset({NodeKind.USER, NodeKind.TOOL})
_KEPT = 512
"""Number of shown messages that are not checked again; a path on the screen has fewer."""


class GuardedAnswer:
    """An `AnswerCheck` over an `OutputCheck`."""

    def __init__(self, check: OutputCheck) -> None:
        """Check with `check`."""
        self._check = check

    @property
    def blocked(self) -> bool:
        """See `AnswerCheck.blocked`."""
        return self._check.blocked is not None

    def feed(self, piece: str) -> str:
        """See `AnswerCheck.feed`."""
        return self._check.feed(piece)

    def finish(self) -> str:
        """See `AnswerCheck.finish`."""
        return self._check.finish()


class ConversationGuard:
    """The `TextGuard` of a session. Used by its thread."""

    def __init__(self, guardrails: Callable[[], Guardrails], store: RedactionStore) -> None:
        """Guard with a policy.

        Args:
            guardrails: returns the checks; called once, when the first text is checked.
            store: keeps what placeholders stand for.
        """
        self._open = guardrails
        self._store = store
        self._redactions: dict[str, RedactionMap] = {}
        self._unsaved: set[str] = set()
        self._shown: OrderedDict[tuple[str, str], tuple[NodeView, NodeView]] = OrderedDict()

    # TextGuard.

    def check_input(self, tree_id: str, text: str) -> str:
        """See `TextGuard.check_input`."""
        redactions = self._of(tree_id)
        before = len(redactions)
        checked = self._guardrails.check_input(text, redactions)
        if checked.blocked is not None:
            raise InvalidRequest(refusal(checked.blocked))
        if len(redactions) > before:
            self._unsaved.add(tree_id)
        self._save()
        return checked.text

    def begin_answer(self, tree_id: str) -> GuardedAnswer:
        """See `TextGuard.begin_answer`."""
        return GuardedAnswer(self._guardrails.output_check(self._of(tree_id)))

    def shown(self, tree_id: str, node: NodeView) -> NodeView:
        """See `TextGuard.shown`. A text that is still written by another process may end a word earlier."""
        if node.kind not in _GENERATED and node.kind not in _WRITTEN:
            return node
        key = (tree_id, node.id)
        known = self._shown.get(key)
        if known is not None and known[0] == node:
            return known[1]
        shown = (
            self._answer(tree_id, node) if node.kind in _GENERATED else self._message(tree_id, node)
        )
        self._shown[key] = node, shown
        self._shown.move_to_end(key)
        if len(self._shown) > _KEPT:
            self._shown.popitem(last=False)
        return shown

    def shown_text(self, tree_id: str, text: str) -> str:
        """See `TextGuard.shown_text`."""
        return self._of(tree_id).restore(text)

    def forget(self, tree_ids: Sequence[str]) -> None:
        """See `TextGuard.forget`."""
        for tree_id in tree_ids:
            self._redactions.pop(tree_id, None)
            self._unsaved.discard(tree_id)
            try:
                self._store.forget(tree_id)
            except (sqlite3.Error, OSError):
                _LOG.warning("the redactions of a conversation could not be deleted", exc_info=True)

    # Internal.

    @cached_property
    def _guardrails(self) -> Guardrails:
        return self._open()

    def _message(self, tree_id: str, node: NodeView) -> NodeView:
        """What the user wrote, with the values of its placeholders."""
        redactions = self._of(tree_id)
        replaced = Counter(redactions.kinds_in(node.text))
        checked = self._guardrails.check_input(node.text)
        flagged = self._flagged(checked)
        remarks = [f"{counted(replaced)} replaced before the model read it"] if replaced else []
        if flagged:
            remarks.append(f"contains {counted(flagged)}")
        return replace(node, text=redactions.restore(node.text), remarks=tuple(remarks))

    def _flagged(self, checked: CheckedText) -> Counter[Kind]:
        actions = self._guardrails.policy.input_actions
        return Counter(
            one.kind for one in checked.detections if actions[one.kind] is not Action.ALLOW
        )

    def _answer(self, tree_id: str, node: NodeView) -> NodeView:
        finished = node.status is not NodeStatus.STREAMING
        actions = self._guardrails.policy.output_actions
        check, text = self._checked(tree_id, node.text, finished=finished)
        detections, reasoning = check.detections, node.reasoning
        if reasoning is not None:
            check, reasoning = self._checked(tree_id, reasoning, finished=finished)
            if check.blocked is not None:  # the answer ended before its text
                text, detections = "", ()
            detections = (*check.detections, *detections)
        remarks = remarks_of(detections, actions.__getitem__)
        return replace(node, text=text, reasoning=reasoning, remarks=remarks)

    def _checked(self, tree_id: str, text: str, *, finished: bool) -> tuple[OutputCheck, str]:
        """The check of a generated text, and what is shown of it."""
        check = self._guardrails.output_check(self._of(tree_id))
        shown = check.feed(text)
        return check, shown + check.finish() if finished else shown

    def _of(self, tree_id: str) -> RedactionMap:
        """The redactions of a conversation."""
        if tree_id not in self._redactions:
            try:
                self._redactions[tree_id] = self._store.load(tree_id)
            except (sqlite3.Error, OSError):
                _LOG.error("the redactions of a conversation cannot be read", exc_info=True)
                self._redactions[tree_id] = RedactionMap()
        return self._redactions[tree_id]

    def _save(self) -> None:
        """Save new redactions. A disk without room keeps them in memory until the next message."""
        for tree_id in tuple(self._unsaved):
            try:
                self._store.save(tree_id, self._redactions[tree_id])
            except (sqlite3.Error, OSError):
                _LOG.error("the redactions of a conversation cannot be saved", exc_info=True)
                return
            self._unsaved.discard(tree_id)
