from links import caption, link_row
from pager import num_pages, page_of


def test_first_page():
    page = page_of(list(range(25)), 1)
    assert list(page.items) == list(range(10))
    assert page.has_next
    assert not page.has_previous


def test_last_page_is_short():
    page = page_of(list(range(25)), 3)
    assert list(page.items) == [20, 21, 22, 23, 24]
    assert not page.has_next


def test_num_pages():
    assert num_pages(0, 10) == 1
    assert num_pages(10, 10) == 1
    assert num_pages(11, 10) == 2


def test_caption():
    items = list(range(57))
    assert caption(page_of(items, 2), 57, 10) == "items 11 to 20 of 57"


def test_links():
    page = page_of(list(range(95)), 5)
    assert link_row(page) == ["1", "…", "4", "[5]", "6", "…", "10"]
