"""Which files an answer may change: attached, read with a tool or named; what is stale, unread or outside."""

import pytest

from app.runtime.edited_files import offered_edits
from engine.conversations.tree import Node, NodeKind, NodeStatus, view_of
from engine.retrieval.parsing.attached_text import attached_text
from engine.retrieval.parsing.document_reader import FileText

CODE = "def first(x):\n    return x[0]\n"
ANSWER = "```python\ndef first(x):\n    return x[0] if x else None\n```\n"


def node(kind, text, calls=None):
    return view_of(Node("n", "t", None, kind, text, NodeStatus.DONE, 0.0, calls=calls))


def asked(text, *files):
    return node(NodeKind.USER, "\n\n".join([text, *map(attached_text, files)]))


def offered(root, *messages, answer=ANSWER, written=()):
    return offered_edits(root, [*messages, node(NodeKind.ASSISTANT, answer)], written)


@pytest.fixture
def root(tmp_path, monkeypatch):
    (tmp_path / "src").mkdir()
    (tmp_path / "src" / "a.py").write_text(CODE)
    monkeypatch.chdir(tmp_path)
    return tmp_path


@pytest.mark.parametrize("data", [CODE, CODE.replace("\n", "\r\n"), "\ufeff" + CODE, CODE + "\n\n"])
def test_an_attached_file_is_read(root, data):
    (root / "src" / "a.py").write_bytes(data.encode())
    offer = offered(root, asked("fix @src/a.py", FileText("a.py", CODE)))
    assert [one.path for one in offer.edits] == ["src/a.py"]
    assert not offer.unread
    assert offer.edits[0].before == data.encode()


def test_a_file_that_is_different_now_is_not_offered(root):
    offer = offered(root, asked("fix @src/a.py", FileText("a.py", "def first(x): ...")))
    assert not offer.edits
    assert offer.refused == (
        "src/a.py has changed since it was attached: name it again with @src/a.py.",
    )


def test_the_newest_text_counts_and_so_does_what_the_conversation_wrote(root):
    old = asked("fix @src/a.py", FileText("a.py", "old"))
    assert offered(root, old, asked("again @src/a.py", FileText("a.py", CODE))).edits
    assert offered(root, old, written={("src/a.py", CODE.encode())}).edits


def test_two_files_of_one_name_are_told_apart(root):
    (root / "a.py").write_text("def last(x):\n    return x[-1]\n")
    message = asked(
        "compare @a.py and @src/a.py",
        FileText("a.py", "def last(x):\n    return x[-1]\n"),
        FileText("a.py", CODE),
    )
    assert [one.path for one in offered(root, message).edits] == ["src/a.py"]


@pytest.mark.parametrize("text", ["fix a.py", "fix src/a.py please", "In `src/a.py`, first fails."])
def test_a_file_that_is_only_named_is_found_but_was_not_read(root, text):
    offer = offered(root, asked(text))
    assert [one.path for one in offer.edits] == ["src/a.py"]
    assert offer.unread == ("src/a.py",)


def test_a_file_that_a_tool_has_read_was_read(root):
    calls = (
        '[{"id": "1", "name": "read", "arguments": "{\\"path\\": \\"src/a.py\\"}", "state": "ok"}]'
    )
    offer = offered(root, asked("fix it"), node(NodeKind.TOOL, CODE, calls))
    assert [one.path for one in offer.edits] == ["src/a.py"]
    assert not offer.unread


@pytest.mark.parametrize(
    "path",
    ["../a.py", "/etc/a.py", ".git/a.py", "missing/a.py", "src/../../a.py", "node_modules/a.py"],
)
def test_nothing_outside_the_folder_is_offered(root, path):
    (root.parent / "a.py").write_text(CODE)
    offer = offered(root, asked(f"fix {path}"), answer=ANSWER.replace("python", f"python {path}"))
    assert all(one.path == "src/a.py" for one in offer.edits)
    assert not any(one.before is None for one in offer.edits)


def test_a_file_outside_that_is_attached_is_not_offered(root, tmp_path_factory):
    outside = tmp_path_factory.mktemp("outside") / "a.py"
    outside.write_text(CODE)
    (root / "src" / "a.py").unlink()
    assert not offered(root, asked(f"fix @{outside}", FileText("a.py", CODE))).edits


def test_a_new_file_in_a_folder_that_exists(root):
    answer = ANSWER.replace("python", "python src/b.py")
    (edit,) = offered(root, asked("write it"), answer=answer).edits
    assert (edit.path, edit.before) == ("src/b.py", None)


def test_a_name_that_two_files_have_is_none(root):
    (root / "lib").mkdir()
    (root / "lib" / "a.py").write_text(CODE)
    assert not offered(root, asked("fix a.py")).edits


def test_a_symbolic_link_and_an_answer_without_code(root):
    (root / "src" / "a.py").unlink()
    (root / "src" / "a.py").symlink_to("/etc/hostname")
    assert not offered(root, asked("fix src/a.py"))
    assert not offered(root, asked("fix src/a.py"), answer="No code.")
