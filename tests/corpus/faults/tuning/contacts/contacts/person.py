"""People in an address book."""

from dataclasses import dataclass


@dataclass
class Person:
    name: str
    phone: str | None = None
    email: str | None = None
    birthday: str | None = None


def from_row(row: dict[str, str]) -> Person:
    """A person from a row of a table; empty cells are unknown."""

    def cell(name: str) -> str | None:
        text = row.get(name, "").strip()
        return text or None

    name = cell("name")
    if name is None:
        raise ValueError("a person needs a name")
    return Person(name, cell("phone"), cell("email"), cell("birthday"))
