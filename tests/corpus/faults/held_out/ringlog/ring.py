"""A log that keeps the newest lines only."""

from collections.abc import Iterator


class RingLog:
    def __init__(self, capacity: int) -> None:
        if capacity < 1:
            raise ValueError("the log holds one line at least")
        self._lines: list[str] = []
        self._capacity = capacity
        self._next = 0
        self.num_dropped = 0

    def write(self, line: str) -> None:
        if len(self._lines) < self._capacity:
            self._lines.append(line)
            return
        self._lines[self._next] = line
        self._next = (self._next + 1) % self._capacity
        self.num_dropped += 1

    def __len__(self) -> int:
        return len(self._lines)

    def __iter__(self) -> Iterator[str]:
        """The lines, the oldest first."""
        yield from self._lines[self._next :]
        yield from self._lines[: self._next]

    def tail(self, count: int) -> list[str]:
        """The newest lines, at most `count`, the oldest of them first."""
        lines = list(self)
        return lines[len(lines) - count :] if count < len(lines) else lines
