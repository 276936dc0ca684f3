"""Completion in the prompt, unknown names, and what the history offers."""

import threading
from dataclasses import replace

from app.slash.folder_names import FolderNames
from app.tui.sending import typed_before
from tests.fakes.fake_client import FakeClient
from tests.fakes.fake_run_service import FakeRunService
from tests.fakes.fake_sources import FakeSources
from tests.fakes.installed_models import LOADED, OTHER
from tests.tui.harness import converse
from tests.tui.test_sources import DOCS, NOTES


async def test_the_argument_of_a_command_completes_from_the_installed_models(screen):
    client = FakeClient()
    client.installed = [LOADED, OTHER]
    async with screen(client=client) as ui:
        await ui.type("/model ")
        await ui.shown("fake-135m", "98 MiB, Q4_1, loaded", "qwen3-0.6b", "640 MiB, Q8_0")
        await ui.type("q")
        await ui.gone("98 MiB")
        await ui.press("tab")
        assert ui.prompt.text == "/model qwen3-0.6b"
        await ui.press("enter")
        await ui.until(lambda: client.loads, "the load")


async def test_tab_again_goes_through_the_candidates(screen):
    client = FakeClient()
    client.installed = [LOADED, OTHER, replace(OTHER, name="qwen3-4b")]
    async with screen(client=client) as ui:
        await ui.type("/model q")
        await ui.shown("qwen3-0.6b", "qwen3-4b")
        await ui.press("tab")
        assert ui.prompt.text == "/model qwen3-"
        for name in ("qwen3-0.6b", "qwen3-4b", "qwen3-0.6b"):
            await ui.press("tab")
            assert ui.prompt.text == f"/model {name}"
        await ui.type(" ")
        await ui.press("tab")
        assert ui.prompt.text == "/model qwen3-0.6b now"


async def test_themes_and_branches_complete(screen):
    async with screen(prepare=lambda s, c: converse(s, c, ("q", "a"))) as ui:
        await ui.type("/theme dar")
        await ui.press("tab")
        await ui.press("ctrl+u")
        await ui.type("/switch ma")
        await ui.press("tab")
        assert ui.prompt.text == "/switch main"


async def test_agents_and_collections_complete_after_an_at_sign(screen):
    service = FakeRunService()
    name = service.catalogue()[0]["name"]
    sources = FakeSources(DOCS, NOTES)
    async with screen(sources=sources, run_service=service) as ui:
        await ui.type("@")
        await ui.shown(name, "docs", "notes", "collection of documents")
        await ui.type("no")
        await ui.press("tab")
        assert ui.prompt.text.startswith("@notes")


async def test_completion_stands_at_the_cursor(screen, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "notes.md").touch()
    async with screen() as ui:
        await ui.type("see @n please")
        await ui.press(*["left"] * 7)
        await ui.type("o")
        await ui.shown("notes.md")
        await ui.press("tab")
        assert ui.prompt.text == "see @notes.md please"


async def test_tab_waits_for_a_slow_folder_without_holding_up_the_screen(screen):
    goes_on = threading.Event()

    def slow(folder):
        assert goes_on.wait(30)
        return ("notes.md",)

    async with screen() as ui:
        ui.app.completer._folders = FolderNames(ui.app.wake, read=slow)
        await ui.type("see @no")
        await ui.press("tab")
        assert ui.prompt.text == "see @no"
        await ui.type("t")  # keys go on
        await ui.press("tab")
        goes_on.set()
        await ui.until(lambda: ui.prompt.text == "see @notes.md", "the completion")


async def test_a_message_that_names_what_nobody_knows_stays_until_enter_again(
    screen, tmp_path, monkeypatch
):
    monkeypatch.chdir(tmp_path)
    service = FakeRunService()
    name = service.catalogue()[0]["name"]
    typo = name.replace("a", "", 1)
    async with screen("ok", sources=FakeSources(DOCS), run_service=service) as ui:
        await ui.type(f"@{typo} src")
        await ui.press("enter")
        await ui.until(lambda: ui.toasts, "the hint")
        assert f"Did you mean {name}" in ui.toasts[-1]
        assert ui.toasts[-1].endswith("Enter again sends it as it is.")
        assert ui.prompt.text == f"@{typo} src"
        assert not ui.session.path()
        await ui.press("enter")
        await ui.until(lambda: ui.session.path(), "the message")
        assert ui.session.path()[0].text == f"@{typo} src"


