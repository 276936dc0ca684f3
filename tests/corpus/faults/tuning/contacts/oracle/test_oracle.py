from contacts.book import AddressBook
from contacts.numbers import normalized
from contacts.person import Person


def test_unknown_stays_unknown():
    assert normalized(None) is None
    assert normalized(None, "1") is None


def test_two_without_number_are_no_duplicates():
    book = AddressBook([Person("A"), Person("B"), Person("C", "030 1")])
    assert book.duplicates() == []
    assert book.by_phone("030 2") is None
    assert book.by_phone("030 1").name == "C"


def test_countries():
    assert normalized("0 44 1", "41") == "+41441"
    assert normalized("441", "41") == "+41441"
    assert AddressBook([Person("ann"), Person("Abe")]).initials() == {"A": 2}
