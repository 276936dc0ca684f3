"""`router`: the pipeline for a task, by its verbs, its files and their size. Three gates are always named."""

import re
from collections.abc import Mapping, Sequence

from agents.outputs.route import Route
from agents.procedures.procedure import AgentTask, ProcedureContext
from agents.specs.packaged import GATES
from agents.text.words import stem, words
from agents.workspace.workspace import Workspace

LARGE_BYTES = 2 << 20
_LANGUAGES = "python javascript typescript tsx go rust java c bash ruby php kotlin csharp"
_CODE = frozenset(_LANGUAGES.split())
_PAGES = frozenset(["html", "css", "tcss"])

# Words of a task by pipeline; a word in capitals counts twice.
_WORDS: Mapping[str, str] = {
    "plan-execute-audit": "implement build add fix change refactor rename port update create DEBUG bug",
    "research-summarize": "RESEARCH find sources compare facts SUMMARISE SUMMARIZE condense overview digest",
    "research-write": "ARTICLE REPORT essay paper whitepaper write research sources",
    "code-review": "REVIEW quality logic readability comments pull diff",
    "secure-code-review": "SECURITY VULNERABILITY injection secrets audit exploit cve review secure",
    "full-secure-design": "architecture threat model secure design system service",
    "design-component": "COMPONENT WIDGET button form screen layout ui style design accessibility",
    "creative-write": "STORY POEM tale novel narrate character creative fiction",
    "extract-classify": "EXTRACT CLASSIFY label fields invoice table tag categorise parse values",
    "full-pipeline": "everything whole complete end-to-end full all",
}
_FALLBACK = "plan-execute-audit"


async def run(task: AgentTask, context: ProcedureContext) -> Route:
    """Choose the pipeline of a task."""
    if not task.text.strip() and not len(task.workspace) and not task.document:
        return Route(cannot_do="There is neither a task nor a file to route.")
    return choose_route(task.text, task.workspace, has_document=bool(task.document))


def choose_route(text: str, workspace: Workspace, *, has_document: bool = False) -> Route:
    """The pipeline with most evidence: words of the task first, then the kinds of files."""
    asked = [stem(word.text.lower()) for word in words(text[:20_000])]
    scores: dict[str, float] = {}
    reasons: dict[str, list[str]] = {}
    for pipeline, names in _WORDS.items():
        hits = [name for name in names.split() if stem(name.lower()) in asked]
        scores[pipeline] = float(sum(2 if name.isupper() else 1 for name in hits))
        if hits:
            reasons[pipeline] = [f"the task says {', '.join(name.lower() for name in hits[:5])}"]
    for pipeline, weight, reason in _by_files(workspace, has_document=has_document):
        scores[pipeline] += weight
        reasons.setdefault(pipeline, []).append(reason)
    best = max(scores, key=lambda name: scores[name])
    total = sum(scores.values())
    if not total:
        best = _FALLBACK
        reasons[best] = ["nothing in the task or its files speaks for another pipeline"]
    others = sorted(
        (name for name in scores if name != best and scores[name]), key=lambda n: -scores[n]
    )
    return Route(
        pipeline=best,
        gates=list(GATES),
        reasons=[f"{reason[0].upper()}{reason[1:]}."[:300] for reason in reasons[best]],
        confidence=round(scores[best] / total, 3) if total else 0.0,
        alternatives=others[:3],
    )


def _by_files(workspace: Workspace, *, has_document: bool) -> Sequence[tuple[str, float, str]]:
    """Evidence of the files: pipeline, weight and reason."""
    languages = [file.language or "" for file in workspace]
    code = sum(1 for one in languages if one in _CODE)
    pages = sum(1 for one in languages if one in _PAGES)
    size = sum(len(file.data) for file in workspace)
    found: list[tuple[str, float, str]] = []
    if code:
        found.append(("code-review", 0.6, f"{code} files are source code"))
    if any(_is_sensitive(file.path) for file in workspace):
        found.append(("secure-code-review", 0.7, "there are files that concern security"))
    if pages and pages >= code:
        found.append(("design-component", 0.7, f"{pages} files are pages or styles"))
    if size > LARGE_BYTES:
        found.append(("full-pipeline", 0.5, f"there are {size >> 20} MiB of files"))
    if not code and not pages and (has_document or len(workspace)):
        found.append(("research-summarize", 0.5, "there is only prose"))
    return found


def _is_sensitive(path: str) -> bool:
    return (
        re.search(
            r"(?:^|[/_.-])(?:auth|login|crypto|secret|token|session|passwd|password|docker)",
            path,
            re.I,
        )
        is not None
    )
