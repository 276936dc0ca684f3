import pytest

from boardgame.grid import Grid
from boardgame.moves import turned


def numbered(height, width):
    grid = Grid(height, width)
    for row in range(height):
        for column in range(width):
            grid.put(row, column, chr(65 + row * width + column))
    return grid


@pytest.mark.parametrize(("height", "width"), [(1, 1), (1, 4), (4, 1), (2, 3), (3, 2), (3, 5), (4, 4)])
def test_turned(height, width):
    grid = numbered(height, width)
    once = turned(grid)
    assert (once.height, once.width) == (width, height)
    assert once.row(0) == grid.column(0)[::-1]
    assert str(turned(turned(turned(once)))) == str(grid)
    assert once.column(height - 1) == grid.row(0)
