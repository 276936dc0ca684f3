"""The row of page links below a list."""

from pager import Page

GAP = "…"


def link_row(page: Page, around: int = 1) -> list[str]:
    """The links to show: first, last and the pages around the present one."""
    shown = {1, page.last}
    shown.update(range(page.number - around, page.number + around + 1))
    numbers = sorted(number for number in shown if 1 <= number <= page.last)
    row: list[str] = []
    before = 0
    for number in numbers:
        if number - before > 1:
            row.append(GAP)
        row.append(f"[{number}]" if number == page.number else str(number))
        before = number
    return row


def caption(page: Page, total: int, size: int) -> str:
    """Such as `items 11 to 20 of 57`."""
    if not total:
        return "no items"
    first = (page.number - 1) * size + 1
    return f"items {first} to {first + len(page.items) - 1} of {total}"
