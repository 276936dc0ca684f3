"""`CallRule`: a defect that one call shows by its name and the text of its arguments, in tree-sitter's languages."""

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from agents.api.finding import Finding
from agents.detectors.detector import DetectorContext, Rule
from agents.detectors.security.tree_code import tree_code, tree_files
from agents.workspace.workspace import Workspace


@dataclass(frozen=True, slots=True)
class CallRule:
    """A pattern of calls.

    Attributes:
        languages: where it applies.
        name: pattern of the dotted name of what is called.
        rule: what a match is.
        message: its message.
        arguments: pattern that the arguments' text must match; empty matches all.
        unless: pattern that it must not match; empty excludes none.
    """

    languages: Sequence[str]
    name: str
    rule: Rule
    message: str
    arguments: str = ""
    unless: str = ""


def matching_calls(
    rules: Sequence[CallRule], workspace: Workspace, context: DetectorContext
) -> Iterator[Finding]:
    """The findings of these rules."""
    compiled = [(rule, re.compile(rule.name)) for rule in rules]
    for file in tree_files(workspace, context):
        of_language = [pair for pair in compiled if file.language in pair[0].languages]
        if not of_language:
            continue
        code = tree_code(file)
        for call in code.calls:
            named = [rule for rule, pattern in of_language if pattern.search(call.name)]
            if not named:
                continue
            listed = ", ".join(code.text(one) for one in call.arguments)[:2_000]
            for rule in named:
                if (not rule.arguments or re.search(rule.arguments, listed)) and not (
                    rule.unless and re.search(rule.unless, listed)
                ):
                    yield rule.rule.at(file, call.line, rule.message, end_line=call.end_line)
