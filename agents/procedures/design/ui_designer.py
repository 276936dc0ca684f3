"""`ui_designer`: a given specification, or which components the existing pages have."""

from collections import Counter

from agents.detectors.design.page import all_elements
from agents.outputs.design import UISpec
from agents.procedures.design.given_spec import given_spec
from agents.procedures.procedure import AgentTask, ProcedureContext

_COMPONENTS = frozenset(
    ["a", "button", "form", "input", "select", "textarea", "table", "nav", "dialog", "img", "video", "ul",
     "ol", "h1", "h2", "h3"]
)  # fmt: skip


async def run(task: AgentTask, context: ProcedureContext) -> UISpec:
    """The specification that is given; else the inventory, from which a model specifies the screen."""
    inventory = await context.in_thread(_inventory, task)
    return given_spec(task) or UISpec(
        inventory=inventory, cannot_do="ui_designer needs a model to specify a screen."
    )


def _inventory(task: AgentTask) -> dict[str, int]:
    """How often each component occurs in the pages and JSX of the workspace."""
    counts: Counter[str] = Counter()
    for file in task.workspace.of("html", "javascript", "tsx"):
        counts.update(
            one.tag for one in all_elements(file) if one.tag in _COMPONENTS or one.tag[:1].isupper()
        )
    return {name[:80]: count for name, count in counts.most_common(50)}
