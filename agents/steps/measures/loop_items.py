"""The suite `loops`: questions whose answers only tools can give, with the agents' steps and grammars."""

from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any

from pydantic import BaseModel, ConfigDict, Field

from agents.api.agent_spec import AgentSpec
from agents.api.errors import BudgetExhausted, InvalidTask
from agents.model.layout import system_text
from agents.steps.measures.bench import Bench, Suite, each
from agents.steps.measures.measured_run import MeasuredRun
from agents.steps.react import ReactLoop
from agents.tools.tool import Effect, Tool, ToolContext, ToolOutput
from agents.workspace.workspace import Workspace

_CARD = "Find out with the tools what the task asks, then give the final answer."
_MAX_TURNS = 5
_CODES = {"vault": 4821, "garage": 307, "archive": 9556}
_HOLDERS = {"vault": "Maria", "garage": "Tom", "archive": "Ingrid"}
_PHONES = {"Maria": 5512, "Tom": 5590, "Ingrid": 5537}
_FILES = {
    "settings.py": "DEBUG = False\nTIMEOUT = 45\nRETRIES = 3\n",
    "users.py": "import store\n\n\ndef load_user(name):\n    return store.get(name)\n",
    "store.py": "def get(key):\n    return None\n\n\ndef put(key, value):\n    pass\n",
    "server.log": "INFO start\nERROR disk full\nINFO retry\nERROR no route\nERROR timeout\n",
}


class _Arguments(BaseModel):
    model_config = ConfigDict(extra="forbid")


class _Room(_Arguments):
    room: str = Field(max_length=20)


class _Person(_Arguments):
    name: str = Field(max_length=20)


class _Path(_Arguments):
    path: str = Field(max_length=40)


class _Pattern(_Arguments):
    pattern: str = Field(min_length=1, max_length=40)


def _tool(name: str, does: str, arguments: type[BaseModel], answer: Callable[[Any], str]) -> Tool:
    async def call(given: Any, context: ToolContext) -> ToolOutput:
        return ToolOutput(answer(given))

    return Tool(name, does, arguments, frozenset({Effect.READ}), call)


def _known(table: Mapping[str, Any], key: str, sentence: str) -> str:
    key = key.strip().removeprefix("the ")
    return sentence.format(key, table[key]) if key in table else f"{key!r} is not known."


def _grep(given: Any) -> str:
    found = [
        f"{path}:{number}: {line}"
        for path, text in _FILES.items()
        for number, line in enumerate(text.splitlines(), 1)
        if given.pattern in line
    ]
    return "\n".join(found) or "No line contains it."


_LOOK_UP = _tool(
    "look_up",
    "Tells the code of a room.",
    _Room,
    lambda given: _known(_CODES, given.room, "The code of the {} is {}."),
)
_HOLDER = _tool(
    "holder",
    "Tells who has the key of a room.",
    _Room,
    lambda given: _known(_HOLDERS, given.room, "The key of the {} is with {}."),
)
_PHONE = _tool(
    "phone",
    "Tells a person's phone number.",
    _Person,
    lambda given: _known(_PHONES, given.name, "The number of {} is {}."),
)
_READ = _tool(
    "read", "Shows a file.", _Path, lambda given: _FILES.get(given.path, "There is no such file.")
)
_GREP = _tool("grep", "Finds the lines that contain a text.", _Pattern, _grep)


def _answer(**member: Any) -> dict[str, Any]:
    return {"type": "object", "properties": member}


_NUMBER = {"type": "integer", "minimum": 0, "maximum": 99_999}
_CODE = _answer(code=_NUMBER)
_NAME = _answer(name={"enum": ["nobody", *_PHONES]})


@dataclass(frozen=True, slots=True)
class LoopItem:
    """A question, the tools for it, and its only right answer."""

    task: str
    tools: tuple[Tool, ...]
    schema: Mapping[str, Any]
    right: Mapping[str, Any]


ITEMS = (
    LoopItem("What is the code of the vault?", (_LOOK_UP,), _CODE, {"code": 4821}),
    LoopItem("What is the code of the garage?", (_LOOK_UP, _HOLDER), _CODE, {"code": 307}),
    LoopItem("Who has the key of the archive?", (_LOOK_UP, _HOLDER), _NAME, {"name": "Ingrid"}),
    LoopItem(
        "What is the phone number of the person who has the key of the vault?",
        (_HOLDER, _PHONE),
        _answer(number=_NUMBER),
        {"number": 5512},
    ),
    LoopItem(
        "What is the value of TIMEOUT in settings.py?",
        (_READ, _GREP),
        _answer(value=_NUMBER),
        {"value": 45},
    ),
    LoopItem(
        "In which file is the function load_user defined?",
        (_READ, _GREP),
        _answer(path={"enum": sorted(_FILES)}),
        {"path": "users.py"},
    ),
    LoopItem(
        "How many lines of server.log contain ERROR?",
        (_READ, _GREP),
        _answer(lines=_NUMBER),
        {"lines": 3},
    ),
    LoopItem(
        "Which room has the larger code, the garage or the archive?",
        (_LOOK_UP,),
        _answer(room={"enum": ["vault", "garage", "archive"]}),
        {"room": "archive"},
    ),
    LoopItem(
        "Is there a code for the attic?",
        (_LOOK_UP,),
        _answer(found={"type": "boolean"}),
        {"found": False},
    ),
)
_SHORT = 5


async def _measure(items: Sequence[LoopItem], bench: Bench) -> dict[str, bool]:
    tests: list[Callable[[], Awaitable[bool]]] = [partial(_finishes, bench, item) for item in items]
    return await each(bench, [item.task for item in items], tests, at_once=4)


async def _finishes(bench: Bench, item: LoopItem) -> bool:
    workspace = Workspace.of_texts(_FILES if _READ in item.tools else {})
    names = tuple(tool.name for tool in item.tools)
    spec = AgentSpec("measured", "execution", "", _CARD, names, (), "Answer", max_turns=_MAX_TURNS)
    run = MeasuredRun(spec, item.tools)
    loop = ReactLoop(bench.session, bench.layout, run, workspace, item.schema)
    shared = bench.layout.shared(task=f"Task: {item.task}", system=system_text(item.tools))
    try:
        return dict(await loop.answer_of(shared, _CARD)) == dict(item.right)
    except (BudgetExhausted, InvalidTask):
        return False


LOOPS = Suite("loops", "loops of tools", len(ITEMS), partial(_measure, ITEMS))
SHORT_LOOPS = Suite("loops", "loops of tools", _SHORT, partial(_measure, ITEMS[:_SHORT]))
