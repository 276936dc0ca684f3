"""`given_spec`: the screen specification that a task brings along."""

from pydantic import ValidationError

from agents.outputs.design import UISpec
from agents.procedures.procedure import AgentTask


def given_spec(task: AgentTask) -> UISpec | None:
    """The specification among the inputs, or None."""
    for value in task.inputs.values():
        if isinstance(value, dict) and "components" in value:
            try:
                return UISpec.model_validate(value)
            except ValidationError:
                continue
    return None
