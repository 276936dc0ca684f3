from guestbook.book import GuestBook
from guestbook.entries import new_entry


def test_three_in_a_row():
    book = GuestBook()
    texts = ["#a #b", "none", "#b"]
    assert [book.sign("x", text).tags for text in texts] == [["a", "b"], [], ["b"]]
    assert book.tag_cloud() == [("b", 2), ("a", 1)]


def test_given_tags_are_used():
    assert new_entry("x", "#b", ["a"]).tags == ["a", "b"]
    assert new_entry("x", "plain", tags=[]).tags == []
    assert new_entry("x", "plain").tags == []
