"""The built-in procedures, found by their place: `CATEGORY/KEY.py` has the procedure `run` of the agent KEY.

A module is imported when its agent runs for the first time, so that listing the agents imports none of them.
"""

from dataclasses import dataclass
from importlib import import_module
from pathlib import Path

from agents.outputs.base import Output
from agents.procedures.procedure import AgentTask, Procedure, ProcedureContext
from agents.specs.packaged import packaged_files


@dataclass(frozen=True, slots=True)
class PackagedProcedure:
    """The procedure `run` of a module."""

    module: str

    async def __call__(self, task: AgentTask, context: ProcedureContext) -> Output:
        """Import the module, and run its procedure."""
        output: Output = await import_module(self.module).run(task, context)
        return output


def packaged_procedures() -> dict[str, Procedure]:
    """The procedures of the packaged agents, by key; most agents have none."""
    here = Path(__file__).parent
    return {
        key: PackagedProcedure(f"{__package__}.{path.parent.name}.{key}")
        for key, path in packaged_files().items()
        if (here / path.parent.name / f"{key}.py").is_file()
    }
