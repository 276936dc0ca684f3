"""`Check`: judges one candidate. Given to `widen` from cheap to dear."""

from typing import Protocol

from agents.width.candidate import Outcome


class Check(Protocol):
    """One check.

    Attributes:
        name: a word or two for the screen, such as `examples`.
        decides: whether passing it shows that the code does what was asked, such as examples and tests do;
            that it parses, or defines the right name, shows nothing. It is asked again after each candidate.
    """

    @property
    def name(self) -> str:
        """See the class."""
        ...

    @property
    def decides(self) -> bool:
        """See the class."""
        ...

    async def judge(self, code: str) -> Outcome:
        """Judge the code of a candidate that passed the checks before. `seconds` is filled in by the caller.

        What the code does must not escape: it is run in the sandbox, with limits. A failure of the check
        itself (no sandbox) raises an `AgentError`.
        """
        ...
