"""The book itself."""

from collections import Counter

from guestbook.entries import Entry, new_entry, num_entries


class GuestBook:
    def __init__(self) -> None:
        self.entries: list[Entry] = []

    def sign(self, author: str, text: str) -> Entry:
        if not text.strip():
            raise ValueError("an entry needs a text")
        entry = new_entry(author, text)
        self.entries.append(entry)
        return entry

    def reply(self, to: Entry, author: str, text: str) -> Entry:
        entry = new_entry(author, text)
        to.replies.append(entry)
        return entry

    def tag_cloud(self) -> list[tuple[str, int]]:
        """Tags with their counts, the most frequent first, then by name."""
        counts = Counter(tag for entry in self.entries for tag in entry.tags)
        return sorted(counts.items(), key=lambda pair: (-pair[1], pair[0]))

    def __len__(self) -> int:
        return sum(num_entries(entry) for entry in self.entries)
