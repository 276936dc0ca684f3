import pytest

from contacts.book import AddressBook
from contacts.numbers import normalized, pretty
from contacts.person import Person, from_row


def test_from_row():
    assert from_row({"name": "Ann", "phone": " "}) == Person("Ann")
    with pytest.raises(ValueError):
        from_row({"phone": "1"})


def test_normalized():
    assert normalized("030 / 12 34") == "+49301234"
    assert normalized("0041 44 1") == "+41441"
    assert normalized("+1 (212) 5") == "+12125"


def test_pretty():
    assert pretty("+49301234") == "+493 012 34"


def test_by_phone():
    book = AddressBook([Person("Ann"), Person("Bob", "030 12")])
    assert book.by_phone("+49 30 12").name == "Bob"
    assert book.by_phone("030 99") is None


def test_duplicates():
    book = AddressBook([Person("A", "030 1"), Person("B", "+49 30 1"), Person("C", email="c@x")])
    assert [(one.name, other.name) for one, other in book.duplicates()] == [("A", "B")]
