"""Ranges, branches, access, documents and names: each rule on code that breaks it and on code that does not."""

import pytest

from agents.detectors.audit.consistency import CONSISTENCY
from agents.detectors.audit.documents import DOCUMENTS
from agents.detectors.audit.hallucination import HALLUCINATION
from agents.detectors.audit.logic import LOGIC
from agents.detectors.audit.syntax import SYNTAX
from agents.workspace.workspace import Workspace
from tests.unit.agents.detectors.seeded import findings, rules_at


def test_java_texts_are_compared_by_equals():
    text = "class A {\n  boolean f(String a, String b) { return a == b; }\n  boolean g(int a, int b) { return a == b; }\n}\n"
    assert rules_at(LOGIC, "A.java", text) == [("identity-comparison", 2)]


@pytest.mark.parametrize(
    ("path", "text", "line"),
    [
        ("a.py", "x = 1\nawait f()\n", 2),
        ("a.go", "package a\n\nfunc f() {\n\tif true\n\t{\n\t}\n}\n", 4),
        ("settings.json", '{"a": [1,]}\n', 1),
    ],
)
def test_errors_that_a_tolerant_parser_accepts(path, text, line):
    assert rules_at(SYNTAX, path, text) == [("syntax-error", line)]


def test_settings_of_an_editor_may_have_trailing_commas():
    assert rules_at(SYNTAX, ".vscode/settings.json", '{"a": [1,]}\n') == []


PROGRAM = {
    "README.md": "",
    "app/__init__.py": "",
    "app/web.py": (
        'from fastapi import FastAPI, Query\n\napp = FastAPI()\nPORT = 8080\n\n\n@app.get("/items/{key}")\n'
        "def item(key: int, limit: int = Query(10, le=100)):\n    return total_by_owner(key)\n\n\n"
        "def total_by_owner(key):\n    return key\n"
    ),
    "tools/run.py": "",
}


@pytest.mark.parametrize(
    ("line", "rule"),
    [
        ("    python tools/walk.py", "missing-path"),
        ("See `app/api.py`.", "missing-path"),
        ("`DELETE /items/{key}` removes one.", "documented-route"),
        ("`GET /things` lists all.", "documented-route"),
        ("`GET /items/7?limit=N` has at most 500 entries.", "documented-limit"),
        ("It listens on port 9000.", "documented-port"),
        ("Call `app.web.total_by_group(key)`.", "documented-name"),
    ],
)
def test_documents_that_the_code_contradicts(line, rule):
    workspace = Workspace.of_texts({**PROGRAM, "README.md": f"# A\n\n{line}\n"})
    assert [(one.rule, one.line) for one in findings([DOCUMENTS], workspace)] == [(rule, 3)]


@pytest.mark.parametrize(
    "line",
    [
        "    python tools/run.py",
        "See `app/web.py` and `my/own/file.py`.",
        "`GET /items/7` reads one.",
        "`GET /items/{key}?limit=N` has at most 100 entries.",
        "It listens on port 8080; the database on port 5432.",
        "Call `app.web.total_by_owner(key)` of `os.path.join`.",
    ],
)
def test_documents_that_are_right(line):
    workspace = Workspace.of_texts({**PROGRAM, "README.md": f"{line}\n"})
    assert findings([DOCUMENTS], workspace) == []


@pytest.mark.parametrize(
    ("files", "expected"),
    [
        ({"a/__init__.py": "", "a/b.py": "from .c import x\n"}, [("unknown-import", "a/b.py", 1)]),
        ({"a/__init__.py": "", "a/c.py": "y = 1\n", "a/b.py": "from .c import x\n"}, [("unknown-name", "a/b.py", 1)]),
        ({"a/__init__.py": "", "a/c.py": "def x(): ...\n", "a/b.py": "from .c import x\nfrom . import c\n"}, []),
        ({"a/__init__.py": "", "a/c.py": "def __getattr__(n): ...\n", "a/b.py": "from a.c import x\n"}, []),
        ({"a/__init__.py": "", "a/cli.py": "def main(): ...\n", "pyproject.toml": '[project.scripts]\na = "a.cli:run"\n'}, [("unknown-name", "pyproject.toml", 2)]),
    ],
)  # fmt: skip
def test_imports_within_the_workspace(files, expected):
    found = findings([HALLUCINATION], Workspace.of_texts(files))
    assert [(one.rule, one.file, one.line) for one in found] == expected


def test_a_key_that_the_settings_file_calls_otherwise():
    code = 'import yaml\n\n\ndef load(f):\n    v = yaml.safe_load(f)\n    return v["page_size"], v["session_time"]\n'
    files = {"a.py": code, "config.yaml": "page_size: 1\nsession_minutes: 2\n"}
    found = [(one.rule, one.line) for one in findings([CONSISTENCY], Workspace.of_texts(files))]
    assert found == [("config-key", 6)]


def test_a_docstring_is_reported_where_it_names_the_parameter():
    text = 'def f(a, b):\n    """Do.\n\n    Args:\n        a: one.\n        c: two.\n    """\n'
    assert rules_at(CONSISTENCY, "a.py", text) == [("docstring-parameter", 6)]
