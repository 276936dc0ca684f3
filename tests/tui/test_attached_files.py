"""Files in the draft and in the transcript: tokens, folding, and a message that waits for its files."""

import threading
from concurrent.futures import Future

from app.tui.actions import documents
from engine.retrieval.parsing.document_reader import FileText
from tests.fakes.images import whole_png
from tests.retrieval.parsing.samples import docx, paragraph, pdf
from tests.tui.harness import converse

FILE = "lease.pdf (12 pages):\n```\nThe rent is 400.\n```"


async def test_a_pdf_is_shown_in_the_draft_and_as_one_row_of_the_message(
    screen, tmp_path, monkeypatch
):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "lease.pdf").write_bytes(pdf(["The rent is 400.", "Signed."]))
    async with screen("ok") as ui:
        await ui.type("what is the rent? @lease.pdf")
        await ui.shown("lease.pdf · 2 pages · ", " tok")
        await ui.press("enter")
        await ui.until(lambda: ui.session.path(), "the message")
        await ui.answered()
        sent = ui.session.path()[0].text
        assert sent.startswith("what is the rent? @lease.pdf\n\nlease.pdf (2 pages):\n```\n")
        assert "The rent is 400." in sent
        await ui.shown("▸ lease.pdf · 2 pages · ", "z shows it")
        assert "The rent is 400." not in ui.text
        await ui.press("shift+tab", "z")
        await ui.shown("The rent is 400.", "z hides it")
        await ui.press("z")
        await ui.gone("The rent is 400.")
        await ui.press("i", "up")
        assert ui.prompt.text == "what is the rent? @lease.pdf"


async def test_what_cannot_be_read_is_said_in_the_draft_and_on_sending(
    screen, tmp_path, monkeypatch
):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "secret.pdf").write_bytes(pdf(["x"], password="p"))
    async with screen() as ui:
        await ui.type("see @secret.pdf")
        await ui.shown("secret.pdf can't be attached: it is protected by a password.")
        await ui.press("enter")
        await ui.until(lambda: ui.toasts, "the reason")
        assert ui.prompt.text == "see @secret.pdf"
        assert not ui.session.path()


async def test_a_file_beyond_the_context_says_what_it_needs(screen, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "long.docx").write_bytes(docx(paragraph("word " * 4000)))
    async with screen() as ui:
        await ui.ask("see @long.docx")
        await ui.until(lambda: ui.toasts, "the reason")
        assert ui.toasts[0].startswith("long.docx has ")
        assert "the context of the model 8,192, of which 8,192 are free" in ui.toasts[0]
        assert ui.prompt.text == "see @long.docx"
        await ui.until(lambda: ui.prompt.has_class("-too-large"), "the warning in the border")
        assert "only 8.2k left" in (ui.prompt.border_subtitle or "")


class Slow:
    """A reader whose files are not finished before `goes_on`."""

    def __init__(self):
        self.goes_on = threading.Event()

    def read(self, path):
        future = Future()

        def run():
            self.goes_on.wait(30)
            if future.set_running_or_notify_cancel():
                future.set_result(FileText(path.name, "words of the file"))

        threading.Thread(target=run, daemon=True).start()
        return future


def slow_reader(ui, monkeypatch):
    monkeypatch.setattr(documents, "QUICK_S", 0.01)
    slow = Slow()
    ui.app.actions.documents._reader = slow
    return slow


async def test_a_message_waits_in_the_prompt_until_its_files_are_read(
    screen, tmp_path, monkeypatch
):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "[b].pdf").write_bytes(pdf(["x"]))
    async with screen("ok") as ui:
        slow = slow_reader(ui, monkeypatch)
        await ui.ask("see @[b].pdf")
        await ui.shown("reading [b].pdf", "then it is sent; esc leaves it here")
        assert ui.prompt.text == "see @[b].pdf"
        slow.goes_on.set()
        await ui.until(lambda: ui.session.path(), "the message")
        assert ui.prompt.text == ""
        assert "words of the file" in ui.session.path()[0].text


async def test_a_message_that_waits_is_kept_by_esc_and_by_a_change(screen, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "b.pdf").write_bytes(pdf(["x"]))
    async with screen("ok") as ui:
        slow = slow_reader(ui, monkeypatch)
        for key in ("escape", "x"):
            await ui.ask("see @b.pdf")
            await ui.shown("reading b.pdf")
            await ui.press(key)
            await ui.gone("reading b.pdf")
        slow.goes_on.set()
        await ui.settled()
        assert ui.prompt.text == "see @b.pdfx"
        assert not ui.session.path()


async def test_an_edited_question_keeps_its_files_and_can_have_more(screen, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "more.md").write_text("more words")

    def earlier(session, client):
        converse(session, client, (f"what? @lease.pdf\n\n{FILE}", "a"))

    async with screen("b", prepare=earlier) as ui:
        await ui.press("shift+tab", "k", "k", "e")
        assert ui.prompt.text == "what? @lease.pdf"
        ui.prompt.text = "what else? @lease.pdf @more.md"
        await ui.press("enter")
        await ui.answered()
        assert ui.session.path()[0].text == (
            f"what else? @lease.pdf @more.md\n\n{FILE}\n\nmore.md:\n```\nmore words\n```"
        )


async def test_a_message_that_is_taken_back_is_as_it_was_typed(screen, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "more.md").write_text("more words")
    async with screen("one two three") as ui:
        await ui.ask("first")
        ui.client.step()
        await ui.ask("see @more.md")
        await ui.until(lambda: ui.session.messages.queued, "the queue")
        await ui.press("escape")
        assert ui.prompt.text == "see @more.md"


async def test_without_files_the_key_says_so(screen):
    async with screen(prepare=lambda s, c: converse(s, c, ("q", "a"))) as ui:
        await ui.press("escape", "z")
        await ui.until(
            lambda: (
                ui.toasts == ["No file is attached to the message, and it has no calls of tools."]
            ),
            "the reason",
        )


# The draft.


async def test_the_tokens_of_the_draft_are_in_the_border(screen):
    async with screen("ok") as ui:
        await ui.type("hello world")
        await ui.until(lambda: "tok, 8.2k left" in (ui.prompt.border_subtitle or ""), "the tokens")
        tokens = len(ui.client.tokenize("hello world"))
        assert (ui.prompt.border_subtitle or "").startswith(f"{tokens} tok")
        await ui.press("enter")
        await ui.until(lambda: not ui.prompt.border_subtitle, "no tokens of an empty draft")
        await ui.answered()
        await ui.type("/model x")
        await ui.settled()
        assert not ui.prompt.border_subtitle  # a command is not sent


async def test_the_files_of_a_draft_count(screen, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "a.md").write_text("x" * 3000)
    (tmp_path / "b.png").write_bytes(whole_png(3, 2))
    async with screen() as ui:
        await ui.type("@a.md @b.png")
        await ui.shown("a.md · 1,500 tok", "b.png · image")
        await ui.until(lambda: "6.7k left" in (ui.prompt.border_subtitle or ""), "the tokens")
        await ui.press("ctrl+u")
        await ui.gone("1,500 tok")


async def test_typing_does_not_count(screen, monkeypatch):
    counted = []
    async with screen() as ui:
        files = ui.app.actions.files
        count = files.count_tokens
        monkeypatch.setattr(files, "count_tokens", lambda text: counted.append(text) or count(text))
        for letter in "many letters":
            ui.prompt.insert(letter)
        await ui.until(lambda: counted, "the count")
        assert counted == ["many letters"]
