import pytest

from guestbook.book import GuestBook
from guestbook.entries import new_entry


def test_tags_of_a_text():
    assert new_entry("ann", "What a #Day! #day #sun.", ["trip"]).tags == ["trip", "day", "sun"]


def test_entries_have_their_own_tags():
    book = GuestBook()
    book.sign("ann", "lovely #garden")
    second = book.sign("bob", "good #coffee")
    assert second.tags == ["coffee"]


def test_empty_text():
    with pytest.raises(ValueError):
        GuestBook().sign("ann", "  ")


def test_length_counts_replies():
    book = GuestBook()
    entry = book.sign("ann", "hello")
    book.reply(entry, "bob", "hi")
    assert len(book) == 2
