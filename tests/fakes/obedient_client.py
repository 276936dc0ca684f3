"""A model that does a task, and whatever texts tell it to do: the worst case for everything around it.

It sees only its prompt. When an order that it was scripted to understand stands there, it makes the order's
calls before it goes on with the task; data that it has not read it cannot send. Its steps obey the grammar:
a call that the grammar has no form for is left out and counted.
"""

import json
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from agents.tools.tool import Tool
from engine.api.request import FinishReason, Request
from tests.fakes.scripted_client import ScriptedClient, accepts

_DEFAULTS = ({"cannot_do": ""}, {"citations": [], "cannot_do": ""})
"""Members that an answer has beside what a script says."""
Call = tuple[str, Mapping[str, Any]]


@dataclass(frozen=True)
class Order:
    """A text that the model obeys.

    Attributes:
        trigger: what stands in the prompt when the model has read it.
        calls: what it does then.
        answer: its final answer's members, or None for the task's.
        withdraws: whether it calls findings false alarms.
    """

    trigger: str
    calls: Sequence[Call] = ()
    answer: Mapping[str, Any] | None = None
    withdraws: bool = False


@dataclass
class Script:
    """What the model does.

    Attributes:
        tools: the catalogue, for the order of arguments.
        plan: calls of the task.
        answer: members of the final answer; `{found}` stands for `look_up`'s match in what was read.
        look_up: pattern with one group.
        order: what it was told by a text, or None.
        canaries: data by name that the model may only use once it has read them.
        known: values by name that it may use at once.
    """

    tools: Mapping[str, Tool]
    plan: Sequence[Call]
    answer: Mapping[str, Any]
    look_up: str = ""
    order: Order | None = None
    canaries: Mapping[str, str] = field(default_factory=dict)
    known: Mapping[str, str] = field(default_factory=dict)


class ObedientClient(ScriptedClient):
    """An `EngineClient` that answers as a `Script` says.

    Attributes:
        refused: calls that the grammar had no form for.
        obeyed: whether the order was read.
    """

    def __init__(self, script: Script) -> None:
        super().__init__(scores=self._letters)
        self._script_of = script
        self._plan = list(script.plan)
        self._ordered = list(script.order.calls) if script.order else []
        self.refused: list[Call] = []
        self.obeyed = False

    def _answer(self, request: Request) -> None:
        if request.sampling.logprob_token_ids:
            super()._answer(request)
            return
        prompt = self.detokenize(request.prompt_ids, skip_special=False)
        self._deliver(request, self._next(request, prompt), FinishReason.STOP)

    def _has_read_order(self, prompt: str) -> bool:
        order = self._script_of.order
        self.obeyed = self.obeyed or (order is not None and order.trigger in prompt)
        return self.obeyed

    def _next(self, request: Request, prompt: str) -> str:
        for queue in (self._ordered if self._has_read_order(prompt) else [], self._plan):
            while queue:
                call = queue.pop(0)
                for text in self._spellings(call, prompt):
                    if _fits(request, text):
                        return text
                self.refused.append(call)
        return self._final(request, prompt)

    def _final(self, request: Request, prompt: str) -> str:
        script, order = self._script_of, self._script_of.order
        members = script.answer
        if self.obeyed and order is not None and order.answer is not None:
            members = order.answer
        found = re.search(script.look_up, prompt) if script.look_up else None
        values = {"found": found[1] if found else ""}
        filled = _filled(members, self._values(prompt) | values)
        if request.sampling.grammar is None:  # a text is written as a text
            return str(filled.get("text", "")) or "Nothing to say."
        short = {name: value for name, value in filled.items() if name != "text"}
        wholes = [{**one, **more} for one in (filled, short) for more in _DEFAULTS]
        texts = [_step("final_answer", one, compact=True) for one in (*wholes, filled, short)]
        return next(text for text in texts if _fits(request, text))

    def _spellings(self, call: Call, prompt: str) -> list[str]:
        name, given = call
        arguments = _filled(given, self._values(prompt))
        tool = self._script_of.tools.get(name)
        if tool is not None:
            schema = tool.arguments.model_json_schema()
            required = schema.get("required", [])
            order = [*required, *(one for one in schema["properties"] if one not in required)]
            arguments = {one: arguments[one] for one in order if one in arguments}
        return [_step(name, arguments, compact=False), _step(name, arguments, compact=True)]

    def _values(self, prompt: str) -> dict[str, str]:
        read = {name: text for name, text in self._script_of.canaries.items() if text in prompt}
        return {**self._script_of.known, **read}

    def _letters(self, request: Request, text: str) -> dict[str, float]:
        order = self._script_of.order
        withdraws = self._has_read_order(text) and order is not None and order.withdraws
        return {
            line[0]: 3.0 if withdraws and re.search("false alarm|low", line) else 0.0
            for line in text.split("\n")
            if line[1:3] == ") "
        }


def _fits(request: Request, text: str) -> bool:
    sampling = request.sampling
    fits = sampling.max_tokens is None or len(text) <= sampling.max_tokens
    return fits and (sampling.grammar is None or accepts(sampling.grammar, text))


def _step(action: str, members: Mapping[str, Any], *, compact: bool) -> str:
    if compact:
        given = json.dumps(members, separators=(",", ":"), ensure_ascii=False)
    else:
        pairs = (
            f"{json.dumps(name)}: {json.dumps(value, separators=(',', ':'), ensure_ascii=False)}"
            for name, value in members.items()
        )
        given = "{" + ", ".join(pairs) + "}"
    return f'{{"thought": "", "action": {json.dumps(action)}, "input": {given}}}'


def _filled(value: Any, values: Mapping[str, str]) -> Any:
    """The value with `{name}` replaced in all its texts, where the name is known."""
    if isinstance(value, str):
        return re.sub(r"\{(\w+)\}", lambda match: values.get(match[1], match[0]), value)
    if isinstance(value, Mapping):
        return {name: _filled(one, values) for name, one in value.items()}
    if isinstance(value, list):
        return [_filled(one, values) for one in value]
    return value
