"""Rows of the approvals pane and of the dialog that answers one."""

import json
from collections.abc import Sequence

from agents.runs.approvals import ApprovalRequest
from agents.tools.tool import Effect
from app.text.safe_text import safe_line, safe_text
from app.tui.glyphs import Glyphs
from app.tui.view.edit_lines import build_diff
from app.tui.view.spans import Line, Span, cut, justify
from app.tui.view.wrapping import wrap_cells

_EFFECTS = {
    Effect.READ: "reads files",
    Effect.WRITE: "changes files",
    Effect.EXECUTE: "runs programs",
    Effect.EGRESS: "sends data out",
}


def build_approvals(
    pending: Sequence[ApprovalRequest],
    cursor: int,
    glyphs: Glyphs,
    cells: int,
    keys: str,
    *,
    now: float,
) -> list[Line]:
    """The approvals pane: one row for each call that waits, and when it will be denied.

    Args:
        pending: oldest first.
        cursor: index of the selected row.
        glyphs: the terminal's glyphs.
        cells: width.
        keys: what the keys do.
        now: Unix seconds.
    """
    head = f"{len(pending)} waiting" if pending else "no call waits"
    lines: list[Line] = [
        justify(
            [Span("Approvals", "bold $primary"), Span(f"  {head}", "$muted")],
            [Span(keys if pending else "", "$faint")],
            cells,
        ),
        (),
    ]
    for number, one in enumerate(pending):
        left = (
            Span(f"{glyphs.bar_selected} " if number == cursor else "  ", "$accent"),
            Span(f"{safe_line(one.agent)} ", "bold"),
            Span(f"{safe_line(one.tool)} ", "bold $warning"),
            Span(f"({effects_of(one)}) ", "$muted"),
            Span(safe_line(one.target or one.arguments), "$foreground"),
        )
        lines.append(justify(left, [Span(expiry(one, now), "$faint")], cells))
    return lines


def effects_of(request: ApprovalRequest) -> str:
    """What the tool may do, in words."""
    return ", ".join(_EFFECTS[effect] for effect in sorted(request.effects))


def expiry(request: ApprovalRequest, now: float) -> str:
    """When an unanswered request is denied, such as `denied in 4:32`; empty if that is not known."""
    if not request.expires_at:
        return ""
    minutes, seconds = divmod(max(0, round(request.expires_at - now)), 60)
    return f"denied in {minutes}:{seconds:02d}"


def build_approval(request: ApprovalRequest, cells: int) -> list[Line]:
    """The text of the dialog: who wants to do what, where and why it is asked; the diff, or the arguments."""
    head = (
        Span(safe_line(request.agent), "bold $primary"),
        Span(" wants to call "),
        Span(safe_line(request.tool), "bold $warning"),
        Span(f" ({effects_of(request)})", "$muted"),
    )
    lines: list[Line] = [
        cut(head, cells),
        cut((Span("in ", "$muted"), Span(safe_line(request.folder))), cells),
    ]
    if request.reason:
        rows = wrap_cells(f"asked because {safe_line(request.reason)}", cells)
        lines += [(Span(row, "$muted"),) for row in rows]
    lines.append(())
    if request.above_diff or not request.diff:
        lines += _arguments(request.above_diff, cells)
    return [*lines, *build_diff(request.diff, cells)] if request.diff else lines


def _arguments(text: str, cells: int) -> list[Line]:
    """Each argument's name, and its exact value behind a bar, so that no value looks like another name."""
    try:
        given = json.loads(text)
    except ValueError:
        given = None
    if not isinstance(given, dict):
        return _value(text, cells)
    lines: list[Line] = []
    for name, value in given.items():
        lines.append(cut((Span(safe_line(str(name)), "$muted"),), cells))
        lines += _value(
            value if isinstance(value, str) else json.dumps(value, ensure_ascii=False), cells
        )
    return lines


def _value(text: str, cells: int) -> list[Line]:
    rows = wrap_cells(safe_text(text), max(1, cells - 4))
    return [(Span("  | ", "$faint"), Span(row)) for row in rows]


def pattern_of(request: ApprovalRequest) -> str:
    """What "always" would allow, such as `write security-review.md`."""
    return f"{safe_line(request.tool)} {safe_line(request.pattern)}"


def build_approval_keys(request: ApprovalRequest, cells: int) -> list[Line]:
    """The keys that answer, a row each; the one for always names its exact pattern."""
    words = (
        ("y", "allow once"),
        ("t", f"allow in this conversation: {pattern_of(request)}"),
        ("n", "deny, with a reason"),
        ("esc", "later"),
    )
    return [
        cut((Span(f"{key:>3}", "bold $accent"), Span(f"  {word}", "$muted")), cells)
        for key, word in words
    ]
