from unittest.mock import Mock

import pytest

from app.tui.slash import COMMANDS, Invocation, Plain, Unknown, build_completions, matches, read
from app.tui.slash_actions import SlashActions
from app.tui.view.spans import plain


@pytest.mark.parametrize(
    ("text", "sent"), [("hello", "hello"), ("//usr", "/usr"), ("a /new", "a /new"), ("//", "/")]
)
def test_plain_text_is_sent(text, sent):
    assert read(text) == Plain(sent)


@pytest.mark.parametrize(
    ("text", "name", "argument"),
    [("/new", "new", ""), ("/rename  My title ", "rename", "My title"), ("/QUIT", "quit", "")],
)
def test_commands_are_read_with_their_argument(text, name, argument):
    found = read(text)
    assert isinstance(found, Invocation)
    assert (found.command.name, found.argument) == (name, argument)


@pytest.mark.parametrize(
    ("text", "near"), [("/thme", "theme"), ("/nwe x", "new"), ("/usr/bin", None), ("/", None)]
)
def test_unknown_commands_name_their_neighbours(text, near):
    found = read(text)
    assert isinstance(found, Unknown)
    assert (near in found.near) if near else True


def test_every_command_has_its_method():
    for command in COMMANDS:
        assert callable(getattr(SlashActions, command.action))


async def test_a_surplus_argument_is_refused():
    app = Mock()
    for text in ("/model qwen3", "/delete OTHER", "/quit now"):
        found = read(text)
        assert isinstance(found, Invocation)
        await SlashActions(app).run(found)
        name = text.split()[0]
        app.notify_safely.assert_called_with(f"{name} takes no argument.", "warning")
    assert {call[0] for call in app.mock_calls} == {"notify_safely"}


def test_completion_stops_once_an_argument_began():
    assert [command.name for command in matches("/re")] == ["resume", "rename", "regen"]
    assert len(matches("/")) == len(COMMANDS)
    for text in ("hello", "//", "/rename x", ""):
        assert matches(text) == ()


def test_long_lists_say_how_much_is_left_out():
    assert (
        plain(build_completions("/")).splitlines()[-1] == f"{len(COMMANDS) - 7} more; f1 lists all"
    )
    assert plain(build_completions("/q")).split(maxsplit=1)[0] == "/quit"
