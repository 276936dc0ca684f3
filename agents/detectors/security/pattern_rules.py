"""`PatternRule`: a defect that one call or one line shows by its text, with the patterns in a YAML file."""

import re
from collections.abc import Iterator
from functools import cached_property

from agents.api.data_file import Entry
from agents.api.finding import Finding, Severity
from agents.detectors.detector import DetectorContext
from agents.detectors.rule_file import JAVASCRIPT, RuleEntry, RuleFile
from agents.detectors.security.tree_code import tree_code, tree_files
from agents.workspace.workspace import Workspace


class Pattern(Entry):
    """What every pattern has.

    Attributes:
        languages: where it applies; `javascript` stands for TypeScript, too.
        message: in place of the rule's.
        severity: in place of the rule's.
        bad: a line that it matches, and with which the rule must be found.
        good: a similar line, with which it must not.
    """

    languages: tuple[str, ...]
    message: str = ""
    severity: Severity | None = None
    bad: str
    good: str

    @cached_property
    def every_language(self) -> frozenset[str]:
        """The languages with TypeScript."""
        return frozenset(self.languages + (JAVASCRIPT if "javascript" in self.languages else ()))


class CallPattern(Pattern):
    """A pattern of calls.

    Attributes:
        name: pattern of the dotted name of what is called.
        arguments: pattern that the arguments' text must match; empty matches all.
        unless: pattern that it must not match; empty excludes none.
    """

    name: re.Pattern[str]
    arguments: str = ""
    unless: str = ""


class LinePattern(Pattern):
    """A pattern of lines."""

    pattern: re.Pattern[str]


class PatternRule(RuleEntry):
    """A rule with its patterns; a detector may find it in further ways."""

    calls: tuple[CallPattern, ...] = ()
    lines: tuple[LinePattern, ...] = ()


def matching_calls(
    rules: RuleFile[PatternRule], workspace: Workspace, context: DetectorContext
) -> Iterator[Finding]:
    """The findings by patterns of calls."""
    patterns = [(entry.rule, one) for entry in rules.entries.values() for one in entry.calls]
    for file in tree_files(workspace, context):
        of_language = [pair for pair in patterns if file.language in pair[1].every_language]
        if not of_language:
            continue
        code = tree_code(file)
        for call in code.calls:
            named = [pair for pair in of_language if pair[1].name.search(call.name)]
            if not named:
                continue
            listed = ", ".join(code.text(one) for one in call.arguments)[:2_000]
            for rule, one in named:
                if (not one.arguments or re.search(one.arguments, listed)) and not (
                    one.unless and re.search(one.unless, listed)
                ):
                    yield rule.at(
                        file, call.line, one.message, end_line=call.end_line, severity=one.severity
                    )


def matching_lines(
    rules: RuleFile[PatternRule], workspace: Workspace, context: DetectorContext
) -> Iterator[Finding]:
    """The findings by patterns of lines; those of very long lines are left out."""
    patterns = [(entry.rule, one) for entry in rules.entries.values() for one in entry.lines]
    for file in workspace:
        context.check_cancelled()
        language = "nginx" if file.path.endswith(".conf") else file.language
        for rule, one in patterns:
            if language not in one.every_language:
                continue
            for number, line in enumerate(file.lines, 1):
                if len(line) <= 1_000 and one.pattern.search(line):
                    yield rule.at(file, number, one.message, severity=one.severity)
