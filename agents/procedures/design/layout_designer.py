"""`layout_designer`: the problems of layouts, and a given specification arranged at three screen sizes."""

from agents.detectors.design.layout import boxes_of, problems_of
from agents.outputs.design import Layout, Region, ScreenLayout, UISpec
from agents.procedures.design.given_spec import given_spec
from agents.procedures.procedure import AgentTask, ProcedureContext
from agents.procedures.task_text import records
from agents.workspace.workspace import Workspace

_INPUT = Workspace.of_texts({"inputs": ""}).files[0]
_WIDE = frozenset(
    ["heading", "navigation", "table", "chart", "search", "textarea", "list", "dialog"]
)
_HIGH = {"table": 6, "list": 5, "chart": 5, "textarea": 3, "card": 4, "image": 4}


async def run(task: AgentTask, context: ProcedureContext) -> Layout:
    """Check the layouts of the files and the inputs; arrange the components of a given specification."""
    found = await context.detect()
    given = [value for value in task.inputs.values() if isinstance(value, dict)]
    for value in given:
        found += [
            rule.at(_INPUT, 0, message, evidence=box.name)
            for rule, box, message in problems_of(*boxes_of(value))
        ]
    spec = given_spec(task)
    if spec is not None and spec.components:
        layouts = [_arrange(spec, columns) for columns in (4, 8, 12)]
        return Layout(layouts=layouts, findings=records(found))
    only_checks = not task.text and (given or len(task.workspace))
    reason = "" if only_checks else "layout_designer needs a model, or a specification to arrange."
    return Layout(findings=records(found), cannot_do=reason)


def _arrange(spec: UISpec, columns: int) -> ScreenLayout:
    """Regions in reading order, row by row: wide ones take all columns, others a third or a half."""
    regions: list[Region] = []
    x = y = row_height = 0
    for one in spec.components:
        width = columns if columns == 4 or one.kind in _WIDE else columns // 2
        height = _HIGH.get(one.kind, 1)
        if x + width > columns:
            x, y, row_height = 0, y + row_height, 0
        regions.append(Region(name=one.name, x=x, y=y, width=width, height=height))
        x, row_height = x + width, max(row_height, height)
    return ScreenLayout(columns=columns, rows=y + row_height, regions=regions)
