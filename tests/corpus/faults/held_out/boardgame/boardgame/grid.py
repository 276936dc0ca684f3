"""A rectangular board; fields are named by row and column, counted from 0."""


class Grid:
    def __init__(self, height: int, width: int, fill: str = ".") -> None:
        if height < 1 or width < 1:
            raise ValueError("a board has one field at least")
        self.height = height
        self.width = width
        self._rows = [[fill] * width for _ in range(height)]

    def inside(self, row: int, column: int) -> bool:
        return 0 <= row < self.height and 0 <= column < self.width

    def get(self, row: int, column: int) -> str:
        return self._rows[row][column]

    def put(self, row: int, column: int, mark: str) -> None:
        if not self.inside(row, column):
            raise IndexError(f"no field {row}, {column}")
        self._rows[row][column] = mark

    def column(self, number: int) -> list[str]:
        return [row[number] for row in self._rows]

    def row(self, number: int) -> list[str]:
        return list(self._rows[number])

    def __str__(self) -> str:
        return "\n".join("".join(row) for row in self._rows)
