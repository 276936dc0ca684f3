"""Small tools for tests of steps: read and grep over a workspace, edit, and one that counts."""

from pydantic import BaseModel, ConfigDict, Field

from agents.tools.tool import Effect, Tool, ToolContext, ToolOutput
from agents.workspace.workspace import Workspace


class _Arguments(BaseModel):
    model_config = ConfigDict(extra="forbid")


class ReadArguments(_Arguments):
    path: str = Field(max_length=300)
    start: int = Field(default=1, ge=1)
    end: int | None = Field(default=None, ge=1)


class GrepArguments(_Arguments):
    pattern: str = Field(min_length=1, max_length=40)
    path: str | None = None


class EditArguments(_Arguments):
    path: str = Field(max_length=40)
    text: str = Field(max_length=200)


class NoArguments(_Arguments):
    pass


def step_tools(workspace: Workspace) -> tuple[Tool, ...]:
    """read, grep, edit and status over a workspace."""

    async def read(arguments: ReadArguments, context: ToolContext) -> ToolOutput:
        file = workspace.get(arguments.path)
        if file is None:
            return ToolOutput("There is no such file.", failed=True)
        return ToolOutput("\n".join(file.lines[arguments.start - 1 : arguments.end]))

    async def grep(arguments: GrepArguments, context: ToolContext) -> ToolOutput:
        found = tuple(file.path for file in workspace if arguments.pattern in file.text)
        return ToolOutput("\n".join(found) or "nothing", choices={"path": found})

    async def edit(arguments: EditArguments, context: ToolContext) -> ToolOutput:
        return ToolOutput(f"{arguments.path} was written.")

    async def status(arguments: NoArguments, context: ToolContext) -> ToolOutput:
        return ToolOutput("clean")

    reads = frozenset({Effect.READ})
    return (
        Tool("read", "Reads a file.", ReadArguments, reads, read),
        Tool("grep", "Finds files by text.", GrepArguments, reads, grep),
        Tool("edit", "Writes a file.", EditArguments, frozenset({Effect.WRITE}), edit),
        Tool("status", "Tells the state.", NoArguments, reads, status),
    )
