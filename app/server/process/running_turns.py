"""`RunningTurn`: a chat answer that is being written, as those see it who steer it from another request."""

from typing import Protocol


class RunningTurn(Protocol):
    """One running answer."""

    @property
    def request_ids(self) -> list[str]:
        """The engine's ids of its choices; none before they begin."""
        ...

    async def end_reasoning(self) -> bool:
        """End its reasoning; False if it does not reason now."""
        ...
