"""Replays a recorded shape of an agent's session against a server: the client's side of a conversation.

A trace says what the client adds before each request and how it writes the server's answers into its
history (`answer_back`). The answers are those of the server: their tokens are sampled by its model. Where a
trace needs a call of a tool, or a text, the sampling is constrained to that text, so that a small model goes
on as the trace does; it may still divide the text into other tokens than a tokenizer would.

A request is counted by its tokens. *Known* are those of its prompt that need not be computed: of everything
that was computed before if the client has only added to it, else of the longest common beginning with an
earlier request of the trace. The others are *new*.
"""

import asyncio
import json
from collections.abc import Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import httpx
import numpy as np

from app.server.calls.chat_form import chat_form
from app.server.calls.messages_request import translated
from app.server.calls.model import loaded_model
from app.server.calls.prompts import chat_prompt
from app.server.calls.responses_input import chat_input
from app.server.calls.responses_request import chat_request
from app.server.calls.responses_tools import read_tools
from app.server.calls.tool_calling import turn_tools
from app.server.process.context import ServerContext
from app.server.wire.messages_schemas import MessagesRequest
from app.server.wire.responses_schemas import ResponseRequest
from app.server.wire.schemas import ChatCompletionRequest
from engine.api.grammar import Grammar
from engine.text.common_prefix import common_prefix
from tests.server.live import Live
from tests.traces.answer_back import chat_message, messages_message, response_items

TRACES = Path(__file__).parent
ROOT = TRACES.parents[1]


@dataclass(frozen=True)
class Size:
    """How large the texts of a trace are made.

    Attributes:
        head_chars: characters of an agent's system prompt and tools, filled up with the project's documents.
        file_chars: largest number of characters of a file in a result.
        answer_tokens: largest number of tokens of an answer that is not constrained.
        free: whether the model writes texts as it likes.
    """

    head_chars: int
    file_chars: int
    answer_tokens: int
    free: bool


_PATHS = {
    "chat": "/v1/chat/completions",
    "messages": "/v1/messages?beta=true",
    "responses": "/v1/responses",
}
"""Where the requests of a client go, by the form that it speaks."""

SMALL = Size(0, 60, 64, free=False)
CHARS_PER_TOKEN = 4.1
"""Of the documents that fill the heads, with Qwen2.5's tokenizer."""


@dataclass(frozen=True)
class Cost:
    """The tokens of one request.

    Attributes:
        agent: which agent of the trace has sent it.
        prompt: of the prompt.
        new: of them, those that were not known.
        computed: those that the server has computed.
        one_slot, many_slots: those that a server computes which encodes all messages anew and keeps the
            sequence of the last request, or those of all requests.
    """

    agent: str
    prompt: int
    new: int
    computed: int
    one_slot: int
    many_slots: int


def load(name: str) -> dict[str, Any]:
    """A trace by the name of its file."""
    return json.loads((TRACES / f"{name}.json").read_text())


def names() -> list[str]:
    """The traces that exist."""
    return sorted(one.stem for one in TRACES.glob("*.json"))


