"""Broken files, found by parsing without executing."""

from collections.abc import Iterator

from agents.api.finding import Finding
from agents.detectors.audit.syntax.data_files import check_data
from agents.detectors.audit.syntax.grammar_errors import GRAMMAR_LANGUAGES, check_grammar
from agents.detectors.audit.syntax.notebook import check_notebook
from agents.detectors.audit.syntax.python_errors import check_python
from agents.detectors.audit.syntax.rules import RULES
from agents.detectors.audit.syntax.text_damage import check_text, conflict_lines
from agents.detectors.detector import Detector, DetectorContext
from agents.workspace.source_file import SourceFile
from agents.workspace.workspace import Workspace


def _check(file: SourceFile) -> Iterator[Finding]:
    found = list(check_text(file))
    yield from found
    if any(finding.rule == "merge-conflict" for finding in found):
        return  # every further error follows from it
    if file.language == "python":
        yield from check_python(file)
    elif file.language == "notebook":
        yield from check_notebook(file)
    elif file.language in ("json", "yaml", "toml", "xml"):
        yield from check_data(file)
    elif file.language in GRAMMAR_LANGUAGES:
        yield from check_grammar(file)


def _detect(workspace: Workspace, context: DetectorContext) -> Iterator[Finding]:
    for file in workspace:
        context.check_cancelled()
        try:
            yield from _check(file)
        except RecursionError:
            context.note(f"{file.path} is nested too deeply to be parsed.")


SYNTAX = Detector(
    "syntax",
    "Parses Python, JavaScript, TypeScript, Go, Rust, Java, C, HTML, CSS, shell, JSON, YAML, TOML, XML "
    "and notebooks; finds merge conflicts and damaged text.",
    _detect,
    RULES,
)

__all__ = ["SYNTAX", "conflict_lines"]
