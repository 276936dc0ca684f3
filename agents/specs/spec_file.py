"""Reading one specification file: YAML front-matter, then the role card. Unknown fields are errors.

The agent's key is the file's name, and its category the folder's, unless fields say otherwise.
"""

from pathlib import Path
from typing import Annotated, Any, Literal, get_args

import yaml
from pydantic import BaseModel, ConfigDict, Field, ValidationError

from agents.api.agent_spec import (
    AgentSpec,
    Capability,
    Category,
    MemoryScope,
    PermissionMode,
    PlanWords,
)
from agents.api.budget import Budget
from agents.api.errors import InvalidSpec

MAX_CARD_CHARS = 480
"""About 80 tokens and some; `lint` counts the model's tokens where a tokenizer is at hand."""

MAX_FILE_BYTES = 65_536
FINDINGS = "Findings"
_LOADER: Any = getattr(yaml, "CSafeLoader", yaml.SafeLoader)
"""The one in C is ten times as fast: 51 files take 4 ms of it."""

Names = list[Annotated[str, Field(pattern=r"^[A-Za-z0-9_.-]{1,64}$")]]


class _BudgetFields(BaseModel):
    model_config = ConfigDict(extra="forbid")
    tokens: int = Field(default=Budget().tokens, ge=0, le=10_000_000)
    seconds: float = Field(default=Budget().seconds, gt=0, le=86_400)
    tools: int = Field(default=Budget().tools, ge=0, le=10_000)


class _PlanFields(BaseModel):
    model_config = ConfigDict(extra="forbid")
    verbs: str = ""
    nouns: str = ""
    product: str = "findings"
    done_when: str = ""
    consumes: bool = False


class _FrontMatter(BaseModel):
    """The fields of a specification; the names with capitals are those of the sub-agent convention.

    Of the convention's `model`, `background` and `isolation` only the value that holds is accepted.
    """

    model_config = ConfigDict(extra="forbid")

    name: str = Field(pattern=r"^[a-z][a-z0-9_]{0,63}$")
    description: str = Field(min_length=1, max_length=300)
    category: Category
    tools: Names = Field(default_factory=list)
    disallowedTools: Names = Field(default_factory=list)  # noqa: N815
    detectors: Names = Field(default_factory=list)
    output_schema: str = Field(default=FINDINGS, pattern=r"^[A-Z][A-Za-z0-9]{0,63}$")
    checks: str = Field(default="", pattern=r"^[a-z]{0,64}$")
    plan: _PlanFields = Field(default_factory=_PlanFields)
    requires: Capability = Capability.LABELS
    score_questions: Names = Field(default_factory=list)
    permissionMode: PermissionMode = "auto"  # noqa: N815
    maxTurns: int = Field(default=5, ge=1, le=50)  # noqa: N815
    mcpServers: Names = Field(default_factory=list)  # noqa: N815
    memory: MemoryScope = "none"
    model: Literal["inherit"] = "inherit"
    background: Literal[False] = False
    isolation: Literal["none"] = "none"
    budget: _BudgetFields = Field(default_factory=_BudgetFields)
    sampling: dict[str, float] = Field(default_factory=dict)


def read_spec(path: Path) -> AgentSpec:
    """One agent.

    Raises:
        InvalidSpec: the file cannot be read, or a field is missing, unknown or out of range.
    """
    try:
        data = path.read_bytes()
    except OSError as error:
        raise InvalidSpec(f"{path}: {error.strerror}.") from error
    if len(data) > MAX_FILE_BYTES:
        raise InvalidSpec(f"{path}: the file is larger than {MAX_FILE_BYTES >> 10} kB.")
    return parse_spec(data.decode("utf-8", "replace"), path)


def parse_spec(text: str, path: Path) -> AgentSpec:
    """The agent that a file's text specifies; `path` is used in messages.

    Raises:
        InvalidSpec: as `read_spec`.
    """
    front, card = _split(text, path)
    if isinstance(front, dict):
        front = _defaults(Path(path)) | front
    try:
        fields = _FrontMatter.model_validate(front)
    except ValidationError as error:
        raise InvalidSpec(f"{path}: {_first_error(error)}.") from error
    if not card:
        raise InvalidSpec(f"{path}: the role card after the front-matter is empty.")
    if len(card) > MAX_CARD_CHARS:
        raise InvalidSpec(
            f"{path}: the role card has {len(card)} characters; at most {MAX_CARD_CHARS} are allowed."
        )
    return AgentSpec(
        key=fields.name,
        category=fields.category,
        description=fields.description,
        card=card,
        tools=tuple(tool for tool in fields.tools if tool not in fields.disallowedTools),
        detectors=tuple(fields.detectors),
        output_schema=fields.output_schema,
        requires=fields.requires,
        score_questions=tuple(fields.score_questions),
        permission_mode=fields.permissionMode,
        max_turns=fields.maxTurns,
        mcp_servers=tuple(fields.mcpServers),
        disallowed_tools=tuple(fields.disallowedTools),
        memory=fields.memory,
        budget=Budget(**fields.budget.model_dump()),
        sampling=dict(fields.sampling),
        checks=fields.checks,
        plan=PlanWords(
            tuple(fields.plan.verbs.split()),
            tuple(fields.plan.nouns.split()),
            fields.plan.product,
            fields.plan.done_when or _done_when(fields),
            fields.plan.consumes,
        ),
        path=path,
    )


def _defaults(path: Path) -> dict[str, str]:
    """What the file's place says."""
    category = path.parent.name
    return {"name": path.stem} | ({"category": category} if category in get_args(Category) else {})


def _done_when(fields: _FrontMatter) -> str:
    if fields.requires is Capability.WRITE:
        return "the diff applies and the tests pass"
    return "all findings have a file and a line" if fields.output_schema == FINDINGS else ""


def _split(text: str, path: Path) -> tuple[Any, str]:
    head, opening, rest = text.partition("---\n")
    front, closing, card = rest.partition("\n---\n")
    if head.strip() or not opening or not closing:
        raise InvalidSpec(
            f"{path}: the file must begin with front-matter between two lines of `---`."
        )
    try:
        return yaml.load(front, Loader=_LOADER), card.strip()  # noqa: S506 - a safe loader
    except (yaml.YAMLError, RecursionError, ValueError) as error:
        reason = " ".join(str(error).split())
        raise InvalidSpec(f"{path}: the front-matter is not YAML ({reason:.200}).") from error


def _first_error(error: ValidationError) -> str:
    first = error.errors(include_url=False)[0]
    where = ".".join(str(part) for part in first["loc"]) or "front-matter"
    if first["type"] == "extra_forbidden":
        return f"there is no field {where}"
    return f"{where}: {first['msg'][0].lower()}{first['msg'][1:]}"
