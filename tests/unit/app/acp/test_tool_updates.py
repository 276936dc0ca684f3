"""What clients are shown of calls: titles, places, diffs."""

import json

import pytest

from agents.tools.file_access import DiskFiles
from app.acp.tool_updates import (
    arguments_of,
    changes_of,
    edit_content,
    kind_of,
    locations_of,
    steps_plan,
    text_content,
    title_of,
    todo_plan,
)

FILES = DiskFiles()


@pytest.mark.parametrize(
    ("tool", "arguments", "title"),
    [
        ("read", {"path": "a.py", "start_line": 3}, "read a.py"),
        ("shell", {"command": "ls\n  -l \x1b[31m"}, "shell ls -l"),
        ("todo", {}, "todo"),
        ("python", {"code": "x" * 500}, "python " + "x" * 112 + "…"),
        ("fetch", {"url": ["a"]}, 'fetch ["a"]'),
    ],
)
def test_a_title_is_one_line(tool, arguments, title):
    assert title_of(tool, arguments) == title


def test_arguments_that_are_no_object_are_none():
    assert [arguments_of(one) for one in ("", "[1]", "{", '{"a": 1}')] == [{}, {}, {}, {"a": 1}]


def test_kinds_are_those_of_the_protocol():
    assert [kind_of(one) for one in ("read", "grep", "edit", "shell", "x.y")] == [
        "read", "search", "edit", "execute", "other",
    ]  # fmt: skip


@pytest.mark.parametrize("path", ["../x", "/etc/passwd", "", 3, None, "a\0b"])
def test_places_outside_of_the_folder_are_none(tmp_path, path):
    assert locations_of({"path": path}, tmp_path) == []


def test_a_place_has_its_line(tmp_path):
    (place,) = locations_of({"path": "./sub/a.py", "start_line": 7}, tmp_path)
    assert (place.path, place.line) == (str(tmp_path / "sub/a.py"), 7)


@pytest.mark.parametrize(
    ("text", "old", "new", "before", "after"),
    [
        ("x = 1\ny\n", "x = 1", "x = 2", "x = 1\ny\n", "x = 2\ny\n"),
        ("", "x", "y", "x", "y"),  # it will fail: the passage is not there
        ("a a", "a", "b", "a", "b"),  # it will fail: it is there twice
        ("abc", "abc", "", "abc", ""),
    ],
)
def test_an_edit_is_shown_over_the_whole_file_if_it_fits(tmp_path, text, old, new, before, after):
    (tmp_path / "a.py").write_text(text)
    (diff,) = edit_content("edit", {"path": "a.py", "old": old, "new": new}, tmp_path, FILES)
    assert (diff.old_text, diff.new_text) == (before, after)


@pytest.mark.parametrize(
    "arguments", [{}, {"path": 3}, {"path": "a.py"}, {"path": "a.py", "old": 1, "new": 2}]
)
def test_wrong_arguments_show_no_diff(tmp_path, arguments):
    assert edit_content("edit", arguments, tmp_path, FILES) == []
    assert edit_content("write", arguments, tmp_path, FILES) == []
    assert edit_content("read", {"path": "a.py"}, tmp_path, FILES) == []


def test_a_diff_over_several_files(tmp_path):
    (tmp_path / "a.py").write_text("a\n")
    diff = (
        "--- a/a.py\n+++ b/a.py\n@@ -1 +1 @@\n-a\n+b\n"
        "--- /dev/null\n+++ b/new.py\n@@ -0,0 +1 @@\n+n\n"
    )
    assert changes_of(diff, tmp_path, FILES) == {"a.py": ("a\n", "b\n"), "new.py": (None, "n\n")}
    assert changes_of(diff.replace("-a\n", "-z\n"), tmp_path, FILES) == {}
    assert changes_of("nothing", tmp_path, FILES) == {}


def test_plans_of_nonsense_are_none_or_empty():
    assert todo_plan({"items": "x"}) is None
    assert todo_plan({"items": [3, {"text": "a", "state": "?"}]}).entries[0].status == "pending"
    assert steps_plan([3, {}]) is None


def test_a_long_result_is_cut_and_has_no_control_characters():
    (content,) = text_content("\x1b[2J" + "x" * 30_000)
    assert "\x1b" not in content.content.text
    assert len(content.content.text) < 21_000
    assert text_content(" \n") == []
    assert json.loads(content.model_dump_json())["type"] == "content"
