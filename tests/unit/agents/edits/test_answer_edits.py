"""Which file a fence changes, and how: Python by name, blocks of other languages, diffs, SEARCH/REPLACE."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from agents.api.errors import InvalidTask
from agents.edits import FileEdit, apply_edits, propose_edits, take_back
from agents.edits.fences import read_fences

HOLDS = b"KEEP = 7\n\n\ndef position(holds, member):\n    return holds.index(member)\n"
FIXED = HOLDS.replace(b"holds.index(member)", b"holds.index(member) + 1")
CODE = "def position(holds, member):\n    return holds.index(member) + 1\n"
LOANS = b"def lend(book):\n    return book\n"


def fence(code, info="python", above=""):
    return f"Here it is.\n\n{above}\n```{info}\n{code}```\nDone.\n"


def only(proposal):
    assert not proposal.refused
    (edit,) = proposal.edits
    return edit


@pytest.mark.parametrize(
    "answer",
    [
        fence(CODE),
        fence(CODE, ""),
        fence(CODE, "python src/holds.py"),
        fence(CODE, "python:src/holds.py"),
        fence(CODE, 'python title="src/holds.py"'),
        fence(CODE, above="**`holds.py`**:"),
        fence(CODE, above="### src/holds.py"),
        fence(CODE, above="I changed `holds.py` so that it counts from 1:"),
        fence("# src/holds.py\n" + CODE),
        fence(CODE).replace("\n", "\r\n"),
        fence("  " + CODE.replace("\n", "\n  ").rstrip(" ")),
        "1. First\n   ```python\n   " + CODE.replace("\n", "\n   ").rstrip(" ") + "   ```\n",
        fence(CODE) + fence("print(position([1], 1))\n"),
        fence(HOLDS.decode()) + fence(CODE),
    ],
)
def test_the_file_of_a_fence_is_found(answer):
    edit = only(propose_edits(answer, {"src/holds.py": HOLDS, "src/loans.py": LOANS}))
    assert (edit.path, edit.before, edit.after) == ("src/holds.py", HOLDS, FIXED)
    assert edit.counts == (1, 1)


@pytest.mark.parametrize(
    "answer",
    [
        "No code.",
        fence("x = 1\nprint(x)\n"),
        fence("pytest -q\n", "console"),
        "```python\n" + CODE,  # not closed
        fence("def test_it():\n    assert 1\n"),  # a test, and no test file
        fence('{"a": 1}\n', "json"),
    ],
)
def test_an_answer_that_changes_no_file_offers_nothing(answer):
    proposal = propose_edits(answer, {"src/holds.py": HOLDS})
    assert (proposal.edits, proposal.refused) == ((), ())


def test_code_that_the_file_has_already_is_no_change():
    assert propose_edits(fence(CODE), {"holds.py": FIXED}).unchanged == ("holds.py",)


def test_two_files_with_the_name_are_refused():
    proposal = propose_edits(fence(CODE), {"a.py": HOLDS, "b.py": HOLDS})
    assert proposal.refused == (
        "a.py and b.py define position: the answer does not say which is meant.",
    )


def test_a_new_function_goes_into_the_only_file():
    edit = only(propose_edits(fence("def late(day):\n    return day\n"), {"holds.py": HOLDS}))
    assert edit.after == HOLDS + b"\n\ndef late(day):\n    return day\n"
    assert edit.names == ("late",)


def test_a_new_file_is_created_where_it_may_be():
    code = "def test_position():\n    assert 1\n"
    edit = only(
        propose_edits(
            fence(code, above="**tests/test_holds.py**"),
            {"holds.py": HOLDS},
            find=lambda name: (name, None),
        )
    )
    assert (edit.path, edit.before, edit.after) == ("tests/test_holds.py", None, code.encode())
    assert edit.diff.startswith("--- /dev/null\n+++ b/tests/test_holds.py\n")


def test_two_files_of_one_answer():
    answer = fence(CODE, "python holds.py") + fence(
        "def lend(book):\n    return 2\n", "python loans.py"
    )
    proposal = propose_edits(answer, {"holds.py": HOLDS, "loans.py": LOANS})
    assert [one.path for one in proposal.edits] == ["holds.py", "loans.py"]


DIFF = "@@ -4,2 +4,2 @@\n def position(holds, member):\n-    return holds.index(member)\n+    return holds.index(member) + 1\n"


@pytest.mark.parametrize(
    "diff",
    [
        "--- a/holds.py\n+++ b/holds.py\n" + DIFF,
        "diff --git a/holds.py b/holds.py\nindex 1..2 100644\n--- a/holds.py\n+++ b/holds.py\n"
        + DIFF,
        DIFF,
        DIFF.replace("-4,2 +4,2", "-40,7 +40,7"),  # a model's counts
        DIFF.replace("@@ -4,2 +4,2 @@", "@@"),
        DIFF.replace("@@ -4,2 +4,2 @@", "@@ ... @@"),
    ],
)
def test_a_diff_applies_where_its_old_lines_stand(diff):
    assert only(propose_edits(fence(diff, "diff"), {"holds.py": HOLDS})).after == FIXED


@pytest.mark.parametrize(
    ("diff", "sentence"),
    [
        (DIFF.replace("holds.index", "hold.index"), "are not in holds.py: def position"),
        ("@@ -9 +9 @@\n-x\n+y\n", "stand 2 times in holds.py: x"),
        ("+x\n-y\n", "no hunk header"),
        ("--- a/holds.py\n+++ /dev/null\n@@ -1 +0,0 @@\n-x\n", "deletes a file"),
        ("--- a/other.py\n+++ b/other.py\n" + DIFF, "changes other.py, which was not attached"),
        ("@@ -1,0 +1 @@\n+x\n", "without saying where"),
    ],
)
def test_a_diff_without_a_place_is_refused(diff, sentence):
    proposal = propose_edits(fence(diff, "diff"), {"holds.py": HOLDS + b"x\nx\n"})
    assert not proposal.edits
    assert sentence in proposal.refused[0]


def test_a_diff_that_is_applied_already_is_no_change():
    proposal = propose_edits(fence(DIFF, "diff"), {"holds.py": FIXED})
    assert (proposal.edits, proposal.refused, proposal.unchanged) == ((), (), ("holds.py",))


def test_the_line_number_decides_between_two_places():
    file = b"x\ny\nx\n"
    edit = only(propose_edits(fence("@@ -3 +3 @@\n-x\n+z\n", "diff"), {"a.txt": file}))
    assert edit.after == b"x\ny\nz\n"


SEARCH = "<<<<<<< SEARCH\n    return holds.index(member)\n=======\n    return holds.index(member) + 1\n>>>>>>> REPLACE\n"


@pytest.mark.parametrize("info", ["python", "", "src/holds.py"])
def test_a_search_block_replaces_its_lines(info):
    edit = only(propose_edits(fence(SEARCH, info), {"src/holds.py": HOLDS}))
    assert edit.after == FIXED
    edit = only(propose_edits(fence("holds.py\n" + SEARCH, info), {"src/holds.py": HOLDS}))
    assert edit.after == FIXED


def test_a_search_block_that_does_not_end_is_refused():
    proposal = propose_edits(fence(SEARCH.split("=====", maxsplit=1)[0]), {"holds.py": HOLDS})
    assert proposal.refused == ("A SEARCH/REPLACE block of the answer does not end.",)


JS = b"""const KEEP = 7;

