"""The range [start, end) of mounted messages of a long path: at most 60, moved by tens."""

from dataclasses import dataclass

LIMIT = 60
FIRST = 20
"""Messages mounted when a conversation is opened; mounting one takes about 10 ms."""
STEP = 10


@dataclass(frozen=True, slots=True)
class Window:
    """Messages [start, end) of `total`.

    Attributes:
        start: first mounted message.
        end: one past the last mounted message.
        total: messages of the path.
    """

    start: int
    end: int
    total: int

    @classmethod
    def at_end(cls, total: int) -> "Window":
        """The newest messages."""
        return cls(max(0, total - FIRST), total, total)

    @property
    def follows(self) -> bool:
        """Whether the newest message is mounted."""
        return self.end == self.total

    def earlier(self) -> "Window":
        """Ten messages further up; beyond `LIMIT`, the newest ones are unmounted."""
        start = max(0, self.start - STEP)
        return Window(start, min(self.end, start + LIMIT), self.total)

    def later(self) -> "Window":
        """Ten messages further down; beyond `LIMIT`, the oldest ones are unmounted."""
        end = min(self.total, self.end + STEP)
        return Window(max(self.start, end - LIMIT), end, self.total)

    def grown(self, total: int) -> "Window":
        """The window after messages were added: one at the end is extended, another does not move."""
        if not self.follows:
            return Window(self.start, self.end, total)
        return Window(max(self.start, total - LIMIT), total, total)
