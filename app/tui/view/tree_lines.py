"""Rows of the branch tree: `build_tree_rows` orders and indents the nodes, `build_tree_line` draws one.

A chain of nodes without siblings stays flat; indentation begins after a fork, and the subtree that holds
HEAD comes first. Cost: O(nodes) for the rows, O(1) for a line, so a widget draws only the visible lines.
"""

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field
from enum import Enum, auto
from itertools import pairwise
from os.path import commonprefix

from rich.cells import cell_len

from app.text.safe_text import safe_line
from app.tui.glyphs import Glyphs
from app.tui.view.messages import awaited_words, build_verdict
from app.tui.view.short_names import short_names
from app.tui.view.spans import Line, Span, cut, fit, justify, width
from engine.conversations.branch_tree import BranchTree
from engine.conversations.tree import NodeKind, NodeStatus, NodeView, Verdict, awaits_agent

_COMPARED = 2000
"""Characters at the beginning of siblings that are compared."""
_SEEN = 6
"""Cells of what differs that make a row as good as another."""
_LONG_WORD = 16
"""Longest word that is shown from its beginning if it differs in its middle."""
_BRANCH_CELLS = 12
"""Most cells of a branch's name."""
_MODEL_CELLS = 10
"""Most cells of a model's short name."""
_ROLES = {
    NodeKind.USER: "$role-user",
    NodeKind.ASSISTANT: "$role-assistant",
}


class Residency(Enum):
    """How much of a branch's KV is in the pool."""

    RESIDENT = auto()
    PARTLY = auto()
    COLD = auto()


@dataclass(frozen=True, slots=True)
class TreeRow:
    """One node of the drawn tree.

    Attributes:
        indent: connectors before the node, one cell per character.
        begins_branch: whether the node has siblings.
        folded: number of nodes below it that are hidden because it is folded.
    """

    node_id: str
    indent: str = ""
    begins_branch: bool = False
    folded: int = 0


@dataclass(frozen=True, slots=True)
class TreeMarks:
    """What is drawn beside the nodes' own data.

    Attributes:
        head: the node that the conversation is open at.
        path: the nodes from the root to it.
        names: names of the branches that end at a node, by node.
        running: nodes whose answer runs.
        residency: by leaf, as far as known.
        marked: nodes that are marked for comparison.
        models: the short name of an answer's model, where the answers of the tree are by several.
    """

    head: str | None = None
    path: Collection[str] = frozenset()
    names: Mapping[str, Sequence[str]] = field(default_factory=dict)
    running: Collection[str] = frozenset()
    residency: Mapping[str, Residency] = field(default_factory=dict)
    marked: Collection[str] = frozenset()
    models: Mapping[str, str] = field(default_factory=dict)


def names_by_node(branches: Mapping[str, str]) -> dict[str, list[str]]:
    """The names of the branches that end at each node, from the node by name."""
    names: dict[str, list[str]] = {}
    for name, node_id in branches.items():
        names.setdefault(node_id, []).append(name)
    return names


def models_by_answer(tree: BranchTree) -> dict[str, str]:
    """The short name of each answer's model; none if all answers that are not pruned are by one."""
    models = {
        node.id: node.model
        for node in tree.nodes()
        if node.kind is NodeKind.ASSISTANT and node.model is not None
    }
    short = short_names(frozenset(models.values()))
    return {} if len(short) < 2 else {node_id: short[name] for node_id, name in models.items()}


def build_tree_rows(
    tree: BranchTree,
    glyphs: Glyphs,
    *,
    folded: Collection[str] = frozenset(),
    hoisted: str | None = None,
) -> list[TreeRow]:
    """All nodes that are not pruned, in the order in which they are drawn.

    Args:
        folded: nodes whose descendants are hidden.
        hoisted: the only node to show with its descendants; None shows the whole tree.
    """
    path = frozenset(tree.path(tree.head))
    rows: list[TreeRow] = []
    roots = tree.children(None) if hoisted is None else [hoisted]
    waiting = _items(roots, path, "", glyphs)
    while waiting:
        node_id, indent, below, begins_branch = waiting.pop()
        while True:  # the chain
            children = tree.children(node_id)
            hidden = sum(1 for _ in tree.subtree(node_id)) - 1 if node_id in folded else 0
            rows.append(TreeRow(node_id, indent, begins_branch, hidden))
            if hidden or len(children) != 1:
                break
            node_id, indent, begins_branch = children[0], below, False
        if not hidden:
            waiting += _items(children, path, below, glyphs)
    return rows


_Item = tuple[str, str, str, bool]
"""A node, the indent of its row, the indent of the rows below it, and whether it has siblings."""


def _items(
    children: Sequence[str], path: Collection[str], indent: str, glyphs: Glyphs
) -> list[_Item]:
    """The children of a node, the first one to draw at the end."""
    if len(children) < 2:
        return [(child, indent, indent, False) for child in children]
    ordered = sorted(children, key=lambda child: child not in path)  # stable
    items = [
        (child, f"{indent}{glyphs.fork} ", f"{indent}{glyphs.beside} ", True)
        for child in ordered[:-1]
    ]
    items.append((ordered[-1], f"{indent}{glyphs.last_fork} ", f"{indent}  ", True))
    return items[::-1]


