"""Titles from first messages."""

import pytest

from engine.conversations.titles import UNTITLED, default_title, title_of


@pytest.mark.parametrize(
    ("text", "title"),
    [
        ("hello", "hello"),
        ("  two\n lines\t", "two lines"),
        ("\x1b[2Jclear", "[2Jclear"),
        ("", UNTITLED),
        ("\n \x00", UNTITLED),
        ("word " * 30, "word " * 11 + "word…"),
        ("x" * 100, "x" * 59 + "…"),
    ],
)
def test_a_title_is_one_short_line(text, title):
    assert title_of(text) == title


def test_truncation_does_not_split_a_grapheme():
    family = "\U0001f468\u200d\U0001f469\u200d\U0001f467"
    assert title_of("x" * 57 + family + "y" * 9) == "x" * 57 + "…"
    assert title_of("x" * 58 + "e\u0301" + "y" * 9) == "x" * 58 + "…"
    assert title_of("x" * 58 + "\U0001f44d\U0001f3fd" + "y" * 9) == "x" * 58 + "…"
    assert title_of("x" * 56 + "\U0001f1e9\U0001f1ea" * 2 + "y" * 9).endswith(
        "x\U0001f1e9\U0001f1ea…"
    )


@pytest.mark.parametrize(
    ("message", "title"),
    [
        ("What is the capital of France?", "What is the capital of France?"),
        (
            "Hi! Could you please explain how photosynthesis works? I have an exam tomorrow.",
            "Explain how photosynthesis works",
        ),
        ("Hello there,\n\nwhy is the sky blue?", "why is the sky blue?"),
        ("hello", "hello"),
        ("Good morning! Thanks!", "Good morning! Thanks!"),
        ("Hello world in Rust, please", "Hello world in Rust, please"),
        ("hey can you fix the tests?", "Fix the tests"),
        (
            "Thanks for your help yesterday. Now compare lists with tuples.",
            "Now compare lists with tuples",
        ),
        ("Thanks to whom was Rome saved?", "Thanks to whom was Rome saved?"),
        ("Who was Dr. Watson?", "Who was Dr. Watson?"),
        (
            "Read this:\n```python\nimport csv\n```\nWhy does it fail?",
            "Read this: Why does it fail?",
        ),
        ("```python\nimport csv\n```\nWhy does it fail?", "Why does it fail?"),
        ("```python\nimport csv\nprint(1)\n```", "import csv print(1)"),
        ("```\nunclosed code", "unclosed code"),
        ("@notes.md read it\n\nnotes.md:\n````\nthe notes\n```\n````", "@notes.md read it"),
        ("# A heading of mine\n\n- a point", "A heading of mine"),
        ("今天天气很好。我们去公园吧。", "今天天气很好。"),
        ("Wait for it...", "Wait for it..."),
        ("Look at 3.5 and e.g. 4.5. Which is more?", "Look at 3.5 and e.g. 4.5"),
        ("", UNTITLED),
        ("...", "..."),
    ],
)
def test_the_default_title_is_the_first_sentence_that_says_something(message, title):
    assert default_title(message) == title


@pytest.mark.parametrize("piece", ["`", "hi, ", "```\n", "a. ", "\n", "# "])
def test_a_hostile_message_has_a_title(piece):
    assert 0 < len(default_title(piece * 200_000)) <= 61


@pytest.mark.parametrize("head", ["lease.pdf (12 pages)", "my notes.md"])
def test_the_names_of_attached_files_are_left_out(head):
    message = f"see @lease.pdf\n\n{head}:\n```\nThe rent is 400.\n```"
    assert default_title(message) == "see @lease.pdf"
    assert default_title("Explain this:\n```\ncode\n```") == "Explain this"
