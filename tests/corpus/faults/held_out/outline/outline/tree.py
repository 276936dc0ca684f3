"""A document's outline: headings in a tree."""

from dataclasses import dataclass, field


@dataclass
class Heading:
    title: str
    level: int
    children: list["Heading"] = field(default_factory=list)


def parse(text: str) -> list[Heading]:
    """The headings of a text in which `##` begins one of the second level."""
    roots: list[Heading] = []
    open_ones: list[Heading] = []
    for line in text.splitlines():
        marks = len(line) - len(line.lstrip("#"))
        if not marks or not line[marks:].startswith(" "):
            continue
        heading = Heading(line[marks:].strip(), marks)
        while open_ones and open_ones[-1].level >= marks:
            open_ones.pop()
        (open_ones[-1].children if open_ones else roots).append(heading)
        open_ones.append(heading)
    return roots
