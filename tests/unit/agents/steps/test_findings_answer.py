"""Findings of a model: files and lines that exist by the grammar, quotes by program."""

import json

import pytest
from pydantic import ValidationError

from agents.api.finding import Severity
from agents.outputs.findings import FindingRecord
from agents.steps import findings_answer
from agents.steps.findings_answer import add_reported, reported_schema
from agents.steps.shared_document import shown_files
from agents.workspace.workspace import Workspace
from engine.api.grammar import Grammar
from tests.fakes.scripted_client import accepts

FILES = Workspace.of_texts(
    {
        "a.py": "import os\n\nos.system(command)\n",
        "b.py": "x = 1\n",
        "empty.py": "",
        "secret.env": "KEY=rk_live_51Zq8Lm3Xv0Pt7Ws2Ka9\n",
    }
)


def report(file="a.py", line=3, **more):
    return {"file": file, "line": line, "severity": "high", "message": "Injection."} | more


def answer(*reports):
    return {"findings": list(reports)}


def allowed(schema, value):
    return accepts(Grammar.json_schema(schema), json.dumps(value))


@pytest.mark.parametrize(
    ("one", "is_allowed"),
    [
        (report(), True),
        (report("b.py", 1), True),
        (report(line=2), False),  # blank
        (report(line=4), False),  # behind the end
        (report(line=0), False),
        (report("b.py", 3), False),  # a line of another file
        (report("c.py", 1), False),
        (report("empty.py", 1), False),
        (report("secret.env", 1), False),  # not shown
        (report(severity="awful"), False),
        (report(message=""), False),
    ],
)
def test_only_lines_that_a_prompt_shows_can_be_reported(one, is_allowed):
    assert allowed(reported_schema(FILES), answer(one)) is is_allowed


def test_there_may_be_no_finding():
    assert allowed(reported_schema(FILES), answer())
    for files in ({}, {"empty.py": "\n \n"}):
        schema = reported_schema(Workspace.of_texts(files))
        assert allowed(schema, answer())
        assert not allowed(schema, answer(report()))


def test_large_workspaces_have_ranges_of_lines(monkeypatch):
    monkeypatch.setattr(findings_answer, "MAX_ENUMERATED", 2)
    schema = reported_schema(FILES)
    assert allowed(schema, answer(report(line=2)))
    assert not allowed(schema, answer(report(line=4)))
    records, dropped = add_reported([], answer(report(line=2), report()), FILES)
    assert (len(records), dropped) == (1, 1)


def test_the_quote_is_the_line():
    (found,), dropped = add_reported([], answer(report()), FILES)
    assert dropped == 0
    assert (found.file, found.line, found.source) == ("a.py", 3, "model")
    assert found.evidence == "os.system(command)"
    assert found.severity is Severity.HIGH
    assert found.confidence < 0.5


def test_a_line_that_has_a_finding_gets_no_other():
    known = FindingRecord(
        id="1", file="a.py", line=2, end_line=3, rule="B605", severity=Severity.MEDIUM,
        confidence=0.8, message="A shell is started.",
    )  # fmt: skip
    assert add_reported([known], answer(report(), report(line=3)), FILES) == ([known], 0)


def test_an_answer_without_a_grammar_is_checked():
    assert add_reported([], answer(report("c.py"), report(line=99)), FILES) == ([], 2)
    with pytest.raises(ValidationError):
        add_reported([], {"findings": [{"file": "a.py"}]}, FILES)


def test_files_with_private_data_are_not_shown():
    assert [file.path for file in shown_files(FILES)] == ["a.py", "b.py", "empty.py"]
