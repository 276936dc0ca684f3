"""Code in answers: long lines go on in the next row, marked, and are copied as they were written."""

import pytest
from textual.selection import SELECT_ALL

from app.tui.actions.files import find_code
from app.tui.markdown_blocks.code import CodeText

LONG = "value = " + " + ".join(f"argument_{number}" for number in range(20))


def code_of(ui):
    return ui.last.query(CodeText).first()


@pytest.mark.parametrize(
    ("before", "after"),
    [
        ("```python\n{}\n```", ""),
        ("```\n{}\n```", ""),
        ("```diff\n- {}\n+ x\n```", ""),
        ("~~~~sh\n{}\n~~~~", ""),
        ("text\n\n    {}\n\n", "text"),
        ("1. item\n\n   ```python\n   {}\n   ```\n", ""),
        ("> ```\n> {}\n> ```\n", ""),
    ],
)
async def test_a_long_line_goes_on_below_with_a_mark(screen, before, after):
    async with screen(before.format(LONG) + after, size=(80, 36)) as ui:
        await ui.ask("code")
        await ui.answered()
        await ui.shown("↳ ")
        letters = "".join(letter for letter in ui.text if letter not in " \n↳▌▏")
        assert LONG.replace(" ", "") in letters


async def test_a_short_line_has_no_mark(screen):
    async with screen("```python\nx = 1\n```", size=(80, 24)) as ui:
        await ui.ask("code")
        await ui.answered()
        await ui.shown("    x = 1")
        assert "↳" not in ui.text


async def test_a_fence_that_still_grows_is_cut_into_rows_too(screen):
    filler = "".join(f"line_{number} = {number}\n" for number in range(250))
    async with screen(["```\n" + filler, LONG, "\n```\n"], size=(80, 24)) as ui:
        await ui.ask("code")
        ui.client.step(2)
        await ui.until(lambda: len(ui.last.query(".message-tail")), "the plain tail")
        await ui.shown("↳ ")


async def test_a_selection_takes_the_code_as_it_was_written(screen):
    code = f"def f():\n\treturn 1\n\n{LONG}\n    done"
    async with screen(f"```python\n{code}\n```", size=(80, 36)) as ui:
        await ui.ask("code")
        await ui.answered()
        text, _ = code_of(ui).get_selection(SELECT_ALL)
        assert text == code


async def test_a_drag_over_a_cut_line_selects_what_it_covers(screen):
    async with screen(f"```\n{LONG}\n```", size=(80, 24)) as ui:
        await ui.ask("code")
        await ui.answered()
        region = code_of(ui).region
        top = region.y + 1  # below the padding
        await ui.pilot.mouse_down(offset=(region.x + 2, top))
        await ui.pilot.hover(offset=(region.x + 2 + 4, top + 1))
        await ui.pilot.mouse_up(offset=(region.x + 2 + 4, top + 1))
        selected = ui.app.screen.get_selected_text()
        assert selected
        assert LONG.startswith(selected)
        assert len(selected) > region.width - 6


async def test_copying_takes_the_line_and_not_its_rows(screen, monkeypatch):
    async with screen(f"```python\n{LONG}\n\treturn\n```", size=(80, 36)) as ui:
        copied = []
        monkeypatch.setattr(type(ui.app.actions.files._terminal), "copy_text", _keep(copied))
        await ui.ask("code")
        await ui.answered()
        await ui.press("escape", "Y")
        assert copied == [f"{LONG}\n\treturn"]


def _keep(copied):
    return lambda self, text: copied.append(text)


def test_code_blocks_are_found():
    text = "a\n```py\none\n```\nb\n~~~~\ntwo\n```\n~~~~\n```\nopen"
    assert find_code(text) == ["one", "two\n```", "open"]


def test_code_in_lists_and_quotes_is_found_without_their_marks():
    text = "- x\n\n  ```\n  if a:\n      b\n  ```\n\n> ```\n> c\n> ```\n\ntext\n\n    d\n    e\n"
    assert find_code(text) == ["if a:\n    b", "c", "d\ne"]


def test_code_keeps_its_tabs_and_blank_lines():
    assert find_code("```make\n\nall:\n\techo  \n\n```") == ["\nall:\n\techo  \n"]
