"""`@image.png` on the screen, by keyboard, with a parser of the test in place of OCR."""

import pytest

from tests.fakes.fake_client import FakeClient
from tests.fakes.image_parser import ImageParser
from tests.fakes.images import whole_png
from tests.tui.harness import open_screen

SIGN, MENU = whole_png(30, 20), whole_png(20, 30)
TEXTS = {SIGN: "Closed on Sundays", MENU: "Soup 3.50"}
ASKED = "When is it closed? @sign.png"
SENT = f'{ASKED}\n\nText in the image "sign.png", read by OCR:\n> Closed on Sundays'
REMARK = "sign.png: its text was read by OCR; the model does not see the image"


@pytest.fixture
def parser(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    for name, data in (("sign.png", SIGN), ("menu.png", MENU), ("cat.png", whole_png(9, 9))):
        (tmp_path / name).write_bytes(data)
    return ImageParser(TEXTS)


def texts(ui):
    return [node.text for node in ui.session.path()]


async def test_a_image_is_completed_read_and_sent(tmp_path, parser):
    with parser.reader() as reader:
        async with open_screen(tmp_path, "On Sundays.", image_reader=reader) as ui:
            with parser.held():
                await ui.type("When is it closed? @si")
                await ui.shown("sign.png")
                await ui.press("tab", "enter")
                await ui.shown("reading sign.png", "then it is sent; esc leaves it here")
                assert ui.session.path() == []
                assert ui.prompt.text == ASKED
            await ui.until(lambda: ui.session.path(), "the message")
            assert texts(ui)[0] == SENT
            assert ui.prompt.text == ""
            await ui.answered()
            await ui.shown(REMARK, "> Closed on Sundays", "On Sundays.")
            await ui.gone("reading sign.png")


async def test_it_stays_over_a_restart_and_in_a_fork(tmp_path, parser):
    with parser.reader() as reader:
        async with open_screen(tmp_path, "One.", "Two.", image_reader=reader) as ui:
            await ui.ask(ASKED)
            await ui.until(lambda: ui.session.path(), "the message")
            await ui.answered()
            await ui.press("escape", "r")
            await ui.answered()
            assert texts(ui) == [SENT, "Two."]
            await ui.shown(REMARK)
        async with open_screen(tmp_path, image_reader=reader) as ui:
            await ui.shown(REMARK)
            assert texts(ui) == [SENT, "Two."]
    assert parser.read == [SIGN]


async def test_a_recalled_message_is_not_read_again(tmp_path, parser):
    with parser.reader() as reader:
        async with open_screen(tmp_path, "One.", "Two.", image_reader=reader) as ui:
            await ui.ask(ASKED)
            await ui.until(lambda: ui.session.path(), "the message")
            await ui.answered()
            await ui.press("up", "enter")
            await ui.until(lambda: len(ui.session.path()) > 2, "the second message")
            assert texts(ui)[2] == SENT
    assert parser.read == [SIGN]


async def test_esc_leaves_the_message_unsent(tmp_path, parser):
    with parser.reader() as reader:
        async with open_screen(tmp_path, "One.", image_reader=reader) as ui:
            with parser.held():
                await ui.ask(ASKED)
                await ui.shown("reading sign.png")
                await ui.press("escape")
                await ui.gone("reading sign.png")
            assert ui.prompt.text == ASKED
            reader.read(_opened(MENU)).result(30)  # by then the one before it has been read
            await ui.settled()
            assert ui.session.path() == []
            await ui.press("enter")
            await ui.until(lambda: ui.session.path(), "the message")
            assert texts(ui)[0] == SENT


async def test_a_message_that_is_changed_meanwhile_is_not_sent(tmp_path, parser):
    with parser.reader() as reader:
        async with open_screen(tmp_path, "One.", image_reader=reader) as ui:
            with parser.held():
                await ui.ask(ASKED)
                await ui.shown("reading sign.png")
                await ui.type("?")
                await ui.gone("reading sign.png")
            reader.read(_opened(MENU)).result(30)
            await ui.settled()
            assert ui.prompt.text == f"{ASKED}?"
            assert ui.session.path() == []


async def test_another_conversation_leaves_it_as_a_draft(tmp_path, parser):
    with parser.reader() as reader:
        async with open_screen(tmp_path, "One.", "Two.", image_reader=reader) as ui:
            await ui.ask("hello")
            await ui.answered()
            first = ui.session.tree_id
            with parser.held():
                await ui.ask(ASKED)
                await ui.shown("reading sign.png")
                await ui.press("ctrl+n")
                await ui.gone("reading sign.png")
            reader.read(_opened(MENU)).result(30)
            await ui.settled()
            assert (ui.session.path(), ui.prompt.text) == ([], "")
            await ui.app.actions.conversations.open(first)
            assert ui.prompt.text == ASKED
            assert len(ui.session.path()) == 2


async def test_a_draft_is_kept_while_it_is_read(tmp_path, parser):
    with parser.reader() as reader:
        with parser.held():
            async with open_screen(tmp_path, image_reader=reader) as ui:
                await ui.ask(ASKED)
                await ui.shown("reading sign.png")
        async with open_screen(tmp_path, image_reader=reader) as ui:
            assert ui.prompt.text == ASKED


async def test_it_is_queued_behind_an_answer(tmp_path, parser):
    with parser.reader() as reader:
        async with open_screen(tmp_path, "One.", "Two.", image_reader=reader) as ui:
            await ui.ask("hello")
            assert ui.session.answers.generating
            await ui.ask(ASKED)
            await ui.until(lambda: ui.session.messages.queued, "the queue")
            assert ui.session.messages.queued == (SENT,)
            ui.client.finish()
            await ui.until(lambda: len(ui.session.path()) > 2, "the queued message")
            await ui.answered()
            assert texts(ui) == ["hello", "One.", SENT, "Two."]


async def test_several_images_and_a_text_file(tmp_path, parser):
    (tmp_path / "notes.md").write_text("the notes")
    with parser.reader() as reader:
        async with open_screen(tmp_path, "One.", image_reader=reader) as ui:
            await ui.ask("Compare @sign.png @notes.md @menu.png")
            await ui.until(lambda: ui.session.path(), "the message")
            (text,) = texts(ui)[:1]
            assert text.count("Text in the image") == 2
            assert text.endswith("notes.md:\n```\nthe notes\n```")
            await ui.answered()
            await ui.shown(REMARK, REMARK.replace("sign.png", "menu.png"))


async def test_a_image_without_text_stays_in_the_prompt_with_the_reason(tmp_path, parser):
    with parser.reader() as reader:
        async with open_screen(tmp_path, image_reader=reader) as ui:
            await ui.ask("What is it? @cat.png")
            await ui.until(lambda: ui.toasts, "the reason")
            assert ui.toasts == [
                "cat.png cannot be read by OCR: it is an image in which no text was found."
            ]
            await ui.gone("reading cat.png")
            assert ui.prompt.text == "What is it? @cat.png"


async def test_without_ocr_the_sentence_says_what_to_do(tmp_path, parser):
    with parser.reader(installed=False) as reader:
        async with open_screen(tmp_path, image_reader=reader) as ui:
            await ui.ask(ASKED)
            await ui.until(lambda: ui.toasts, "the reason")
            assert "does not see images: load a model that does, or run" in ui.toasts[0]
            assert ui.prompt.text == ASKED
            assert ui.session.path() == []


class TestAModelThatSees:
    async def test_it_gets_the_image_which_is_kept(self, tmp_path, parser):
        with parser.reader() as reader:
            client = FakeClient("A sign.", "Yes.", sees_images=True)
            async with open_screen(tmp_path, client=client, image_reader=reader) as ui:
                await ui.ask(ASKED)
                await ui.until(lambda: ui.session.path(), "the message")
                assert [one.image.data for one in client.requests[0].images] == [SIGN]
                assert texts(ui)[0] == ASKED
                await ui.answered()
                await ui.shown("sign.png: the model sees the image", "A sign.")
                (tmp_path / "sign.png").unlink()
                await ui.ask("Really?")
                assert [one.image.data for one in client.requests[1].images] == [SIGN]
                await ui.answered()
                first = ui.session.path()[0].id
            client = FakeClient(sees_images=True)
            async with open_screen(tmp_path, client=client, image_reader=reader) as ui:
                assert [one.data for one in ui.session.nodes.images_of(first)] == [SIGN]
                await ui.shown("sign.png: the model sees the image")
        assert parser.opened == 0

    async def test_a_image_cannot_wait_for_an_answer(self, tmp_path, parser):
        with parser.reader() as reader:
            client = FakeClient("One.", sees_images=True)
            async with open_screen(tmp_path, client=client, image_reader=reader) as ui:
                await ui.ask("hello")
                await ui.ask(ASKED)
                await ui.until(lambda: ui.toasts, "the reason")
                assert "cannot wait for an answer" in ui.toasts[0]
                assert ui.prompt.text == ASKED
                await ui.answered()

    async def test_that_of_a_server_gets_the_text(self, tmp_path, parser):
        with parser.reader() as reader:
            client = FakeClient("One.", sees_images=True)
            options = {"client": client, "server": "http://there:8000"}
            async with open_screen(tmp_path, image_reader=reader, **options) as ui:
                await ui.ask(ASKED)
                await ui.until(lambda: ui.session.path(), "the message")
                assert texts(ui)[0] == SENT
                assert client.requests[0].images == ()
                await ui.answered()

    async def test_that_of_a_server_without_ocr(self, tmp_path, parser):
        with parser.reader(installed=False) as reader:
            client = FakeClient("One.", sees_images=True)
            options = {"client": client, "server": "http://there:8000"}
            async with open_screen(tmp_path, image_reader=reader, **options) as ui:
                await ui.ask(ASKED)
                await ui.until(lambda: ui.toasts, "the reason")
                assert ui.toasts[0].startswith("Images are not sent to an attached server")
                assert ui.prompt.text == ASKED


async def test_a_damaged_image_is_named(tmp_path, parser):
    (tmp_path / "cut.png").write_bytes(SIGN[:20])
    with parser.reader() as reader:
        async with open_screen(tmp_path, image_reader=reader) as ui:
            await ui.ask("/attach cut.png")
            await ui.press("enter")
            await ui.until(lambda: ui.toasts, "the reason")
            assert ui.toasts == ["cut.png is damaged: it ends within its header."]


def _opened(data):
    from engine.vision.opening import open_image

    return open_image(data)
