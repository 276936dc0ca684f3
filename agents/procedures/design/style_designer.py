"""`style_designer` and `design_system`: the tokens of style sheets and token files, with their uses."""

import re
from collections import Counter

from agents.detectors.design.colors import parse_color
from agents.detectors.design.style_sheet import (
    resolve,
    rules_of_file,
    used_variables,
    variables_of,
)
from agents.detectors.design.tokens import css_tokens, is_token_file, json_tokens
from agents.outputs.design import DesignToken, Tokens
from agents.procedures.procedure import AgentTask, ProcedureContext
from agents.procedures.task_text import records

MAX_TOKENS = 300


async def run(task: AgentTask, context: ProcedureContext) -> Tokens:
    """The tokens of the files with their uses, and the findings of the agent's detectors."""
    found = await context.detect()
    tokens = await context.in_thread(_tokens, task)
    if not tokens and not found:
        return Tokens(cannot_do="There is no style sheet, page or token file to look at.")
    return Tokens(tokens=tokens, findings=records(found))


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
