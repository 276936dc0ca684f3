"""`EqualCalls`: calls that were made before, so that a model does not go round in circles.

Small models answer a tool's result with the same call, again and again. A call that equals an earlier one
is answered from that one's result while nothing was written or executed since, unless its tool may answer
differently each time; the third call in a row of equal results is not made.
"""

from dataclasses import dataclass, replace

from agents.tools.tool import Effect, Tool

MAX_EQUAL = 2
"""Equal calls with equal results; one more is not made."""
_CHANGES = frozenset({Effect.WRITE, Effect.EXECUTE})


@dataclass(frozen=True, slots=True)
class MadeCall:
    """A call that was made.

    Attributes:
        text: its result.
        failed, denied: as of its result.
        count: how often it had this result in a row.
    """

    text: str
    failed: bool
    denied: bool
    count: int = 1


class EqualCalls:
    """The calls of one loop by their canonical form (`agents.steps.repeats.canonical_call`)."""

    def __init__(self) -> None:
        self._made: dict[bytes, MadeCall] = {}

    def is_exhausted(self, call: bytes) -> bool:
        """Whether the call was made so often that it is not to be made again."""
        made = self._made.get(call)
        return made is not None and made.count >= MAX_EQUAL

    def repeated(self, tool: Tool, call: bytes) -> MadeCall | None:
        """The earlier call whose result answers this one, counted once more; None if it is to be made."""
        made = self._made.get(call)
        if made is None or not (tool.idempotent or made.denied):
            return None
        made = self._made[call] = replace(made, count=made.count + 1)
        return made

    def add(self, tool: Tool, call: bytes, made: MadeCall) -> None:
        """Note a call that was made. What writes or executes may have changed every other result."""
        before = self._made.get(call)
        if before is not None and before.text == made.text:
            made = replace(made, count=before.count + 1)
        if tool.effects & _CHANGES and not made.denied:
            self._made.clear()
        self._made[call] = made
