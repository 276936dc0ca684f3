"""Deterministic code edits: what is changed, what is refused, what stays."""

import contextlib

import pytest
from hypothesis import given
from hypothesis import strategies as st

from agents.api.errors import InvalidTask
from agents.procedures.execution.code_edits import (
    annotate_returns,
    rename_symbol,
    ruff_fix,
)
from agents.procedures.execution.coder import _edit, _patch
from agents.text.unified_diff import apply_diff
from agents.workspace.workspace import Workspace


def workspace(**texts: str) -> Workspace:
    return Workspace.of_texts({name.replace("_", "."): text for name, text in texts.items()})


def test_a_rename_leaves_strings_comments_and_longer_names_alone():
    text = 'def mean(x):\n    """mean"""  # mean\n    means = "mean"\n    return means\n\nmean(1)\n'
    edited = rename_symbol(workspace(a_py=text), "mean", "average")
    assert edited.texts["a.py"] == text.replace("def mean", "def average").replace(
        "\nmean(", "\naverage("
    )


def test_a_rename_reaches_other_languages():
    edited = rename_symbol(
        workspace(a_go="package m\nfunc Old() {}\n", b_ts="const Old = 1; x.Old();\n"),
        "Old",
        "Fresh",
    )
    assert "func Fresh()" in edited.texts["a.go"]
    assert edited.texts["b.ts"] == "const Fresh = 1; x.Fresh();\n"


def test_a_rename_to_a_used_name_is_refused():
    with pytest.raises(InvalidTask, match="already used"):
        rename_symbol(workspace(a_py="a = 1\nb = a\n"), "a", "b")
    with pytest.raises(InvalidTask, match="No file has"):
        rename_symbol(workspace(a_py="a = 1\n"), "zebra", "b")


def test_unused_imports_are_removed():
    edited = ruff_fix(
        list(workspace(a_py="import os\nimport sys\n\nprint(sys.argv)\n")), "unused imports"
    )
    assert edited.texts["a.py"] == "import sys\n\nprint(sys.argv)\n"


def test_annotations_follow_from_the_code():
    text = (
        "def f(a, b=1, *, c='x'):\n    print(a)\n\ndef g():\n    return 1\n\ndef h():\n    yield\n"
    )
    edited = annotate_returns(list(workspace(a_py=text)))
    assert "def f(a, b: int=1, *, c: str='x') -> None:" in edited.texts["a.py"]
    assert "def g():" in edited.texts["a.py"]
    assert "def h():" in edited.texts["a.py"]


def test_the_patch_applies_and_names_the_tests():
    files = workspace(a_py="def f():\n    return 1\n", test_a_py="")
    files = Workspace.of_texts(
        {
            "a.py": "def f():\n    return 1\n",
            "tests/test_a.py": "from a import f\n\n\ndef test_f():\n    assert f() == 1\n",
        }
    )
    edited = _edit("rename f to one", "", files)
    patch = _patch(edited, files)
    assert patch.tests == ["tests/test_a.py"]
    texts = {file.path: file.text for file in files}
    assert apply_diff(patch.diff, texts) == edited.texts


def test_a_diff_that_breaks_the_syntax_is_refused():
    files = Workspace.of_texts({"a.py": "x = 1\n"})
    diff = "--- a/a.py\n+++ b/a.py\n@@ -1 +1 @@\n-x = 1\n+x = (1\n"
    assert "breaks the syntax" in _patch(_edit("", diff, files), files).cannot_do


@given(st.text(max_size=60))
def test_any_source_is_edited_or_refused(text):
    files = Workspace.of_texts({"a.py": text, "b.js": text})
    for edit in (lambda: rename_symbol(files, "a", "b"), lambda: annotate_returns(list(files))):
        with contextlib.suppress(InvalidTask):
            edit()
