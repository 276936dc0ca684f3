import inspect

import pytest

from app.plain.commands import PlainCommands
from app.slash.commands import COMMANDS
from app.slash.completion import complete
from app.slash.parse import Invocation, Plain, Refused, available, matches, method_name, read
from app.tui.keys import ALL_KEYS
from app.tui.slash import build_completions
from app.tui.slash_actions import SlashActions
from app.tui.view.spans import plain


class NoNames:
    def of(self, kind):
        return {}

    def in_folder(self, folder):
        return ()


NONE = NoNames()
FRONT_ENDS = [("screen", SlashActions), ("plain", PlainCommands)]


@pytest.mark.parametrize(
    ("text", "sent"), [("hello", "hello"), ("//usr", "/usr"), ("a /new", "a /new"), ("//", "/")]
)
def test_plain_text_is_sent(text, sent):
    assert read(text, "screen") == read(text, "plain") == Plain(sent)


@pytest.mark.parametrize(
    ("text", "name", "argument"),
    [
        ("/new", "new", ""),
        ("/rename  My title ", "rename", "My title"),
        ("/QUIT", "quit", ""),
        ("/new\nseveral\nlines", "new", "several\nlines"),
    ],
)
def test_commands_are_read_with_their_argument(text, name, argument):
    found = read(text, "screen")
    assert isinstance(found, Invocation)
    assert (found.command.name, found.argument) == (name, argument)


@pytest.mark.parametrize(
    ("text", "near"), [("/thme", "/theme"), ("/nwe x", "/new"), ("/usr/bin", ""), ("/", "")]
)
def test_unknown_commands_name_their_neighbours(text, near):
    found = read(text, "screen")
    assert isinstance(found, Refused)
    assert "// sends a slash" in found.sentence
    assert near in found.sentence


def test_a_command_of_the_other_front_end_says_why():
    assert read("/theme dark", "plain") == Refused(
        "/theme is not for line mode. Line mode has no colours."
    )
    assert "/theme" not in read("/thme", "plain").sentence


@pytest.mark.parametrize(("front_end", "commands"), FRONT_ENDS)
def test_a_front_end_has_one_method_per_command(front_end, commands):
    methods = {
        name
        for name, _ in inspect.getmembers(commands, inspect.isfunction)
        if not name.startswith("_") and name != "run"
    }
    keys = {key.id for key in ALL_KEYS} if front_end == "screen" else set()
    names = {one.name for one in available(front_end) if one.key not in keys}
    assert methods == set(map(method_name, names))


def test_a_missing_command_has_a_sentence():
    for command in COMMANDS:
        for sentence in (command.not_on_screen, command.not_plain):
            assert not sentence or (not sentence[0].islower() and sentence.endswith("."))


def test_surplus_and_missing_arguments_are_refused():
    for text in ("/regen twice", "/delete OTHER", "/quit now"):
        name = text.split()[0]
        assert read(text, "screen") == Refused(f"{name} takes no argument.")
    assert read("/rename", "plain") == Refused("/rename needs an argument: TITLE.")


def test_words_that_a_command_does_not_take_are_refused():
    assert read("/mouse maybe", "screen") == Refused("/mouse takes on or off.")
    assert read("/copy all", "screen") == Refused("/copy takes code, branch or nothing.")
    assert isinstance(read("/copy code", "screen"), Invocation)
    assert isinstance(read("/system clear", "screen"), Invocation)


def test_completion_stops_once_an_argument_began():
    assert [command.name for command in matches("/re")] == ["resume", "rename", "redo", "regen"]
    assert len(matches("/")) == len(available("screen"))
    for text in ("hello", "//", "/rename x", ""):
        assert matches(text) == ()


def test_long_lists_say_how_much_is_left_out():
    left = len(available("screen")) - 7
    rows = plain(build_completions(complete("/", NONE))).splitlines()
    assert rows[-1] == f"{left} more; f1 lists all"
    assert plain(build_completions(complete("/q", NONE))).split(maxsplit=1)[0] == "/quit"


@pytest.mark.parametrize(
    ("text", "name", "argument"),
    [
        ("/mod qw", "model", "qw"),
        ("/mous of", "mouse", "off"),
        ("/cop br", "copy", "branch"),
        ("/U", "undo", ""),
    ],
)
def test_the_beginning_of_only_one_name_stands_for_it(text, name, argument):
    found = read(text, "screen")
    assert isinstance(found, Invocation)
    assert (found.command.name, found.argument) == (name, argument)


def test_the_beginning_of_several_commands_names_them():
    assert read("/re", "screen") == Refused(
        "/re begins several commands: /resume, /rename, /redo or /regen."
    )


def test_what_cannot_be_undone_is_written_out():
    assert isinstance(read("/gc y", "screen"), Refused)
    assert isinstance(read("/gc yes", "screen"), Invocation)
