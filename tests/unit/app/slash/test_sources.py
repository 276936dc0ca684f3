"""The argument of `/sources`, and names of collections in messages."""

import pytest

from app.slash.sources import (
    SourcesCall,
    asked_text,
    mentioned,
    read_evidence,
    read_sources,
    without_mentions,
)
from engine.api.errors import InvalidRequest

NAMES = ("docs", "notes-2")


@pytest.mark.parametrize(
    ("argument", "call"),
    [
        ("", SourcesCall()),
        ("create docs", SourcesCall("create", "docs")),
        ("add docs a.md b", SourcesCall("add", "docs", ("a.md", "b"))),
        ('add docs "my notes/*.md"', SourcesCall("add", "docs", ("my notes/*.md",))),
        ("attach docs", SourcesCall("attach", "docs")),
        ("detach docs", SourcesCall("detach", "docs")),
        ("remove docs", SourcesCall("remove", "docs")),
        ("remove docs a.md", SourcesCall("remove", "docs", ("a.md",))),
        ("show 3", SourcesCall("show", "3")),
        ("evidence", SourcesCall("evidence")),
        ("evidence 0.3", SourcesCall("evidence", "0.3")),
        ("stop", SourcesCall("stop")),
    ],
)
def test_a_call_is_read(argument, call):
    assert read_sources(argument) == call


def test_the_home_folder_is_meant_by_a_tilde(monkeypatch):
    monkeypatch.setenv("HOME", "/home/ada")
    assert read_sources("add docs ~/papers").paths == ("/home/ada/papers",)


@pytest.mark.parametrize(
    ("argument", "sentence"),
    [
        ("frobnicate docs", "/sources takes nothing, create NAME"),
        ("create", "/sources takes nothing"),
        ("create a b", "/sources takes nothing"),
        ("add docs", "/sources takes nothing"),
        ("remove docs a b", "/sources takes nothing"),
        ("stop docs", "/sources takes nothing"),
        ("show first", "takes the number of a citation"),
        ('add docs "a', "A quote in the paths is not closed."),
    ],
)
def test_another_form_is_refused_with_a_sentence(argument, sentence):
    with pytest.raises(InvalidRequest, match=sentence):
        read_sources(argument)


@pytest.mark.parametrize(
    ("text", "names"),
    [
        ("@docs what is it?", ("docs",)),
        ("what does @notes-2 say, and @docs?", ("notes-2", "docs")),
        ("@docs @docs", ("docs",)),
        ("mail me@docs", ()),
        ("(@docs) what?", ("docs",)),
        ("what does “@docs” say", ("docs",)),
        ("@docs/a.md", ()),
        ("@other", ()),
        ("what do `@docs` and ``@notes-2`` say", ()),
        ("```python\n@docs\n```\nexplain, @notes-2", ("notes-2",)),
        ('what does "@docs" say', ("docs",)),
        ("what does @docs's page say", ("docs",)),
        ("see @docs...", ("docs",)),
        ("see @docs,@notes-2", ("docs", "notes-2")),
        ('see @"docs"', ("docs",)),
        ("@docs.md", ()),
        ("what?\n\nnote.md:\n```\n@docs\n``` ", ()),
    ],
)
def test_known_names_are_found_in_a_message(text, names):
    assert mentioned(text, NAMES) == names


def test_a_name_that_is_also_a_file_stands_for_the_file(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "docs").write_text("x")
    assert mentioned("@docs", NAMES) == ()


def test_what_a_message_says_besides_the_names():
    assert without_mentions(" @docs  @notes-2 ", NAMES) == ""
    assert without_mentions("@docs why @me", NAMES) == "why @me"
    assert without_mentions("`@docs` @docs", NAMES) == "`@docs`"


@pytest.mark.parametrize(
    ("text", "asked"),
    [
        ("@docs who is the captain?", "who is the captain?"),
        ("@docs, who is the captain?", "who is the captain?"),
        ("@docs: who is the captain?", "who is the captain?"),
        ("@docs @notes-2 who is the captain?", "who is the captain?"),
        ("Who is the captain @docs", "Who is the captain"),
        ("Who is the captain, @docs?", "Who is the captain?"),
        ("Who is the captain in @docs?", "Who is the captain in the documents?"),
        ("What does @docs say about it?", "What does the documents say about it?"),
        ("Compare @docs and @notes-2 on prices.", "Compare the documents on prices."),
        ("First line.\n@docs who is it?", "First line.\nwho is it?"),
        ("Is @property in @docs?", "Is @property in the documents?"),
        ("write to me@docs", "write to me@docs"),
        ("no name at all", "no name at all"),
        ("@docs", ""),
        ("what does `@docs` mean in @docs?", "what does `@docs` mean in the documents?"),
        ('@"docs" who is it?', "who is it?"),
        ("@docs and @other who is it?", "@docs and @other who is it?"),
    ],
)
def test_what_a_model_is_asked_has_no_name_of_a_collection(text, asked):
    assert asked_text(text, NAMES) == asked


def test_an_attached_file_of_the_same_name_stays_in_what_is_asked():
    text = "@docs what is in @notes-2?\n\ndocs:\n```\nx @notes-2\n```"
    asked = text.replace("in @notes-2", "in the documents")
    assert asked_text(text, NAMES) == asked


@pytest.mark.parametrize(("word", "number"), [("0.3", 0.3), ("0,3", 0.3), ("-1", -1), ("1", 1)])
def test_the_evidence_that_is_asked_for_is_a_number(word, number):
    assert read_evidence(word) == number


@pytest.mark.parametrize("word", ["much", "1.5", "-2", "nan", ""])
def test_other_evidence_is_refused(word):
    with pytest.raises(InvalidRequest, match="a number from 0 to 1"):
        read_evidence(word)


def test_the_beginning_of_only_one_action_stands_for_it():
    assert read_sources("att docs").action == "attach"
    with pytest.raises(InvalidRequest):
        read_sources("re docs")