function position(holds, member) {
  if (!holds) {
    return null;
  }
  return holds.indexOf(member);
}

function last(holds) {
  return holds.at(-1);
}
"""


def test_a_block_of_another_language_replaces_the_one_with_its_first_line():
    code = "function position(holds, member) {\n  return holds.indexOf(member) + 1;\n}\n"
    edit = only(propose_edits(fence(code, "javascript"), {"holds.js": JS}))
    assert edit.after == JS.replace(
        b"  if (!holds) {\n    return null;\n  }\n  return holds.indexOf(member);",
        b"  return holds.indexOf(member) + 1;",
    )
    whole = JS.replace(b"indexOf(member)", b"indexOf(member) + 1")
    edit = only(propose_edits(fence(whole.decode(), "js"), {"holds.js": JS}))
    assert edit.after == whole
    assert edit.counts == (1, 1)


@pytest.mark.parametrize(
    ("code", "sentence"),
    [
        ("function first(holds) {\n}\n", "its first line is not in holds.js"),
        ("  return holds.at(-1);\n}\n\n  return null;\n", "end of the answer's code is not"),
        ("function last(holds) {\n  // ... rest of the code\n}\n", "leaves out a part of holds.js"),
        ("function last(holds) {\n  return 1;\n};\n", "end of the answer's code is not in"),
    ],
)
def test_a_block_without_a_unique_place_is_refused(code, sentence):
    proposal = propose_edits(fence(code, "js"), {"holds.js": JS})
    assert sentence in proposal.refused[0]


def test_a_program_that_does_not_parse_is_replaced_by_a_whole_one():
    broken = b"def position(holds, member:\n    return 1\n"
    assert only(propose_edits(fence(CODE), {"holds.py": broken})).after == CODE.encode()
    other = propose_edits(fence("def f():\n    return 1\n"), {"holds.py": broken})
    assert not other.edits


def test_a_file_that_is_no_text_is_refused():
    proposal = propose_edits(fence(CODE, "python holds.py"), {"holds.py": b"\xff\xfe\x00"})
    assert proposal.refused == ("holds.py is not UTF-8 and cannot be edited.",)


def test_lines_that_look_like_the_head_of_a_diff_are_counted():
    assert FileEdit("a.sql", b"-- x\n++ y\nz\n", b"z\n").counts == (0, 2)


# Applying, and taking back.


def test_an_edit_is_applied_and_taken_back(tmp_path):
    (tmp_path / "holds.py").write_bytes(HOLDS)
    (tmp_path / "holds.py").chmod(0o755)
    edits = [FileEdit("holds.py", HOLDS, FIXED), FileEdit("new/a.py", None, b"x\n")]
    apply_edits(tmp_path, edits)
    assert (tmp_path / "holds.py").read_bytes() == FIXED
    assert (tmp_path / "holds.py").stat().st_mode & 0o777 == 0o755
    assert (tmp_path / "new/a.py").read_bytes() == b"x\n"
    take_back(tmp_path, edits)
    assert (tmp_path / "holds.py").read_bytes() == HOLDS
    assert not (tmp_path / "new/a.py").exists()


def test_a_file_that_has_changed_meanwhile_stays(tmp_path):
    (tmp_path / "holds.py").write_bytes(HOLDS)
    (tmp_path / "b.py").write_bytes(b"other\n")
    edits = [FileEdit("holds.py", HOLDS, FIXED), FileEdit("b.py", b"mine\n", b"new\n")]
    with pytest.raises(InvalidTask, match=r"b.py has changed since the edit was made"):
        apply_edits(tmp_path, edits)
    assert (tmp_path / "holds.py").read_bytes() == HOLDS
    with pytest.raises(InvalidTask, match=r"holds.py has changed since the edit was applied"):
        take_back(tmp_path, edits[:1])
    (tmp_path / "a.py").write_bytes(b"")
    with pytest.raises(InvalidTask, match=r"a.py has changed"):
        apply_edits(tmp_path, [FileEdit("a.py", None, b"x\n")])


def test_nothing_is_written_if_one_file_cannot_be(tmp_path):
    (tmp_path / "a.py").write_bytes(b"a\n")
    with pytest.raises(InvalidTask, match="git's own folder"):
        apply_edits(
            tmp_path, [FileEdit("a.py", b"a\n", b"b\n"), FileEdit(".git/hooks/x", None, b"x\n")]
        )
    assert (tmp_path / "a.py").read_bytes() == b"a\n"
    (tmp_path / "link.py").symlink_to(tmp_path / "a.py")
    with pytest.raises(InvalidTask, match="symbolic link"):
        apply_edits(tmp_path, [FileEdit("link.py", b"a\n", b"b\n")])


@given(st.text(max_size=300))
def test_any_text_has_fences_or_none(text):
    for one in read_fences(text):
        assert isinstance(one.code, str)


LINES = st.lists(
    st.sampled_from(
        ["def f():", "    return 1", "", "x = 1", "# c", "\tpass", "}", "class A:", "    x = 2"]
    ),
    max_size=8,
)


@given(
    LINES,
    LINES,
    st.sampled_from(["python", "js", "diff", ""]),
    st.sampled_from(["\n", "\r\n", "\r"]),
    st.booleans(),
    st.booleans(),
)
def test_any_answer_is_offered_or_refused_and_taking_back_restores_every_byte(
    tmp_path_factory, file, code, info, newline, ends, bom
):
    folder = tmp_path_factory.mktemp("edits")
    data = ("\ufeff" if bom else "") + newline.join(file) + (newline if ends else "")
    path = "a.js" if info == "js" else "a.py"
    (folder / path).write_bytes(data.encode())
    proposal = propose_edits(
        fence("".join(f"{line}\n" for line in code), info), {path: data.encode()}
    )
    assert all(one.endswith((".", ":")) or ": " in one for one in proposal.refused)
    if proposal.edits:
        apply_edits(folder, proposal.edits)
        assert (folder / path).read_bytes() == proposal.edits[0].after
        take_back(folder, proposal.edits)
    assert (folder / path).read_bytes() == data.encode()
