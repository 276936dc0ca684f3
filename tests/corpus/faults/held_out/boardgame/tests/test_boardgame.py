import pytest

from boardgame.grid import Grid
from boardgame.moves import drop, neighbours, turned, wins


def grid_of(*rows):
    grid = Grid(len(rows), len(rows[0]))
    for row, text in enumerate(rows):
        for column, mark in enumerate(text):
            grid.put(row, column, mark)
    return grid


def test_put():
    grid = Grid(2, 2)
    grid.put(1, 0, "x")
    assert str(grid) == "..\nx."
    with pytest.raises(IndexError):
        grid.put(2, 0, "x")


def test_turned_square():
    assert str(turned(grid_of("ab", "cd"))) == "ca\ndb"


def test_turned_oblong():
    assert str(turned(grid_of("abc", "def"))) == "da\neb\nfc"


def test_neighbours():
    assert neighbours(Grid(2, 3), 0, 0) == [(0, 1), (1, 0)]


def test_wins():
    assert wins(grid_of("x...", ".x..", "..x.", "...x"), "x")
    assert not wins(grid_of("xxx.", "...."), "x")


def test_drop():
    grid = Grid(2, 1)
    assert [drop(grid, 0, "x"), drop(grid, 0, "o")] == [1, 0]
    with pytest.raises(ValueError):
        drop(grid, 0, "x")
