"""The candidates of a run in its trace: a row for each while it is written and checked; then the change."""

from agents.reports.candidates import CandidateReport, WidthReport
from app.text.safe_text import safe_line
from app.tui.glyphs import Glyphs
from app.tui.view.edit_lines import build_diff
from app.tui.view.spans import Line, Span, cut
from app.tui.view.wrapping import wrap_cells

_INDENT = "    "
_MAX_DIFF_ROWS = 60
_MAX_DETAIL_ROWS = 3


def width_summary(report: WidthReport) -> str:
    """The row of the entry."""
    count = len(report.candidates)
    if report.chosen is not None:
        decided = f", decided by {report.decided_by}" if report.decided_by else ""
        return f"{report.chosen + 1} of {count} chosen{decided}"
    if report.finished:
        return f"none of {count} chosen: {report.reason}"
    goal = f": {report.goal}" if report.goal else ""
    return f"{count} of at most {report.most} written{goal}"


def width_style(report: WidthReport) -> str:
    """Of that row."""
    if not report.finished:
        return "$accent"
    return "$error" if report.chosen is None else "$success" if report.verified else "$warning"


def build_candidates(
    report: WidthReport, glyphs: Glyphs, cells: int, *, over: bool = False
) -> list[Line]:
    """A row for each candidate with the check that decided; then why one was chosen, and its change.

    Args:
        over: whether the run has ended, perhaps before a choice.
    """
    lines: list[Line] = []
    for one in report.candidates:
        lines += _candidate(report, one, glyphs, cells, over=over)
    if over and not report.finished:
        row = (Span(f"{_INDENT}{glyphs.stopped} ended before one was chosen", "$warning"),)
        lines.append(cut(row, cells))
    elif not report.finished and len(report.candidates) < report.most:
        row = (
            Span(f"{_INDENT}{glyphs.queued} {len(report.candidates) + 1}  being written", "$faint"),
        )
        lines.append(cut(row, cells))
    if report.reason:
        lines += _wrapped(report.reason, "$muted", cells, len(_INDENT))
    if report.stopped:
        others = "one other was" if report.stopped == 1 else f"{report.stopped} others were"
        lines += _wrapped(f"{others} stopped then", "$faint", cells, len(_INDENT))
    if report.diff:
        rows = build_diff(report.diff, max(1, cells - len(_INDENT)))
        lines += [(Span(_INDENT), *row) for row in rows[:_MAX_DIFF_ROWS]]
        if len(rows) > _MAX_DIFF_ROWS:
            left = f"{_INDENT}{glyphs.ellipsis} {len(rows) - _MAX_DIFF_ROWS} more rows"
            lines.append((Span(left, "$faint"),))
    return lines


def _candidate(
    report: WidthReport, one: CandidateReport, glyphs: Glyphs, cells: int, *, over: bool
) -> list[Line]:
    failed = report.failed_check(one)
    passed = [each for each in report.checks_of(one) if each.passed]
    chosen = one.number == report.chosen
    if failed is not None:
        mark, style = glyphs.failed, "$error"
        words = f"fails {failed.name}"
    elif not report.is_checked(one) and not over:
        mark, style = glyphs.queued, "$accent"
        after = [each for each in report.checks if each != "agreement"][len(passed) :]
        words = f"checking {after[0]}" if after else "checking"
    elif passed:
        mark, style = glyphs.passed, "$success"
        words = f"passes {', '.join(each.name for each in passed)}"
    else:
        mark, style = glyphs.stopped, "$muted"
        words = "not checked"
    written = "greedy" if not one.temperature else f"t={one.temperature:g}"
    same = "" if one.same_as is None else f", equals {one.same_as + 1}"
    repaired = ", a repair" if one.round else ""
    head = (
        Span(_INDENT),
        Span(f"{mark} {one.number + 1}", f"bold {style}"),
        Span(f"  {words}", style),
        Span("  chosen" if chosen else "", "bold $success"),
        Span(f"  {written}, {one.tokens} tok{same}{repaired}", "$faint"),
    )
    lines = [cut(head, cells)]
    decided = failed or next((each for each in reversed(passed) if each.detail), None)
    if decided is not None and decided.detail and one.same_as is None:
        lines += _wrapped(decided.detail, "$muted", cells, len(_INDENT) + 4)[:_MAX_DETAIL_ROWS]
    return lines


def _wrapped(text: str, style: str, cells: int, indent: int) -> list[Line]:
    rows = wrap_cells(safe_line(text), max(1, cells - indent))
    return [(Span(" " * indent), Span(row, style)) for row in rows]
