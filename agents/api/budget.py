"""`Budget` and the `BudgetMeter` that a run reserves from before each step and settles after it."""

from dataclasses import dataclass

from agents.api.errors import BudgetExhausted


@dataclass(frozen=True, slots=True)
class Budget:
    """Upper bounds of a run.

    Attributes:
        tokens: tokens computed for the run, prompt and output; cached prompt tokens are free.
        seconds: wall time.
        tools: tool calls.
    """

    tokens: int = 8192
    seconds: float = 300.0
    tools: int = 40

    def tightened(self, *, tokens: int | None = None, seconds: float | None = None) -> "Budget":
        """This budget with lower bounds where given."""
        return Budget(
            tokens=self.tokens if tokens is None else min(self.tokens, tokens),
            seconds=self.seconds if seconds is None else min(self.seconds, seconds),
            tools=self.tools,
        )


class BudgetMeter:
    """What a run has used of its budget. One thread at a time."""

    def __init__(self, budget: Budget, *, started: float) -> None:
        """Start at `started`, on the clock that `seconds_left` is asked with."""
        self.budget = budget
        self.tokens_used = 0
        self.tools_used = 0
        self._reserved = 0
        self._started = started
        self._stopped: float | None = None

    @property
    def tokens_left(self) -> int:
        """Tokens neither used nor reserved."""
        return self.budget.tokens - self.tokens_used - self._reserved

    @property
    def tools_left(self) -> int:
        """Tool calls that are left."""
        return self.budget.tools - self.tools_used

    def seconds_left(self, now: float) -> float:
        """Seconds until the deadline, negative after it; they stay the same while the clock is stopped."""
        return (
            self._started + self.budget.seconds - (now if self._stopped is None else self._stopped)
        )

    @property
    def is_stopped(self) -> bool:
        """Whether the clock is stopped."""
        return self._stopped is not None

    def stop_clock(self, now: float) -> None:
        """From now on no time counts, until `start_clock`."""
        if self._stopped is None:
            self._stopped = now

    def start_clock(self, now: float) -> None:
        """Time counts again."""
        if self._stopped is not None:
            self._started += now - self._stopped
            self._stopped = None

    def reserve_tokens(self, tokens: int) -> None:
        """Set tokens aside for a step.

        Raises:
            BudgetExhausted: fewer are left.
        """
        if tokens > self.tokens_left:
            raise BudgetExhausted(
                f"The step needs {tokens} tokens and {max(0, self.tokens_left)} of the budget of "
                f"{self.budget.tokens} are left."
            )
        self._reserved += tokens

    def settle_tokens(self, reserved: int, used: int) -> None:
        """Replace a reservation by what the step used."""
        self._reserved -= reserved
        self.tokens_used += used

    def use_tool(self) -> None:
        """Count one tool call.

        Raises:
            BudgetExhausted: none is left.
        """
        if self.tools_used >= self.budget.tools:
            raise BudgetExhausted(f"The budget of {self.budget.tools} tool calls is used up.")
        self.tools_used += 1