class Agent:
    """One conversation of a client: its head and the messages so far."""

    def __init__(self, name: str, trace: Mapping[str, Any], size: Size) -> None:
        self.name = name
        self._trace = trace
        self._size = size
        one = trace["agents"][name]
        self.system: list[str] = list(one["system"])
        self.fields: dict[str, Any] = one.get("fields", {})
        self.tools = [{"name": tool, **trace["tools"][tool]} for tool in one.get("tools", [])]
        if one.get("fills_head"):
            self.system.append(self._filling())
        self.history: list[dict[str, Any]] = []
        self.calls: list[str] = []
        self.custom = set[str]()  # ids of the calls whose tool takes free text
        self.only_added = False

    def _filling(self) -> str:
        size = self._size.head_chars - len(json.dumps([self.system, self.tools]))
        text = "".join(one.read_text() for one in sorted((ROOT / "docs").glob("*.md")))
        return text[: max(size, 0)]

    @property
    def speaks_messages(self) -> bool:
        return self._trace["face"] == "messages"

    @property
    def speaks_responses(self) -> bool:
        return self._trace["face"] == "responses"

    def step(self, step: Mapping[str, Any]) -> None:
        """Write into the history what the client adds, or changes, before its request."""
        self.only_added = bool(self.history) and not {"system", "forgets", "clears"} & set(step)
        if "system" in step:
            self.system[: len(step["system"])] = step["system"]
        if step.get("forgets"):
            self.history = []
        if step.get("clears"):
            self._clear_results(step["clears"])
        for one in step["adds"]:
            self.history += self._added(one)

    def _added(self, one: Mapping[str, Any]) -> list[dict[str, Any]]:
        if "results" not in one:
            if self.speaks_responses:
                content = [{"type": "input_text", "text": self._content(one["content"])}]
                return [{"type": "message", "role": one["role"], "content": content}]
            return [{**one, "content": self._content(one["content"])}]
        # Each call has its result; a model may have made more or fewer calls than the trace has results.
        given = one["results"]
        texts = [self._text(given[at % len(given)]) for at in range(len(self.calls))]
        if self.speaks_responses:
            return [
                {
                    "type": f"{'custom_tool' if call in self.custom else 'function'}_call_output",
                    "call_id": call,
                    "output": text,
                }
                for call, text in zip(self.calls, texts, strict=True)
            ]
        if not self.speaks_messages:
            return [
                {"role": "tool", "tool_call_id": call, "content": text}
                for call, text in zip(self.calls, texts, strict=True)
            ]
        blocks = [
            {"type": "tool_result", "tool_use_id": call, "content": text}
            for call, text in zip(self.calls, texts, strict=True)
        ]
        beside = [{"type": "text", "text": text} for text in one.get("beside", [])]
        return [{"role": "user", "content": blocks + beside or "Go on."}]

    def _content(self, content: Any) -> Any:
        if isinstance(content, list):
            return [{**part, "text": self._text(part["text"])} for part in content]
        return self._text(content)

    def _text(self, text: Any) -> str:
        if isinstance(text, str):
            return text
        size = min(text["chars"], self._size.file_chars)
        return (ROOT / text["file"]).read_text()[:size]

    def _clear_results(self, kept: int) -> None:
        """Replace the contents of all results but the last ones, as clients do that save tokens."""
        results = [one for one in self.history if one["role"] == "tool"]
        for one in results[:-kept]:
            one["content"] = "[Old tool result content cleared]"

    def body(self, model: str, number: int, answer_tokens: int) -> dict[str, Any]:
        """The request."""
        common = {"model": model, "temperature": 0, "seed": number, **self.fields}
        if self.speaks_responses:
            return common | {
                "instructions": "\n\n".join(text for text in self.system if text),
                "input": self.history,
                "tools": [_response_tool(one) for one in self.tools],
                "max_output_tokens": answer_tokens,
            }
        common["max_tokens"] = min(answer_tokens, common.get("max_tokens", answer_tokens))
        if self.speaks_messages:
            tools = [
                {
                    "name": one["name"],
                    "description": one["description"],
                    "input_schema": one["parameters"],
                }
                for one in self.tools
            ]
            blocks = [{"type": "text", "text": text} for text in self.system if text]
            # Clients move these marks along; they have no part in the prompt.
            blocks[-1]["cache_control"] = {"type": "ephemeral"}
            return common | {"system": blocks, "messages": self.history, "tools": tools}
        system = [{"role": "system", "content": text} for text in self.system if text]
        tools = [{"type": "function", "function": one} for one in self.tools]
        offered = {"tools": tools} if tools else {}
        return common | {"messages": [*system, *self.history]} | offered

    def take_back(self, answer: dict[str, Any]) -> None:
        """Write the server's answer into the history as this client does."""
        how = self._trace["takes_back"]
        if self.speaks_responses:
            calls = [one for one in answer["output"] if "call_id" in one]
            self.calls = [one["call_id"] for one in calls]
            self.custom = {one["call_id"] for one in calls if one["type"] == "custom_tool_call"}
            self.history += response_items(answer["output"], how)
            return
        if self.speaks_messages:
            message = messages_message(answer, how)
            self.calls = [one["id"] for one in message["content"] if one["type"] == "tool_use"]
        else:
            message = chat_message(answer["choices"][0]["message"], how)
            self.calls = [one["id"] for one in message.get("tool_calls", ())]
        self.history.append(message)


def _response_tool(tool: dict[str, Any]) -> dict[str, Any]:
    """A tool in the form of the Responses API."""
    given = {name: value for name, value in tool.items() if name != "custom"}
    return {"type": "custom" if tool.get("custom") else "function", **given}


