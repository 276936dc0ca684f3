"""`EqualCalls`: calls that were made before, so that a model does not go round in circles.

Small models answer a tool's result with the same call, again and again. A call that equals an earlier one
is answered from that one's result while nothing was written or executed since, unless its tool may answer
differently each time. A call that brings what an earlier one has brought is a repeated one.
"""

from dataclasses import dataclass, replace

from agents.tools.tool import Effect, Tool

_CHANGES = frozenset({Effect.WRITE, Effect.EXECUTE})


@dataclass(frozen=True, slots=True)
class MadeCall:
    """A call that was made.

    Attributes:
        text: its result.
        failed, denied: as of its result.
        repeats: whether an equal call has brought the same before.
    """

    text: str
    failed: bool
    denied: bool
    repeats: bool = False


class EqualCalls:
    """The calls of one loop by their canonical form (`agents.steps.repeats.canonical_call`)."""

    def __init__(self) -> None:
        self._made: dict[bytes, MadeCall] = {}

    def repeated(self, tool: Tool, call: bytes) -> MadeCall | None:
        """The earlier call whose result answers this one; None if it is to be made."""
        made = self._made.get(call)
        if made is None or not (tool.idempotent or made.denied):
            return None
        return replace(made, repeats=True)

    def add(self, tool: Tool, call: bytes, made: MadeCall) -> MadeCall:
        """Note a call that was made, and whether it repeats one.

        What writes or executes may have changed every other result.
        """
        before = self._made.get(call)
        if tool.effects & _CHANGES and not made.denied:
            self._made.clear()
        self._made[call] = made
        return replace(made, repeats=before is not None and before.text == made.text)

    def add_unfit(self, call: bytes, made: MadeCall) -> MadeCall:
        """Note a call that no tool can take."""
        before = self._made.get(call)
        self._made[call] = made
        return replace(made, repeats=before is not None)
