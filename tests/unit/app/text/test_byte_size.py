"""Sizes in bytes: parsing and formatting."""

import pytest

from app.text.byte_size import format_size, parse_size


@pytest.mark.parametrize(
    ("text", "size"),
    [("0", 0), ("512MiB", 512 << 20), ("2GB", 2 * 10**9), ("1.5 g", 3 << 29), ("7b", 7)],
)
def test_sizes_are_read(text, size):
    assert parse_size(text) == size


@pytest.mark.parametrize("text", ["", "MiB", "-1", "1 XB", "1e3", "1 2"])
def test_what_is_no_size_is_refused(text):
    with pytest.raises(ValueError, match="512MiB"):
        parse_size(text)


def test_sizes_are_shown_with_three_digits():
    shown = [format_size(n) for n in (5, 1536, 98_362_432, 2**40)]
    assert shown == ["5 B", "1.50 KiB", "93.8 MiB", "1024 GiB"]
