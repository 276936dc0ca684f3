"""Which messages of a long path are mounted: a half-open range [start, end) of at most 60, moved by tens."""

from dataclasses import dataclass

LIMIT = 60
FIRST = 20
"""Messages mounted when a conversation is opened: a message takes some 10 ms to mount."""
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
        """Ten messages further up; the newest leave when more than `LIMIT` would be mounted."""
        start = max(0, self.start - STEP)
        return Window(start, min(self.end, start + LIMIT), self.total)

    def later(self) -> "Window":
        """Ten messages further down; the oldest leave when more than `LIMIT` would be mounted."""
        end = min(self.total, self.end + STEP)
        return Window(max(self.start, end - LIMIT), end, self.total)

    def grown(self, total: int) -> "Window":
        """After messages were added: a window at the end follows them, another stays."""
        if not self.follows:
            return Window(self.start, self.end, total)
        return Window(max(self.start, total - LIMIT), total, total)