async def test_a_changed_message_is_looked_at_again(screen, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    async with screen(sources=FakeSources(DOCS)) as ui:
        await ui.ask("see @nosuch.py")
        await ui.until(lambda: len(ui.toasts) == 1, "the hint")
        await ui.ask("see @nosuch.pdf")
        await ui.until(lambda: len(ui.toasts) == 2, "the second hint")
        assert not ui.session.path()


async def test_prose_with_an_at_sign_is_sent_at_once(screen):
    async with screen("ok", sources=FakeSources(DOCS)) as ui:
        await ui.ask("mail me@example.com, thanks to @somebody for `@nosuch.py`")
        await ui.until(lambda: ui.session.path(), "the message")
        assert ui.toasts == []


async def test_the_beginning_of_a_collection_attaches_it(screen):
    async with screen("ok", sources=FakeSources(DOCS, NOTES)) as ui:
        await ui.ask("@not what is new?")
        await ui.until(lambda: ui.session.path(), "the message")
        assert list(ui.app.actions.sources.attached) == ["notes"]


async def test_a_command_with_an_unknown_name_stays_in_the_prompt(screen):
    async with screen(
        sources=FakeSources(DOCS), prepare=lambda s, c: converse(s, c, ("q", "a"))
    ) as ui:
        for command, said in (
            ("/modle fake", "Did you mean /model"),
            ("/theme nele", "Did you mean neel"),
            ("/switch mian", "There is no branch mian. Did you mean main"),
            ("/sources attach dosc", "There is no collection dosc. Did you mean docs?"),
            ("/attach nosuch.pdf", "There is no file nosuch.pdf."),
            ("/import nosuch.json", "There is no file nosuch.json."),
            ("/settings tmeperature", "no settings"),
            ("/sampling tmeperature=1", "There is no sampling parameter 'tmeperature'"),
            ("/merge graft mian", "There is no branch mian. Did you mean main"),
        ):
            await ui.ask(command)
            await ui.until(lambda said=said: ui.toasts and said in ui.toasts[-1], said)
            assert ui.prompt.text == command


# The history.


async def test_the_history_has_commands_and_changed_questions_after_a_restart_too(screen):
    async with screen("a", "b") as ui:
        await ui.ask("first")
        await ui.answered()
        await ui.ask("/system Be brief.")
        await ui.press("shift+tab", "k", "k", "e")
        ui.prompt.text = "first, changed"
        await ui.press("enter")
        await ui.answered()
        await ui.ask("/system Be brief.")
        await ui.ask("/system Be brief.")
        await ui.type("draft")
        for expected in ("/system Be brief.", "first, changed", "/system Be brief.", "first"):
            await ui.press("up")
            assert ui.prompt.text == expected
        await ui.press("down", "down", "down", "down")
        assert ui.prompt.text == "draft"
    async with screen() as ui:
        await ui.press("ctrl+u", "up")
        seen = {ui.prompt.text}
        for _ in range(4):
            await ui.press("up")
            seen.add(ui.prompt.text)
        assert seen == {"/system Be brief.", "first, changed", "first"}


async def test_the_history_has_calls_of_agents_and_attached_collections(screen):
    service = FakeRunService()
    call = f"@{service.catalogue()[0]['name']} do it"
    async with screen(sources=FakeSources(DOCS), run_service=service) as ui:
        await ui.ask(call)
        await ui.until(lambda: service.requests, "the run")
        await ui.ask("@docs")
        await ui.until(lambda: ui.app.actions.sources.attached, "the attachment")
        await ui.press("up")
        assert ui.prompt.text == "@docs"
        await ui.press("up")
        assert ui.prompt.text == call


async def test_up_moves_within_a_wrapped_row_first(screen):
    async with screen(prepare=lambda s, c: converse(s, c, ("earlier", "a"))) as ui:
        await ui.type("word " * 40)
        assert ui.prompt.size.height > 1
        await ui.press("up")
        assert ui.prompt.text.startswith("word word")
        await ui.press("up", "up", "up")
        assert ui.prompt.text == "earlier"


def test_the_history_has_no_texts_of_files():
    sent = "see @a.md\n\na.md:\n```\nmuch\n```"
    assert typed_before(["x", sent, "see @a.md", "y"]) == ["x", "see @a.md", "y"]


# Clearing.


async def test_one_key_clears_the_draft_and_undo_brings_it_back(screen):
    async with screen() as ui:
        ui.prompt.text = "one\ntwo\nthree"
        await ui.press("ctrl+u")
        assert ui.prompt.text == ""
        await ui.press("ctrl+z")
        assert ui.prompt.text == "one\ntwo\nthree"
        await ui.press("f1")
        await ui.shown("ctrl+u", "Clear the draft")
