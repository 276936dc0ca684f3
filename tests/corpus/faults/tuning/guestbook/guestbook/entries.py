"""Entries of a guest book."""

from dataclasses import dataclass, field


@dataclass
class Entry:
    author: str
    text: str
    tags: list[str] = field(default_factory=list)
    replies: list["Entry"] = field(default_factory=list)


def new_entry(author: str, text: str, tags: list[str] | None = None) -> Entry:
    """An entry with the tags that are given and those in its text (`#nice`), each once."""
    found = [] if tags is None else tags
    for word in text.split():
        if word.startswith("#") and len(word) > 1:
            tag = word[1:].lower().rstrip(".,!?")
            if tag not in found:
                found.append(tag)
    return Entry(author.strip(), text.strip(), found)


def num_entries(entry: Entry) -> int:
    """The entry and all replies below it."""
    return 1 + sum(num_entries(reply) for reply in entry.replies)
