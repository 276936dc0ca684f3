"""`Examples`: the examples of the docstring or the task hold. One start of the sandbox, about 0.1 s."""

from collections.abc import Sequence

from agents.width.candidate import Outcome
from agents.width.examples import Example
from agents.width.probe_run import CallOutcome, Setting, run_calls
from agents.width.values import same_value


class Examples:
    """Fails with the first example that does not hold, and what came instead."""

    name = "examples"

    def __init__(self, setting: Setting, examples: Sequence[Example]) -> None:
        self._setting = setting
        self._examples = tuple(examples)

    @property
    def decides(self) -> bool:
        """Examples decide if there are any."""
        return bool(self._examples)

    async def judge(self, code: str) -> Outcome:
        """See `Check`."""
        if not self._examples:
            return Outcome(self.name, True, "There are no examples.", 1.0)
        calls = [one.call for one in self._examples]
        run = (await run_calls(self._setting, [code], calls))[0]
        if run.problem:
            where = f" in line {run.line}" if run.line else ""
            return Outcome(self.name, False, f"It cannot be loaded{where}: {run.problem}.")
        wrong = [
            said
            for one, outcome in zip(self._examples, run.outcomes, strict=True)
            if (said := difference(one, outcome))
        ]
        share = 1 - len(wrong) / len(calls)
        if wrong:
            more = f" ({len(wrong)} of {len(calls)} examples fail.)" if len(calls) > 1 else ""
            return Outcome(self.name, False, f"{wrong[0]}{more}", share)
        return Outcome(self.name, True, f"{len(calls)} of {len(calls)} examples hold.", 1.0)


def difference(example: Example, outcome: CallOutcome) -> str:
    """What is wrong with an outcome, in a sentence; empty if the example holds."""
    asked = example.call.shown or example.call.expression
    if example.raises:
        if outcome.error.rpartition(".")[2] == example.raises:
            return ""
        return f"{asked} should raise {example.raises}, but {_got(outcome)}."
    if example.printed is not None:
        shown = outcome.printed + (f"{outcome.shown}\n" if outcome.shown else "")
        if not outcome.error and _text(shown) == _text(example.printed):
            return ""
        return f"{asked} should print {example.printed.strip()[:200]}, but {_got(outcome)}."
    expected = outcome.expected
    if outcome.error or expected is None or outcome.value is None:
        return f"{asked} should be {example.call.expected}, but {_got(outcome)}."
    if same_value(outcome.value, expected):
        return ""
    return f"{asked} should be {example.call.expected}, but {_got(outcome)}."


def _text(text: str) -> str:
    return "\n".join(line.rstrip() for line in text.strip().splitlines())


def _got(outcome: CallOutcome) -> str:
    if outcome.error == "TooSlow":
        return "it does not end in time"
    if outcome.error:
        where = f" in line {outcome.line}" if outcome.line else ""
        said = f": {outcome.message[:200]}" if outcome.message else ""
        return f"it raises {outcome.error}{where}{said}"
    if outcome.value and outcome.value[0] == "NoneType":
        printed = outcome.printed.strip()
        return f"it prints {printed[:200]!r} and returns None" if printed else "it returns None"
    return f"it is {outcome.shown[:200]}"
