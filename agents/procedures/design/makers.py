"""The procedures of the agents that make something: specification, component, layout, prototype."""

import difflib
import re
from collections import Counter
from typing import Any

from pydantic import ValidationError

from agents.detectors.design.accessibility import detect_accessibility
from agents.detectors.design.contrast import detect_contrast
from agents.detectors.design.layout import boxes_of, problems_of
from agents.detectors.design.page import all_elements
from agents.detectors.detector import DetectorContext
from agents.outputs.design import Artifact, Layout, Region, ScreenLayout, UISpec
from agents.outputs.findings import FindingRecord
from agents.outputs.patch import Patch
from agents.procedures.design.components import (
    BASE_STATES,
    components_of,
    html_of,
    title_of,
)
from agents.procedures.design.page_text import page_of
from agents.procedures.procedure import AgentTask, ProcedureContext
from agents.workspace.workspace import Workspace

NO_COMPONENT = "The task names no component that is known: name fields, buttons, lists or tables."
MAX_PROTOTYPE_BYTES = 60_000
_INVENTORY = frozenset(
    ["a", "button", "form", "input", "select", "textarea", "table", "nav", "dialog", "img", "video", "ul",
     "ol", "h1", "h2", "h3"]
)  # fmt: skip


def _inventory(task: AgentTask) -> dict[str, int]:
    """How often each component occurs in the pages and JSX of the workspace."""
    counts: Counter[str] = Counter()
    for file in task.workspace.of("html", "javascript", "tsx"):
        counts.update(
            one.tag for one in all_elements(file) if one.tag in _INVENTORY or one.tag[:1].isupper()
        )
    return {name[:80]: count for name, count in counts.most_common(50)}


def given_spec(task: AgentTask) -> UISpec | None:
    """The specification among the inputs, or None."""
    for value in task.inputs.values():
        if isinstance(value, dict) and "components" in value:
            try:
                return UISpec.model_validate(value)
            except ValidationError:
                continue
    return None


def spec_of(task: AgentTask, inventory: dict[str, int]) -> UISpec:
    """The specification that a task's words ask for."""
    components = components_of(task.text)
    if not components:
        return UISpec(cannot_do=NO_COMPONENT, inventory=inventory)
    states = list(BASE_STATES) if any(one.states for one in components) else []
    missing = []
    if not any(one.kind in ("submit", "button", "link", "navigation") for one in components):
        missing.append("There is no way on: add a button, a link or a navigation.")
    return UISpec(
        title=title_of(task.text),
        components=components,
        states=states,
        inventory=inventory,
        missing=missing,
    )


async def design_ui(task: AgentTask, context: ProcedureContext) -> UISpec:
    """Specify the screen that the task's words ask for; existing components are counted."""
    inventory = await context.in_thread(_inventory, task)
    return given_spec(task) or spec_of(task, inventory)


async def build_component(task: AgentTask, context: ProcedureContext) -> Patch:
    """A new file with the component's HTML, as a diff; it passes the accessibility detectors."""
    spec = given_spec(task) or spec_of(task, {})
    if not spec.components:
        return Patch(cannot_do=spec.cannot_do)
    wanted = spec.components[0] if len(spec.components) == 1 else None
    name = re.sub(r"[^a-z0-9]+", "-", (spec.title or "component").lower()).strip("-") or "component"
    path = f"components/{name[:40]}.html"
    if task.workspace.get(path) is not None:
        return Patch(cannot_do=f"{path} exists already: name another component.")
    content = f"{html_of(wanted)}\n" if wanted is not None else page_of(spec)
    problems = check_page(content)
    if problems:
        return Patch(
            cannot_do=f"The component would not be accessible: {problems[0].message}"[:300]
        )
    lines = content.splitlines(keepends=True)
    diff = "".join(difflib.unified_diff([], lines, "/dev/null", f"b/{path}"))
    names = ", ".join(one.kind for one in spec.components)
    return Patch(diff=diff, reason=f"Adds {path} with {names}.")


async def design_layout(task: AgentTask, context: ProcedureContext) -> Layout:
    """Lay out the specification's components at three sizes; check layouts that are given."""
    found = await context.detect()
    records = [FindingRecord.of(one) for one in found]
    given = [value for value in task.inputs.values() if isinstance(value, dict)]
    for value in given:
        for rule, box, message in problems_of(*boxes_of(value)):
            finding = rule.at(_INPUT, 0, message, evidence=box.name)
            records.append(FindingRecord.of(finding))
    spec = given_spec(task) or (spec_of(task, {}) if task.text else None)
    if spec is None or not spec.components:
        reason = "" if records or given or len(task.workspace) else NO_COMPONENT
        return Layout(findings=records, cannot_do=reason)
    layouts = [_arrange(spec, columns) for columns in (4, 8, 12)]
    return Layout(layouts=layouts, findings=records)


_INPUT = Workspace.of_texts({"inputs": ""}).files[0]
_WIDE = frozenset(
    ["heading", "navigation", "table", "chart", "search", "textarea", "list", "dialog"]
)
_HIGH = {"table": 6, "list": 5, "chart": 5, "textarea": 3, "card": 4, "image": 4}


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


async def build_prototype(task: AgentTask, context: ProcedureContext) -> Artifact:
    """One HTML page of the specification; checked for validity, outside requests and accessibility."""
    spec = given_spec(task) or spec_of(task, {})
    if not spec.components:
        return Artifact(cannot_do=spec.cannot_do)
    content = page_of(spec)
    problems = check_page(content)
    outside = outside_requests(content)
    if outside or len(content.encode()) > MAX_PROTOTYPE_BYTES:
        reason = f"it would load {outside[0]}" if outside else "it would be too large"
        return Artifact(cannot_do=f"No prototype was made: {reason}."[:300])
    return Artifact(
        name="prototype.html",
        content=content,
        bytes=len(content.encode()),
        findings=[FindingRecord.of(one) for one in problems],
    )


def check_page(content: str) -> list[Any]:
    """Accessibility and contrast findings of a page's text."""
    workspace, context = Workspace.of_texts({"page.html": content}), DetectorContext()
    return [*detect_accessibility(workspace, context), *detect_contrast(workspace, context)]


def outside_requests(content: str) -> list[str]:
    """Addresses that a browser would load when it shows the page."""
    page = Workspace.of_texts({"page.html": content}).files[0]
    loading = {"src", "srcset", "data", "poster"}
    found = [
        value
        for one in all_elements(page)
        for name, value in one.attributes.items()
        if (name in loading or (one.tag == "link" and name == "href"))
        and re.match(r"(https?:)?//", value)
    ]
    return found + re.findall(r"url\(\s*['\"]?((?:https?:)?//[^)'\"]+)", content)
