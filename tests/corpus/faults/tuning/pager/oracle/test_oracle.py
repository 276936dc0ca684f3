import pytest

from links import caption, link_row
from pager import num_pages, page_of


@pytest.mark.parametrize("size", [1, 2, 3, 7, 10])
@pytest.mark.parametrize("total", [0, 1, 2, 9, 10, 11, 20, 21])
def test_pages_cover_everything_once(total, size):
    items = list(range(total))
    last = num_pages(total, size)
    seen = []
    for number in range(1, last + 1):
        page = page_of(items, number, size)
        assert page.last == last
        assert len(page.items) <= size
        seen += page.items
    assert seen == items


def test_bad_size():
    with pytest.raises(ValueError):
        num_pages(3, 0)


def test_row_at_the_ends():
    items = list(range(40))
    assert link_row(page_of(items, 1)) == ["[1]", "2", "…", "4"]
    assert link_row(page_of(items, 9)) == ["1", "…", "3", "[4]"]
    assert caption(page_of(items, 4), 40, 10) == "items 31 to 40 of 40"
