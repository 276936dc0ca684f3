import pytest
from hypothesis import given
from hypothesis import strategies as st

from app.slash.mentions import mentioned_words, unknown_name, with_whole_names, without_code

AGENTS = ("security_audit", "summarizer")
COLLECTIONS = ("ferries", "properties", "handbook", "hand-tools")


@pytest.fixture(autouse=True)
def folder(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "notes.md").touch()
    (tmp_path / "src").mkdir()
    (tmp_path / "src" / "main.py").touch()
    return tmp_path


def problem(text):
    return unknown_name(with_whole_names(text, AGENTS, COLLECTIONS), AGENTS, COLLECTIONS)


@pytest.mark.parametrize(
    ("text", "sentence"),
    [
        (
            "@secrity_audit src",
            "There is no agent, collection or file secrity_audit. Did you mean security_audit",
        ),
        ("@frobnicate src", "There is no agent, collection or file frobnicate."),
        ("@nosuchfile.py", "There is no file nosuchfile.py."),
        ("see @note.md", "There is no file note.md. Did you mean notes.md?"),
        ("see @src/mian.py, please", "There is no file src/mian.py. Did you mean src/main.py?"),
        ("see @~/nosuch", "There is no file ~/nosuch."),
        ("see (@nosuch.pdf)", "There is no file nosuch.pdf."),
        ('see @"no such.pdf"', "There is no file no such.pdf."),
        ('see @"two words.pdf and go', "The quote behind an @ is not closed."),
        ("when does @feries leave?", "There is no collection feries. Did you mean ferries?"),
        ("what is in @hand?", "@hand begins several names: handbook or hand-tools."),
        ("@security_audit scr", "There is no file or folder scr. Did you mean src?"),
        ("@security_audit scr: find leaks", "There is no file or folder scr."),
        ("@security_audit src nosuch.py", "There is no file or folder nosuch.py."),
        ("@src explain", "src is a folder"),
    ],
)
def test_a_name_that_nobody_knows_is_said(text, sentence):
    assert problem(text).startswith(sentence)


@pytest.mark.parametrize(
    "text",
    [
        "mail me@example.com or bob.smith@nosuch.py",
        "@property\ndef name(self): ...",
        "why does this fail?\n@app.route('/x')\ndef x(): ...",
        "thanks to @somebody and @elonmusk",
        "run `@nosuch.py` and ``@secrity_audit``",
        "```python\n@nosuch.py\n```\nexplain",
        "~~~\n@nosuch.py",
        "write to @me@mastodon.social",
        "npm install @types/node @angular/core",
        "what is the @property decorator?",
        "see @notes.md, then @src/main.py.",
        "@ferries when?",
        "@security_audit src: find leaks",
        "@security_audit find leaks",
        "@security_audit scr the code",
        "@security_audit no",
        "@security_audit https://example.org/page.html",
        "@security_audit " + "nosuch.py " * 20,
        "@security_audit",
        "the price is 5 @ 3",
        "@",
        "@\0",
        "look\n\nnotes.md:\n```\n@nosuch.py\n```",
        'what is {"@feries": 1}?',
        "they said “@feries”",
    ],
)
def test_what_is_no_name_is_sent(text):
    assert problem(text) == ""


@pytest.mark.parametrize(
    ("text", "whole"),
    [
        ("@secu src", "@security_audit src"),
        ("@ferr when?", "@ferries when?"),
        ("when does @Ferr leave?", "when does @ferries leave?"),
        ("what is in @fe?", "what is in @fe?"),
        ("`@ferr`", "`@ferr`"),
        ("me@ferr", "me@ferr"),
        ("see @secu", "see @secu"),
        ("@notes.md @ferr, @hand", "@notes.md @ferries, @hand"),
    ],
)
def test_the_beginning_of_only_one_name_stands_for_it(text, whole):
    assert with_whole_names(text, AGENTS, COLLECTIONS) == whole


def test_a_file_is_not_taken_for_the_beginning_of_a_collection(folder):
    (folder / "ferr").touch()
    assert with_whole_names("@ferr", AGENTS, COLLECTIONS) == "@ferr"


@given(st.text('@`~ \n"ab./:(', max_size=60))
def test_offsets_stay_whatever_is_typed(text):
    assert len(without_code(text)) == len(text)
    for start, end, word, _ in mentioned_words(text):
        assert text[start : start + len(word)] == word
        assert end <= len(text)
    with_whole_names(text, AGENTS, COLLECTIONS)
