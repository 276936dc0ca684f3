"""The books of a small library."""

from dataclasses import dataclass, field


@dataclass
class Book:
    isbn: str
    title: str
    author: str
    copies: int = 1
    lent: int = 0

    @property
    def available(self) -> int:
        return self.copies - self.lent


@dataclass
class Catalogue:
    books: dict[str, Book] = field(default_factory=dict)

    def add(self, book: Book) -> None:
        known = self.books.get(book.isbn)
        if known is None:
            self.books[book.isbn] = book
        else:
            known.copies += book.copies

    def find(self, words: str) -> list[Book]:
        wanted = words.lower().split()
        hits = [
            book
            for book in self.books.values()
            if all(word in f"{book.title} {book.author}".lower() for word in wanted)
        ]
        return sorted(hits, key=lambda book: book.title)
