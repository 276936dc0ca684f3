"""The breadcrumb of the open branch: its name, and which sibling it takes at each fork."""

from app.text.safe_text import safe_line
from app.tui.glyphs import Glyphs
from app.tui.view.spans import Line, Span, fit, width
from engine.conversations.branch_tree import BranchTree

_NAME_CELLS = 24


def build_crumbs(tree: BranchTree, glyphs: Glyphs, cells: int) -> Line:
    """`main › 2/3 › 1/2`; a click on a part selects its message. Empty without branches.

    The last forks are kept if not all fit.
    """
    if tree.head is None or not tree.branched:
        return ()
    name = tree.branch_of(tree.head) or "unnamed"
    first = Span(fit(safe_line(name), _NAME_CELLS, glyphs.ellipsis), "bold $primary")
    between = Span(f" {glyphs.crumb} ", "$faint")
    parts: list[Span] = []
    for node_id in tree.path(tree.head):
        siblings = tree.siblings(node_id)
        if len(siblings) > 1:
            number = siblings.index(node_id) + 1
            action = f"app.perform_later('go','to',{node_id!r})"
            parts.append(Span(f"{number}/{len(siblings)}", "$muted", action))
    dropped = False
    while parts and width([first]) + sum(width([between, part]) for part in parts) + 4 > cells:
        parts.pop(0)
        dropped = True
    more = [between, Span(glyphs.ellipsis, "$faint")] if dropped else []
    return (first, *more, *(span for part in parts for span in (between, part)))
