"""The detector `workflows`: continuous-integration workflows that run what a stranger wrote."""

import re
from collections.abc import Iterator

from agents.api.finding import Finding, Severity
from agents.detectors.detector import Detector, DetectorContext
from agents.detectors.rule_file import RuleEntry, RuleFile
from agents.workspace.source_file import SourceFile
from agents.workspace.workspace import Workspace

_HIGH, _MEDIUM, _LOW = Severity.HIGH, Severity.MEDIUM, Severity.LOW
RULES = RuleFile(__file__, "workflows", entry=RuleEntry)

_STRANGERS = re.compile(
    r"\$\{\{[^}]*\b(github\.event\.(issue|pull_request|comment|review|review_comment|discussion)\.(title|body|head\.(ref|label))"
    r"|github\.event\.(issue|pull_request|comment|review|head_commit|discussion|pages|commits)[\w.\[\]*]*\.(title|body|message|name|email|ref|label|page_name)"
    r"|github\.event\.(comment|review|issue|discussion)\.body|github\.head_ref|github\.event\.inputs\.\w+|inputs\.\w+"
    r"|github\.event\.pull_request\.head\.(ref|label|repo\.default_branch))\b[^}]*\}\}"
)
_USES = re.compile(r"^\s*(?:-\s*)?uses:\s*[\"']?([\w.-]+/[\w./-]+)@([\w./-]+)")
_RUN = re.compile(r"^(\s*)(?:-\s*)?(run|script):\s*(.*)$")
_OWN = ("actions/", "github/", "docker/", "./")


def _is_workflow(file: SourceFile) -> bool:
    if (
        ".github/workflows/" in file.path
        or ".github/actions/" in file.path
        or re.search(r"(^|/)action\.ya?ml$", file.path)
    ):
        return True
    return bool(re.search(r"(?m)^jobs:", file.text) and "runs-on:" in file.text)


def _detect(workspace: Workspace, context: DetectorContext) -> Iterator[Finding]:
    for file in workspace.of("yaml"):
        context.check_cancelled()
        if _is_workflow(file):
            yield from _scripts(file)
            yield from _actions(file)
            yield from _triggers(file)


def _scripts(file: SourceFile) -> Iterator[Finding]:
    """Expressions within `run:` and `script:`, in one line or in a block."""
    indent = -1
    for number, line in enumerate(file.lines, 1):
        start = _RUN.match(line)
        own = len(line) - len(line.lstrip())
        if start:
            indent = own
        elif indent >= 0 and line.strip() and own <= indent:
            indent = -1
        if indent < 0:
            continue
        if _STRANGERS.search(line):
            text = (
                "A title or branch with shell commands runs here: pass it through env and quote it."
            )
            yield RULES["workflow-injection"].at(file, number, text)
        if re.search(
            r"\b(echo|printf|print)\b[^|>]*\$\{\{\s*secrets\.\w+\s*\}\}\s*[\"']?\s*$", line
        ):
            yield RULES["secret-shown"].at(file, number, severity=_MEDIUM)


def _actions(file: SourceFile) -> Iterator[Finding]:
    for number, line in enumerate(file.lines, 1):
        match = _USES.match(line)
        if match is None or re.fullmatch(r"[0-9a-f]{40}", match[2]):
            continue
        if match[2] in ("main", "master", "latest", "develop", "trunk", "HEAD"):
            yield RULES["unpinned-action"].at(
                file, number, f"{match[1]} changes without notice: name a commit."
            )
        elif not match[1].startswith(_OWN):
            text = f"The tag {match[2]} of {match[1]} can be moved: name a commit."
            yield RULES["unpinned-action"].at(file, number, text, severity=_LOW, confidence=0.5)


def _triggers(file: SourceFile) -> Iterator[Finding]:
    trigger = next(
        (
            number
            for number, line in enumerate(file.lines, 1)
            if re.search(r"\b(pull_request_target|workflow_run)\b", line)
        ),
        0,
    )
    head = re.search(
        r"ref:\s*[\"']?\$\{\{\s*github\.(event\.(pull_request\.head|workflow_run\.head)|head_ref)",
        file.text,
    )
    if trigger and head:
        text = "The code of a pull request runs with this repository's secrets: use pull_request, or do not check it out."
        yield RULES["workflow-foreign-code"].at(file, trigger, text)
    elif re.search(r"\bpull_request\b", file.text) and "self-hosted" in file.text:
        number = file.text.count("\n", 0, file.text.find("self-hosted")) + 1
        yield RULES["self-hosted-runner"].at(file, number)


WORKFLOWS = Detector(
    "workflows",
    "Reads continuous-integration workflows for code and text of strangers.",
    _detect,
    RULES,
)