class Replay:
    """Replays one trace on a server in this process."""

    def __init__(self, trace: Mapping[str, Any], server: Live, size: Size) -> None:
        self._trace = trace
        self._context = server.context
        self._size = size
        self._http = httpx.Client(base_url=server.url, timeout=1800)
        self._agents: dict[str, Agent] = {}
        self._sequences: list[np.ndarray] = []  # prompt and answer of each request
        self._simulated: list[np.ndarray] = []
        self._last: dict[str, int] = {}  # tokens of the last prompt and answer of each agent
        self.costs: list[Cost] = []

    def run(self) -> list[Cost]:
        """Send all requests; what each has cost."""
        number = 0
        with _Recorded(self._context) as recorded, self._http:
            for entry in self._trace["steps"]:
                steps = entry if isinstance(entry, list) else [entry]
                asked = []
                for step in steps:
                    number += 1
                    agent = self._agent(step)
                    agent.step(step)
                    recorded.wanted[number] = self._wanted(step)
                    body = agent.body(
                        self._context.engine.config.name, number, self._size.answer_tokens
                    )
                    asked.append((agent, json.loads(json.dumps(body))))
                with ThreadPoolExecutor(len(asked)) as pool:
                    answers = list(pool.map(self._post, asked))
                for (agent, body), answer in zip(asked, answers, strict=True):
                    self._count(agent, body, *recorded.requests.pop(agent.name))
                    agent.take_back(answer)
        return self.costs

    def _agent(self, step: Mapping[str, Any]) -> Agent:
        name = step["agent"]
        if name not in self._agents:
            self._agents[name] = Agent(name, self._trace, self._size)
        return self._agents[name]

    def _wanted(self, step: Mapping[str, Any]) -> str | None:
        """The text to which the answer is constrained; None for any."""
        calls = [json.dumps({"name": name, "arguments": given}) for name, given in step["calls"]]
        if not calls and self._size.free:
            return None
        written = "".join(f"\n<tool_call>\n{one}\n</tool_call>" for one in calls)
        return (step.get("text", "") + written).strip() + step.get("tail", "")

    def _post(self, asked: tuple[Agent, dict[str, Any]]) -> dict[str, Any]:
        agent, body = asked
        path = _PATHS[self._trace["face"]]
        headers = {"x-session-id": agent.name}
        response = self._http.post(path, json=body, headers=headers)
        if response.status_code != 200:
            raise AssertionError(response.text)
        return response.json()

    def _count(
        self,
        agent: Agent,
        body: dict[str, Any],
        prompt: Sequence[int],
        answer: Sequence[int],
        cached: int,
    ) -> None:
        ids = np.asarray(prompt, np.int32)
        known = max((common_prefix(ids, one) for one in self._sequences), default=0)
        if agent.only_added:
            known = max(known, self._last[agent.name])
        sequence = np.concatenate([ids, np.asarray(answer, np.int32)])
        anew = np.asarray(asyncio.run(self._rendered(agent, body)), np.int32)
        before = [common_prefix(anew, one) for one in self._simulated]
        self.costs.append(
            Cost(
                agent.name,
                len(ids),
                len(ids) - min(known, len(ids)),
                len(ids) - cached,
                len(anew) - (before[-1] if before else 0),
                len(anew) - max(before, default=0),
            )
        )
        self._sequences.append(sequence)
        self._simulated.append(np.concatenate([anew, np.asarray(answer, np.int32)]))
        self._last[agent.name] = len(sequence)

    async def _rendered(self, agent: Agent, body: dict[str, Any]) -> Sequence[int]:
        """The prompt of a request with all messages encoded anew."""
        if agent.speaks_messages:
            chat = translated(MessagesRequest.model_validate(body), body["model"]).body
        elif agent.speaks_responses:
            response, tools_of = ResponseRequest.model_validate(body), read_tools(body["tools"])
            chat = chat_request(
                response, chat_input(response.instructions, [], body["input"]), tools_of
            )
        else:
            chat = ChatCompletionRequest.model_validate(body)
        model = loaded_model(self._context, None)
        tools = turn_tools(self._context, chat, model)
        offered = () if tools is None else tools.for_template
        return (await chat_prompt(model, chat.messages, chat_form(chat), tools=offered)).ids


class _Recorded:
    """Constrains answers of a server's engine, and records the tokens of its requests, while entered.

    Attributes:
        wanted: by the seed of a request, the text of its answer.
        requests: by agent, the prompt, the answer and the number of cached tokens of its last request.
    """

    def __init__(self, context: ServerContext) -> None:
        self._context = context
        self.wanted: dict[int, str | None] = {}
        self.requests: dict[str, tuple[Sequence[int], Sequence[int], int]] = {}

    def __enter__(self) -> "_Recorded":
        engine, sessions = self._context.engine, self._context.sessions
        self._submit, self._add = engine.submit_all, sessions.add

        def submit(requests: Any) -> Any:
            return self._submit([self._constrained(one) for one in requests])

        def add(name: str, prompt: Any, answer: Any, cached: int) -> Any:
            self.requests[name] = (tuple(prompt), tuple(answer), cached)
            return self._add(name, prompt, answer, cached)

        engine.submit_all, sessions.add = submit, add  # type: ignore[method-assign]
        return self

    def __exit__(self, *_: object) -> None:
        engine, sessions = self._context.engine, self._context.sessions
        engine.submit_all, sessions.add = self._submit, self._add  # type: ignore[method-assign]

    def _constrained(self, request: Any) -> Any:
        text = self.wanted[request.sampling.seed]
        if text is None:
            return request
        sampling = replace(
            request.sampling, grammar=Grammar.choice([text]), max_tokens=len(text.encode()) + 8
        )
        return replace(request, sampling=sampling)
