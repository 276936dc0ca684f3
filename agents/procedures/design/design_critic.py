"""`design_critic`: five scores of a design, computed from its style sheets."""

from collections import Counter

from agents.api.finding import Finding
from agents.detectors.design.colors import parse_color
from agents.detectors.design.layout import spacings
from agents.detectors.design.style_sheet import StyleRule, resolve, rules_of_file, variables_of
from agents.outputs.design import Scores
from agents.procedures.procedure import AgentTask, ProcedureContext
from agents.procedures.task_text import records


async def run(task: AgentTask, context: ProcedureContext) -> Scores:
    """Five scores from 0 to 100, each computed from measurements of the style sheets."""
    found = await context.detect()
    rules = await context.in_thread(_rules, task)
    if not rules:
        return Scores(cannot_do="There is no style sheet or page to look at.")
    measured = measurements(rules, found)
    return Scores(
        scores=scores(measured),
        measurements={name: round(value, 3) for name, value in measured.items()},
        findings=records(found),
    )


def _rules(task: AgentTask) -> list[StyleRule]:
    files = task.workspace.of("css", "tcss", "html")
    return [rule for file in files for rule in rules_of_file(file)]


def measurements(rules: list[StyleRule], found: list[Finding]) -> dict[str, float]:
    """Counts of what a style sheet uses: colours, type sizes, spacings, problems of contrast and layout."""
    variables = variables_of(rules)
    values = [(one.name, resolve(one.value, variables)) for r in rules for one in r.declarations]
    colors = {
        color.hex
        for name, value in values
        if not name.startswith(("--", "$")) and (color := parse_color(value)) is not None
    }
    sizes = {value for name, value in values if name == "font-size"}
    families = {value for name, value in values if name == "font-family"}
    gaps = [value for value, _ in spacings(rules) if value]
    on_grid = sum(value % 4 == 0 for value in gaps) / len(gaps) if gaps else 1.0
    counts = Counter(one.rule for one in found)
    return {
        "colors": len(colors),
        "type_sizes": len(sizes),
        "font_families": len(families),
        "spacings": len(set(gaps)),
        "spacings_on_grid": on_grid,
        "contrast_problems": counts["low-contrast"],
        "layout_problems": counts["overlap"] + counts["overflow"] + counts["fixed-width"],
        "token_problems": counts["near-duplicate-color"] + counts["off-palette"],
    }


def scores(measured: dict[str, float]) -> dict[str, float]:
    """Scores of five dimensions: 100 less a penalty for each measured excess."""

    def score(penalty: float) -> float:
        return round(max(0.0, 100.0 - penalty), 1)

    return {
        "contrast": score(20 * measured["contrast_problems"]),
        "color": score(5 * max(0.0, measured["colors"] - 8) + 5 * measured["token_problems"]),
        "type": score(
            10 * max(0.0, measured["type_sizes"] - 6) + 20 * max(0.0, measured["font_families"] - 2)
        ),
        "spacing": score(
            60 * (1 - measured["spacings_on_grid"]) + 4 * max(0.0, measured["spacings"] - 8)
        ),
        "alignment": score(15 * measured["layout_problems"]),
    }
