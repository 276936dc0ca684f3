"""Attached files, the outside editor, and copying of code blocks and branches."""

import sys
from contextlib import nullcontext

import pytest

from tests.tui.harness import converse


@pytest.fixture
def copied(monkeypatch):
    found = []
    monkeypatch.setattr("app.tui.clipboard.copy", lambda text, *_: found.append(text) or "nothing")
    return found


async def test_a_file_is_completed_and_sent(screen, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "notes.md").write_text("the notes")
    async with screen("ok") as ui:
        await ui.type("see @n")
        await ui.shown("notes.md")
        await ui.press("tab")
        assert ui.prompt.text == "see @notes.md"
        await ui.press("enter")
        await ui.until(lambda: ui.session.path())
        assert ui.session.path()[0].text == "see @notes.md\n\nnotes.md:\n```\nthe notes\n```"


async def test_a_file_that_is_no_text_stays_in_the_prompt(screen, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "a.bin").write_bytes(b"\x7fELF\0\1\2")
    async with screen() as ui:
        await ui.ask("/attach a.bin")
        await ui.press("enter")
        await ui.until(lambda: ui.toasts)
        assert ui.toasts == ["a.bin can't be attached: it is a program."]
        assert ui.prompt.text.strip() == "@a.bin"


CODE = "text\n```py\none\n```\nmore\n```\ntwo\n```"


async def test_one_of_several_code_blocks_is_copied(screen, copied):
    async with screen(prepare=lambda s, c: converse(s, c, ("q", CODE))) as ui:
        await ui.press("escape", "Y")
        await ui.shown("Copy which code block?", "1  one", "2  two")
        await ui.press("2")
        await ui.until(lambda: copied)
        assert copied == ["two"]
        await ui.ask("/copy branch")
        await ui.until(lambda: len(copied) == 2)
        assert copied[1].startswith("# q\n\n## You\n\nq\n\n## Pravāha (fake-135m)\n\ntext\n")


async def test_the_editor_is_named_if_it_cannot_be_opened(screen, monkeypatch):
    monkeypatch.delenv("VISUAL", raising=False)
    monkeypatch.delenv("EDITOR", raising=False)
    async with screen() as ui:
        await ui.press("ctrl+g")
        await ui.until(lambda: ui.toasts)
        assert ui.toasts[0].startswith("No editor is set")
        monkeypatch.setenv("EDITOR", "vi")
        await ui.type("draft")
        await ui.press("ctrl+g")
        await ui.until(lambda: len(ui.toasts) == 2)
        assert "cannot be opened in this terminal" in ui.toasts[1]
        assert ui.prompt.text == "draft"


async def test_a_conversation_is_exported_to_the_file_that_is_asked_for(screen, tmp_path):
    async with screen(prepare=lambda s, c: converse(s, c, ("q", "an answer"))) as ui:
        await ui.press("escape", "E")
        await ui.shown("Export to", "FILE.json, .jsonl, .md or .messages.json")
        await ui.press("escape")
        await ui.gone("Export to")
        for name, said in ((tmp_path / "a.md", "Written: "), ("a.txt", "The name must end in")):
            await ui.press("E")
            await ui.type(str(name))
            await ui.press("enter")
            await ui.until(lambda said=said: ui.toasts[-1:] and ui.toasts[-1].startswith(said))
        assert (tmp_path / "a.md").read_text().endswith("an answer\n")


async def test_the_pager_gets_the_open_branch_without_control_sequences(
    screen, tmp_path, monkeypatch
):
    hostile = "an \x1b]52;c;aGk=\x07answer\x9b2J\n\nend"
    async with screen(prepare=lambda s, c: converse(s, c, ("q", hostile))) as ui:
        monkeypatch.setenv("PAGER", "cat")
        await ui.press("escape", "V")
        assert ui.toasts == ["A pager cannot be opened in this terminal: E writes a file."]
        monkeypatch.setattr(ui.app, "suspend", nullcontext)
        # While the screen is open, only `sys.__stdout__` is the terminal: descriptor 1 is the log.
        with (tmp_path / "terminal").open("w") as terminal, monkeypatch.context() as patch:
            patch.setattr(sys, "__stdout__", terminal)
            await ui.press("V")
        shown = (tmp_path / "terminal").read_text()
        assert shown == "# q\n\n## You\n\nq\n\n## Pravāha (fake-135m)\n\nan answer\n\nend\n"
        monkeypatch.setenv("PAGER", "no-such-pager")
        await ui.press("V")
        assert ui.toasts[-1].startswith("no-such-pager can't be started: ")
