"""Which files the model is shown for a task, and how long ones are cut."""

import ast

import pytest

from agents.steps.code.shown_files import chosen_files, named_definitions, outline, shown_files
from agents.workspace.workspace import Workspace

QUEUE = """import os


class Queue:
    \"\"\"A queue.\"\"\"

    def put(self, item):
        # keep
        self.items.append(item)

    def get(self):
        return self.items.pop(0)


def drain(queue):
    while queue.items:
        queue.get()


def one(): return 1
"""
FILES = Workspace.of_texts({
    "shop/queue.py": QUEUE,
    "shop/prices.py": "def total(prices):\n    return sum(prices)\n",
    "shop/mail.py": "def send(message):\n    return message\n",
    "tests/test_queue.py": "def test_get():\n    assert Queue().get()\n",
    "README.md": "total",
})  # fmt: skip


@pytest.mark.parametrize(
    ("task", "paths"),
    [
        ("Change shop/prices.py", ["shop/prices.py"]),
        ("In prices.py and queue.py do it", ["shop/prices.py", "shop/queue.py"]),
        ("`total` returns a wrong sum", ["shop/prices.py"]),
        ("Queue.get fails for an empty queue", ["shop/queue.py"]),
        ("the message is lost", ["shop/mail.py"]),
        ("tests/test_queue.py is wrong", ["tests/test_queue.py"]),
    ],
)
def test_the_files_of_a_task(task, paths):
    assert [file.path for file in chosen_files(task, FILES)][: len(paths)] == paths


def test_words_are_no_definitions():
    file = Workspace.of_texts({"a.py": "def get():\n    return 1\n\ndef parse():\n    return 2\n"}).files[0]
    assert named_definitions("parse must get one value", file) == ["parse"]
    assert named_definitions("`get` is wrong", file) == ["get"]
    assert named_definitions("get() is wrong", file) == ["get"]


def test_a_long_file_is_an_outline_with_what_the_task_names():
    file = FILES.get("shop/queue.py")
    text = outline(file, ["Queue.get"])
    ast.parse(text)
    assert "return self.items.pop(0)" in text
    assert "self.items.append" not in text
    assert "def put(self, item):\n        # keep\n        ..." in text
    assert "def one(): return 1" in text


def test_what_does_not_fit_is_left_out():
    files = [FILES.get("shop/queue.py"), FILES.get("shop/prices.py")]
    room = len(outline(files[0], [])) + 5
    (shown,) = shown_files("", files, room=room, count=len)
    assert (shown.path, shown.is_whole) == ("shop/queue.py", False)
    assert shown_files("", files, room=10, count=len) == []
