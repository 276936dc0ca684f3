"""Names of pages in addresses."""

from collections.abc import Collection

from slugs.letters import plain


def slug(title: str, separator: str = "-", max_length: int | None = None) -> str:
    """A title in lower case, its words joined by a separator, cut at a word if it is too long."""
    words: list[str] = []
    word = ""
    for letter in plain(title.lower()):
        if letter.isalnum() and letter.isascii():
            word += letter
        elif letter != "'" and word:
            words.append(word)
            word = ""
    if word:
        words.append(word)
    if max_length is not None:
        while len(words) > 1 and len(separator.join(words)) > max_length:
            words.pop()
    return separator.join(words) or "page"


def unique_slug(title: str, taken: Collection[str]) -> str:
    """A slug that is not taken: the second one ends in `-2`."""
    base = slug(title)
    if base not in taken:
        return base
    number = 2
    while f"{base}-{number}" in taken:
        number += 1
    return f"{base}-{number}"


def breadcrumbs(path: str) -> list[tuple[str, str]]:
    """Name and address of each part of `docs/first-steps`."""
    found = []
    address = ""
    for part in path.strip("/").split("/"):
        address += f"/{part}"
        found.append((part.replace("-", " ").capitalize(), address))
    return found
