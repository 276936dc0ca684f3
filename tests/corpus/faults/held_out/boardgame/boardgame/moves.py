"""Rules: turning the board, neighbours, four in a row."""

from boardgame.grid import Grid

DIRECTIONS = ((0, 1), (1, 0), (1, 1), (1, -1))


def turned(grid: Grid) -> Grid:
    """The board turned by a quarter to the right."""
    result = Grid(grid.width, grid.height)
    for row in range(grid.height):
        for column in range(grid.width):
            result.put(column, grid.height - 1 - row, grid.get(row, column))
    return result


def neighbours(grid: Grid, row: int, column: int) -> list[tuple[int, int]]:
    around = [(row - 1, column), (row, column - 1), (row, column + 1), (row + 1, column)]
    return [place for place in around if grid.inside(*place)]


def wins(grid: Grid, mark: str, length: int = 4) -> bool:
    """Whether a mark has a line of some length."""
    for row in range(grid.height):
        for column in range(grid.width):
            for down, right in DIRECTIONS:
                places = [(row + down * at, column + right * at) for at in range(length)]
                if all(grid.inside(*one) and grid.get(*one) == mark for one in places):
                    return True
    return False


def drop(grid: Grid, column: int, mark: str) -> int:
    """Let a mark fall into a column; the row where it comes to rest."""
    for row in reversed(range(grid.height)):
        if grid.get(row, column) == ".":
            grid.put(row, column, mark)
            return row
    raise ValueError(f"column {column} is full")
