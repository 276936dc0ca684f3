"""The procedures of the agents that measure a design: tokens, scores."""

import re
from collections import Counter

from agents.api.finding import Finding
from agents.detectors.design.colors import parse_color
from agents.detectors.design.layout import spacings
from agents.detectors.design.style_sheet import (
    StyleRule,
    resolve,
    rules_of_file,
    used_variables,
    variables_of,
)
from agents.detectors.design.tokens import css_tokens, is_token_file, json_tokens
from agents.outputs.design import DesignToken, Scores, Tokens
from agents.outputs.findings import FindingRecord
from agents.procedures.procedure import AgentTask, ProcedureContext

NO_STYLE = "There is no style sheet, page or token file to look at."
MAX_TOKENS = 300


async def list_tokens(task: AgentTask, context: ProcedureContext) -> Tokens:
    """The tokens of the files with their uses, and the findings of the agent's detectors."""
    found = await context.detect()
    tokens = await context.in_thread(_tokens, task)
    if not tokens and not found:
        return Tokens(cannot_do=NO_STYLE)
    return Tokens(tokens=tokens, findings=[FindingRecord.of(one) for one in found])


def _tokens(task: AgentTask) -> list[DesignToken]:
    styles = list(task.workspace.of("css", "tcss", "html"))
    rules = [rule for file in styles for rule in rules_of_file(file)]
    variables = variables_of(rules)
    uses = Counter(name for file in styles for name, _ in used_variables(file.text))
    named = [one for file in styles for one in css_tokens(file)]
    named += [one for file in task.workspace if is_token_file(file) for one in json_tokens(file)]
    listed = [
        DesignToken(
            name=one.name[:80],
            value=one.value[:300],
            kind=_kind(resolve(one.value, variables)),
            uses=uses[one.name],
        )
        for one in dict.fromkeys(named)
    ]
    if not listed:  # no tokens yet: the values that the style uses, most frequent first
        counted = Counter(
            one.value
            for rule in rules
            for one in rule.declarations
            if parse_color(one.value) is not None
        )
        listed = [
            DesignToken(name=f"color-{number}", value=value[:300], kind="color", uses=count)
            for number, (value, count) in enumerate(counted.most_common(24), 1)
        ]
    return listed[:MAX_TOKENS]


def _kind(value: str) -> str:
    if parse_color(value) is not None:
        return "color"
    return "size" if re.fullmatch(r"[\d.]+(px|rem|em|%|pt|vh|vw)?", value) else "other"


async def score_design(task: AgentTask, context: ProcedureContext) -> Scores:
    """Five scores from 0 to 100, each computed from measurements of the style sheets."""
    found = await context.detect()
    rules = await context.in_thread(_rules, task)
    if not rules:
        return Scores(cannot_do=NO_STYLE)
    measured = measurements(rules, found)
    return Scores(
        scores=scores(measured),
        measurements={name: round(value, 3) for name, value in measured.items()},
        findings=[FindingRecord.of(one) for one in found],
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
