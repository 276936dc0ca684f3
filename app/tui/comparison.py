"""Reads the texts of a comparison from the session: which messages, their figures, and where they part."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import reduce

from app.text.safe_text import safe_text
from app.tui.view.compare_lines import CompareColumn, Parting, part_at_token, part_at_word
from engine.api.errors import PravahaError
from engine.conversations.branch_tree import BranchTree
from engine.conversations.session import TreeSession
from engine.conversations.tree import NodeKind, NodeView


@dataclass(frozen=True, slots=True)
class Comparison:
    """Texts side by side, as they were when they were read; `followed` reads them again."""

    columns: tuple[CompareColumn, ...]
    parting: Parting

    @property
    def running(self) -> bool:
        """Whether one of the answers ran."""
        return any(column.running for column in self.columns)


def compare(session: TreeSession, node_ids: Sequence[str]) -> Comparison:
    """Compare messages of the open conversation.

    A column holds all messages from where the branches parted down to the node. If one node is above
    another, the columns hold these two messages only.
    """
    slices = _slices(session.tree, node_ids)
    columns = tuple(_column(session, ids) for ids in slices)
    return Comparison(columns, _parting(session, slices, columns))


def followed(session: TreeSession, comparison: Comparison) -> Comparison:
    """The comparison with the present texts of its answers; the same object if none has changed.

    Costs a set lookup per column unless an answer runs or has just finished; only those are read.
    """
    ids = [column.node_id for column in comparison.columns]
    running = set(session.answers.running)
    if not (comparison.running or running.intersection(ids)):
        return comparison
    if not all(one in session.tree for one in ids):
        return comparison  # another conversation is open
    slices = _slices(session.tree, ids)
    columns = tuple(
        _column(session, path) if old.running or old.node_id in running else old
        for old, path in zip(comparison.columns, slices, strict=True)
    )
    if columns == comparison.columns:
        return comparison
    return Comparison(columns, _parting(session, slices, columns))


def before_this(session: TreeSession, node: NodeView) -> str | None:
    """The previous sibling of a message, else the next one; None if there is none."""
    siblings = session.tree.siblings(node.id)
    at = siblings.index(node.id)
    others = [*siblings[:at][::-1], *siblings[at + 1 :]]
    return others[0] if others else None


def _slices(tree: BranchTree, node_ids: Sequence[str]) -> list[list[str]]:
    def shared(one: str | None, other: str) -> str | None:
        return None if one is None else tree.common_ancestor(one, other)

    ancestor = reduce(shared, node_ids[1:], node_ids[0])  # type: ignore[arg-type]  # None ends it
    if ancestor in node_ids:
        return [[one] for one in node_ids]
    depth = len(tree.path(ancestor))
    return [tree.path(one)[depth:] for one in node_ids]


def _column(session: TreeSession, ids: Sequence[str]) -> CompareColumn:
    nodes = [session.view(one) for one in ids]
    last = nodes[-1]
    siblings = session.tree.siblings(last.id)
    text = last.text
    if len(nodes) > 1:
        text = "\n\n".join(f"{_author(node)}:\n{node.text}" for node in nodes)
    generated = last.kind is NodeKind.ASSISTANT
    return CompareColumn(
        node_id=last.id,
        title=_author(last),
        text=text,
        sibling=f"{siblings.index(last.id) + 1}/{len(siblings)}" if len(siblings) > 1 else "",
        tokens=last.n_gen if generated else None,
        perplexity=session.tokens.perplexity(last.id) if generated else None,
        ttft_us=last.ttft_us,
        running=last.id in session.answers.running,
    )


def _author(node: NodeView) -> str:
    if node.kind is NodeKind.ASSISTANT:
        return node.model or "assistant"
    return "you" if node.kind is NodeKind.USER else node.kind.value


def _parting(
    session: TreeSession, slices: Sequence[Sequence[str]], columns: Sequence[CompareColumn]
) -> Parting:
    if not any(column.running for column in columns):
        found = _token_parting(session, slices)
        return found or part_at_word([column.text for column in columns])
    found = part_at_word([column.text for column in columns])
    unfinished = any(
        column.running and not safe_text(column.text)[offset:].strip()
        for column, offset in zip(columns, found.offsets, strict=True)
    )
    # The rest of such an answer may still be equal.
    return replace(found, number=None) if unfinished else found


def _token_parting(session: TreeSession, slices: Sequence[Sequence[str]]) -> Parting | None:
    """By token id, if every column is one answer with tokens of the loaded model; else None.

    None, too, if an answer is shown with other citations than its tokens have.
    """
    if any(len(ids) > 1 or session.view(ids[0]).checked_text is not None for ids in slices):
        return None
    try:
        answers = [session.tokens.of(ids[0]) for ids in slices]
    except PravahaError:
        return None
    return part_at_token([(one.token_ids, one.texts) for one in answers])