def build_tree_line(
    row: TreeRow,
    node: NodeView,
    marks: TreeMarks,
    glyphs: Glyphs,
    cells: int,
    *,
    start: int = 0,
) -> Line:
    """One row: path mark, indent, author, flags and the beginning of the text; the branch on the right.

    Args:
        start: where the text differs from that of its siblings, see `differences`.
    """
    is_head, on_path = node.id == marks.head, node.id in marks.path
    mark = glyphs.current if is_head else glyphs.on_path if on_path else " "
    left = [
        Span(f"{mark} ", "bold $accent"),
        Span(_shortened(row.indent, cells // 2, glyphs), "$faint"),
    ]
    if node.id in marks.marked:
        left.append(Span(f"{glyphs.mark} ", "bold $warning"))
    left += _author(node, marks, glyphs)
    if node.rating:
        left.append(Span(f"{glyphs.bookmark} ", "$warning"))
    if node.label:
        left.append(Span(f"[{fit(safe_line(node.label), cells // 2)}] ", "$accent"))
    if node.id in marks.models:
        name = fit(safe_line(marks.models[node.id]), _MODEL_CELLS, glyphs.ellipsis)
        left.append(Span(f"{name} ", "$accent"))
    right = _branch_end(node, marks, glyphs)
    if row.folded:
        right = (Span(f"+{row.folded} ", "$muted"), *right)
    style = "bold" if is_head else "" if on_path else "$muted"
    room = max(0, cells - width(left) - width(right) - 1)
    text = _text(node, start, room, glyphs)
    return (
        justify([*left, Span(text, style)], right, cells)
        if right
        else cut([*left, Span(text, style)], cells)
    )


def _text(node: NodeView, start: int, room: int, glyphs: Glyphs) -> str:
    if awaits_agent(node) and not node.text:
        return fit(awaited_words(node), room, glyphs.ellipsis)
    # Cut before cleaning: an answer can be long, and the row shows a part of it.
    line = safe_line(node.text[: _COMPARED if start else 8 * room])
    if start + _SEEN > room and cell_len(line) > room:
        line = f"{glyphs.ellipsis}{line[start:]}"
    return fit(line, room, glyphs.ellipsis)


def differences(texts: Sequence[str]) -> list[int]:
    """For each text, as one line, where the word begins in which it differs from the most similar other one.

    Of a text that only ends earlier it is the last word; 0 if it equals one. Cost: sorting the texts.
    """
    lines = [safe_line(text[:_COMPARED]) for text in texts]
    ordered = sorted(range(len(lines)), key=lines.__getitem__)
    same = [0] * len(lines)
    for one, other in pairwise(ordered):
        common = len(commonprefix((lines[one], lines[other])))  # noqa: RUF071 - no paths
        if lines[one] == lines[other]:
            common = 0
        same[one], same[other] = max(same[one], common), max(same[other], common)
    return [_word_at(line, at) for line, at in zip(lines, same, strict=True)]


def _word_at(line: str, at: int) -> int:
    word = line.rfind(" ", 0, min(at + 1, len(line))) + 1
    return word if at - word <= _LONG_WORD else at - _LONG_WORD // 2


def _author(node: NodeView, marks: TreeMarks, glyphs: Glyphs) -> list[Span]:
    if node.id in marks.running or awaits_agent(node):
        return [Span(f"{glyphs.queued} ", "$status-busy")]
    if node.status is NodeStatus.ERROR:
        return [Span(f"{glyphs.failed} ", "$error")]
    if node.finish in tuple(Verdict):
        verdict = build_verdict(node, glyphs)
        return [Span(f"{verdict.text.split()[0]} ", verdict.style)]
    glyph = {NodeKind.USER: glyphs.user, NodeKind.ASSISTANT: glyphs.assistant}.get(
        node.kind, glyphs.system
    )
    return [Span(f"{glyph} ", _ROLES.get(node.kind, "$role-system"))]


def _branch_end(node: NodeView, marks: TreeMarks, glyphs: Glyphs) -> Line:
    """The branch that ends at the node, and how much of its KV is in the pool."""
    spans: list[Span] = []
    if node.id in marks.names:
        *others, name = marks.names[node.id]
        more = f" +{len(others)}" if others else ""
        shown = fit(safe_line(name), _BRANCH_CELLS - len(more), glyphs.ellipsis)
        spans.append(Span(shown + more, "$primary"))
    elif node.id == marks.head:
        spans.append(Span("HEAD", "$primary"))
    if node.id in marks.residency:
        residency = marks.residency[node.id]
        spans.append(Span(f" {_residency_glyph(residency, glyphs)}", _RESIDENCY_STYLE[residency]))
    return tuple(spans)


_RESIDENCY_STYLE = {
    Residency.RESIDENT: "$kv-own",
    Residency.PARTLY: "$kv-cached",
    Residency.COLD: "$faint",
}


def _residency_glyph(residency: Residency, glyphs: Glyphs) -> str:
    return {
        Residency.RESIDENT: glyphs.resident,
        Residency.PARTLY: glyphs.partly_resident,
        Residency.COLD: glyphs.cold,
    }[residency]


def _shortened(indent: str, cells: int, glyphs: Glyphs) -> str:
    """The end of an indent that takes more than `cells`, so that deep branches keep room for text."""
    if len(indent) <= cells:
        return indent
    return glyphs.ellipsis[:1] + indent[-(cells - 1) :]


def build_tree_heading(branches: int, hoisted: bool, glyphs: Glyphs, cells: int) -> Line:
    """`branches` and their number."""
    title = f"subtree {glyphs.separator} Z shows all" if hoisted else "branches"
    return justify([Span(f" {title}", "bold $muted")], [Span(f"{branches} ", "$muted")], cells)


def residency_of(prompt_tokens: int, prefill_tokens: int, block_size: int) -> Residency:
    """How much of a prompt's KV is in the pool, from the predicted cost of continuing it."""
    if prefill_tokens <= max(1, block_size):
        return Residency.RESIDENT
    return Residency.COLD if prefill_tokens >= prompt_tokens else Residency.PARTLY
