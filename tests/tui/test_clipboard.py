import pytest

from app.tui.clipboard import CopyPath, choose_path, copy

EVERYTHING = {"tmux", "wl-copy", "xclip", "xsel"}


@pytest.mark.parametrize(
    ("environ", "installed", "name", "osc52"),
    [
        ({"TMUX": "/tmp/t", "DISPLAY": ":0"}, EVERYTHING, "the tmux buffer and OSC 52", True),
        ({"TMUX": "/tmp/t"}, set(), "OSC 52", True),
        ({"SSH_TTY": "/dev/pts/1", "DISPLAY": ":0"}, EVERYTHING, "OSC 52", True),
        ({"WAYLAND_DISPLAY": "w", "DISPLAY": ":0"}, EVERYTHING, "wl-copy", False),
        ({"DISPLAY": ":0"}, EVERYTHING, "xclip", False),
        ({"DISPLAY": ":0"}, {"xsel"}, "xsel", False),
        ({}, {"pbcopy"}, "pbcopy", False),
        ({}, EVERYTHING, "OSC 52", True),
    ],
)
def test_the_path_that_works_here(environ, installed, name, osc52):
    path = choose_path(environ, lambda tool: tool if tool in installed else None)
    assert (path.name, path.osc52) == (name, osc52)


def test_a_tool_gets_the_text_on_its_input(tmp_path):
    target = tmp_path / "copied"
    path = CopyPath("tee", ("tee", str(target)), osc52=False)
    written = []
    assert copy("प्रवाह\n", path, written.append) == "tee"
    assert target.read_text() == "प्रवाह\n"
    assert written == []


def test_a_tool_that_fails_falls_back_and_says_so():
    written = []
    assert (
        copy("x", CopyPath("false", ("false",), False), written.append) == "OSC 52 (false failed)"
    )
    assert copy("y", CopyPath("gone", ("no-such-tool",), False), written.append).startswith(
        "OSC 52"
    )
    assert written == ["x", "y"]
