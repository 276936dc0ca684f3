"""Finding and numbering headings."""

from outline.tree import Heading


def find(headings: list[Heading], title: str) -> Heading | None:
    """The first heading with a title, wherever it is."""
    for heading in headings:
        if heading.title == title:
            return heading
        below = find(heading.children, title)
        if below is not None:
            return below
    return None


def path_to(headings: list[Heading], title: str) -> list[str]:
    """The titles from the top to a heading; empty if there is none."""
    for heading in headings:
        if heading.title == title:
            return [title]
        below = path_to(heading.children, title)
        if below:
            return [heading.title, *below]
    return []


def numbered(headings: list[Heading], prefix: str = "") -> list[str]:
    lines = []
    for number, heading in enumerate(headings, 1):
        own = f"{prefix}{number}"
        lines.append(f"{own} {heading.title}")
        lines += numbered(heading.children, f"{own}.")
    return lines


def depth(headings: list[Heading]) -> int:
    return max((1 + depth(heading.children) for heading in headings), default=0)
