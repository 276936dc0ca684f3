"""Reading pipelines from YAML. Unknown members are errors."""

from pathlib import Path
from typing import Annotated

import yaml
from pydantic import BaseModel, ConfigDict, Field, ValidationError

from agents.api.errors import InvalidSpec, UnknownAgent
from agents.api.finding import Severity
from agents.pipelines.pipeline import Condition, Node, Pipeline
from agents.text.near import near_matches

MAX_FILE_BYTES = 65_536
Name = Annotated[str, Field(pattern=r"^[a-z][a-z0-9_-]{0,63}$")]


class _Strict(BaseModel):
    model_config = ConfigDict(extra="forbid")


class _ConditionFields(_Strict):
    node: Name
    findings: Severity | None = None
    failed: bool | None = None
    label: str | None = None
    passed: bool | None = None


class _NodeFields(_Strict):
    agent: str = ""
    reduce: str | None = Field(default=None, max_length=64)
    pipeline: str = Field(default="", max_length=200)
    needs: list[Name] = Field(default_factory=list)
    task: str = Field(default="", max_length=4_000)
    document: str = Field(default="", max_length=4_000)
    when: _ConditionFields | None = None
    timeout: float = Field(default=600.0, gt=0, le=86_400)
    retries: int = Field(default=0, ge=0, le=5)
    required: bool = True


class _BudgetFields(_Strict):
    tokens: int = Field(default=100_000, ge=0)
    seconds: float = Field(default=1_800.0, gt=0, le=86_400)


class _PipelineFields(_Strict):
    name: Name
    description: str = Field(min_length=1, max_length=300)
    nodes: dict[Name, _NodeFields] = Field(min_length=1)
    output: Name
    concurrency: int = Field(default=6, ge=1, le=51)
    budget: _BudgetFields = Field(default_factory=_BudgetFields)


def read_pipeline(path: Path) -> Pipeline:
    """One pipeline; `check_pipeline` checks its graph.

    Raises:
        InvalidSpec: the file cannot be read, or a member is missing, unknown or out of range.
    """
    try:
        data = path.read_bytes()
    except OSError as error:
        raise InvalidSpec(f"{path}: {error.strerror}.") from error
    return parse_pipeline(data.decode("utf-8", "replace"), str(path))


def parse_pipeline(text: str, where: str) -> Pipeline:
    """The pipeline of a YAML text; `where` is used in messages.

    Raises:
        InvalidSpec: as `read_pipeline`.
    """
    if len(text) > MAX_FILE_BYTES:
        raise InvalidSpec(f"{where}: the file is larger than {MAX_FILE_BYTES >> 10} kB.")
    try:
        fields = _PipelineFields.model_validate(yaml.safe_load(text))
    except ValidationError as error:
        first = error.errors(include_url=False)[0]
        member = ".".join(str(part) for part in first["loc"]) or "the file"
        unknown = first["type"] == "extra_forbidden"
        reason = f"there is no member {member}" if unknown else f"{member}: {first['msg']}"
        raise InvalidSpec(f"{where}: {reason}.") from error
    except (yaml.YAMLError, RecursionError, ValueError) as error:
        reason = " ".join(str(error).split())
        raise InvalidSpec(f"{where}: this is not YAML ({reason:.200}).") from error
    nodes = {name: _node(name, node) for name, node in fields.nodes.items()}
    return Pipeline(
        name=fields.name,
        description=fields.description,
        nodes=nodes,
        output=fields.output,
        concurrency=fields.concurrency,
        tokens=fields.budget.tokens,
        seconds=fields.budget.seconds,
        source=text,
    )


def _node(name: str, fields: _NodeFields) -> Node:
    when = None if fields.when is None else Condition(**dict(fields.when))
    return Node(
        name=name,
        agent=fields.agent,
        reduce=fields.reduce,
        pipeline=fields.pipeline,
        needs=tuple(fields.needs),
        task=fields.task,
        document=fields.document,
        when=when,
        timeout_s=fields.timeout,
        retries=fields.retries,
        required=fields.required,
    )


def load_pipelines(folders: list[Path]) -> tuple[dict[str, Pipeline], list[str]]:
    """Pipelines by name from folders, later ones replacing earlier ones; and problems of files left out."""
    found: dict[str, Pipeline] = {}
    problems: list[str] = []
    for folder in folders:
        for path in sorted(folder.glob("*.yaml")) if folder.is_dir() else ():
            try:
                pipeline = read_pipeline(path)
            except InvalidSpec as error:
                problems.append(str(error))
            else:
                found[pipeline.name] = pipeline
    return found, problems


def find_pipeline(name: str, pipelines: dict[str, Pipeline]) -> Pipeline:
    """The pipeline with this name.

    Raises:
        UnknownAgent: there is none; near matches are named.
    """
    if name in pipelines:
        return pipelines[name]
    near = near_matches(name.replace("-", "_"), [one.replace("-", "_") for one in pipelines])
    hint = (
        f"Did you mean {near[0].replace('_', '-')}?"
        if near
        else "`pravaha pipelines list` shows all."
    )
    raise UnknownAgent(f"There is no pipeline {name!r:.60}. {hint}")
