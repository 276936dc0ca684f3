"""Collections of documents on the screen: commands, the pane, citations that open."""

from app.runtime.attachment import Attachment
from app.runtime.source_views import CollectionView, DocumentView, IndexJob
from app.runtime.stored_passages import StoredCitation, dump_citations
from app.tui.widgets.sources_passage import PassageScreen
from engine.conversations.passage_source import CheckedAnswer
from tests.fakes.fake_sources import FakeSources, Report, passage

DOCS = CollectionView("docs", 12, 340, 1)
NOTES = CollectionView("notes", 2, 9, 0)
BOLTS = passage(1, "Each bolt takes 12 newton metres. Use the short key.")
NUTS = passage(2, "Nuts are made of brass.", file="/docs/nuts.md")


def library(*found, checks=()):
    sources = FakeSources(DOCS, NOTES)
    sources.found.extend(found)
    sources.checks.extend(checks)
    return sources


async def ask_docs(ui, text="@docs how tight?"):
    """Send a message on a branch with sources, and let its answer come."""
    await ui.ask(text)
    await ui.until(lambda: ui.client.requests, "the request")
    await ui.answered()


# Commands.


async def test_a_collection_is_created_and_filled_while_the_chat_goes_on(screen):
    sources = FakeSources()
    async with screen("The answer.", sources=sources) as ui:
        await ui.ask("/sources create docs")
        await ui.shown("docs is empty: /sources add docs PATH fills it.")
        await ui.ask("/sources stop")
        assert ui.toasts[-1] == "Nothing is being added."
        await ui.ask('/sources add docs "my notes" b.md')
        assert sources.adding[0][:2] == ("docs", ("my notes", "b.md"))
        sources.progress(IndexJob("docs", "adding", 3, 40, chunks=120))
        await ui.shown("f6 adding 3/40")
        await ui.ask("hello")
        await ui.answered()
        await ui.shown("The answer.", "f6 adding 3/40")
        await ui.ask("/sources stop")
        assert sources.cancelled
        sources.added(Report(added=39, failed=["x"]))
        await ui.gone("adding 3/40")
        assert ui.toasts[-1].startswith("39 documents added to docs, 1 cannot be read")


async def test_adding_leaves_out_patterns_and_sets_attributes(screen):
    sources = library()
    async with screen(sources=sources) as ui:
        await ui.ask(
            '/sources add docs x --exclude "*.log" --attribute year=2026 --attribute kind=manual'
        )
        assert sources.adding[0][:2] == ("docs", ("x",))
        assert sources.options == (("*.log",), {"year": 2026, "kind": "manual"})
        await ui.ask("/sources add docs x --exlude y")
        assert ui.toasts[-1].startswith("/sources add has no option --exlude.")


async def test_a_refresh_says_what_has_changed(screen):
    sources = library()
    sources.updates.append(Report(added=1, updated=2, removed=1))
    async with screen(sources=sources) as ui:
        await ui.ask("/sources refresh docs")
        await ui.until(lambda: "docs: 1 new, 2 changed, 1 gone." in ui.toasts)
        await ui.ask("/sources refresh docs")
        await ui.until(lambda: "docs is up to date." in ui.toasts)


async def test_a_watched_collection_is_shown_as_such_and_tells_what_it_reads(screen):
    sources = library()
    async with screen(sources=sources, size=(160, 40)) as ui:
        await ui.ask("/sources watch docs")
        assert any(one.startswith("docs is watched until you quit") for one in ui.toasts)
        await ui.shown("f6 watching docs")
        sources.watching["docs"](Report(updated=1), "")
        await ui.until(lambda: "docs: 1 changed." in ui.toasts)
        await ui.press("f6")
        await ui.shown("watched")
        await ui.press("W")  # on docs
        assert sources.watching == {}
        await ui.until(lambda: "docs is not watched any more." in ui.toasts)
        await ui.gone("watched  ")
        await ui.press("W")
        sources.watching.pop("docs")(None, "There is no collection docs.")
        reason = "docs is not watched any more: There is no collection docs."
        await ui.until(lambda: reason in ui.toasts)


async def test_without_the_embedding_model_adding_offers_to_download_it(screen):
    sources = library()
    sources.has_model = False
    async with screen(sources=sources) as ui:
        await ui.ask("/sources add docs x")
        await ui.shown("Download it now (91 MB)?")
        await ui.press("n")
        assert sources.adding == []
        assert any("pravaha models add minilm" in one for one in ui.toasts)
        await ui.ask("/sources add docs x")
        await ui.shown("Download it now")
        await ui.press("y")
        await ui.until(lambda: sources.adding, "adding")
        assert sources.fetched


async def test_a_failure_is_one_sentence(screen):
    async with screen(sources=library()) as ui:
        for argument, sentence in (
            ("create docs", "There is a collection docs already."),
            ("attach dosc", "There is no collection dosc. Did you mean docs?"),
            ("detach docs", "docs is not attached to this branch."),
            ("frobnicate", "/sources takes nothing, create NAME, add NAME PATH…"),
        ):
            await ui.ask(f"/sources {argument}")
            assert ui.toasts[-1].startswith(sentence)


async def test_deleting_a_collection_asks(screen):
    sources = library()
    async with screen(sources=sources) as ui:
        await ui.ask("/sources remove docs")
        await ui.shown("Delete the collection docs?")
        await ui.press("n")
        assert DOCS in sources.collections
        await ui.ask("/sources remove docs")
        await ui.shown("Delete the collection docs?")
        await ui.press("y")
        await ui.until(lambda: DOCS not in sources.collections)
        await ui.shown("3 documents of docs deleted from the index.")


async def test_a_deleted_collection_is_detached_from_the_branch(screen):
    async with screen(sources=library()) as ui:
        await ui.ask("/sources attach docs year>2000")
        await ui.ask("/sources remove docs")
        await ui.shown("Delete the collection docs?")
        await ui.press("y")
        await ui.until(lambda: ui.session.sources.names == (), "the detachment")
        assert ui.toasts[-1].endswith("docs is no longer attached to this branch.")


# Attaching.


async def test_a_name_after_an_at_sign_attaches_the_collection_and_completes(screen):
    sources = library([BOLTS])
    async with screen("12 Nm [1].", sources=sources) as ui:
        await ui.type("@do")
        await ui.shown("docs", "collection of documents")
        await ui.press("tab")
        assert ui.prompt.text.startswith("@docs")
        await ui.ask("@docs how tight?")
        assert ui.session.sources.names == ("docs",)
        assert sources.searched == [(("docs",), "@docs how tight?")]
        read = ui.client.detokenize(ui.client.requests[0].prompt_ids)
        assert BOLTS.text in read
        assert "how tight?" in read
        assert "@docs" not in read
        assert ui.session.path()[0].text == "@docs how tight?"
        await ui.shown("1 passage from docs")


async def test_conditions_on_attributes_choose_the_documents_that_are_searched(screen):
    sources = library([BOLTS], [BOLTS])
    async with screen("12 [1]", "12 [1]", sources=sources, size=(160, 40)) as ui:
        await ui.ask("/sources attach docs year>=2025 'kind=user manual'")
        assert ui.toasts[-1].startswith("docs (year>=2025, kind=user manual) is attached")
        assert ui.toasts[-1].endswith("Documents that fit: 12.")
        await ask_docs(ui)  # @docs keeps the conditions
        ((stored,),) = [names for names, _ in sources.searched]
        assert Attachment.of(stored).where == {
            "type": "and",
            "filters": [
                {"type": "gte", "key": "year", "value": 2025},
                {"type": "eq", "key": "kind", "value": "user manual"},
            ],
        }
        await ui.press("f6")
        await ui.shown("attached to this branch: docs (year>=2025, kind=user manual)")
        await ui.ask("/sources attach docs")
        assert ui.session.sources.names == ("docs",)
        await ui.ask("/undo")
        assert ui.session.sources.names == (stored,)
        await ui.ask("/sources attach docs year")
        assert ui.toasts[-1].startswith("'year' is no condition")
        await ui.ask("/sources detach docs")
        assert ui.session.sources.names == ()


async def test_a_name_that_is_nearly_a_collection_is_named(screen):
    async with screen("ok", sources=library()) as ui:
        await ui.ask("@dosc how tight?")
        sentence = (
            "There is no collection or file dosc. Did you mean docs? Enter again sends it as it is."
        )
        assert ui.toasts == [sentence]
        assert not ui.session.path()
        await ui.ask("what does @property do?")
        assert ui.toasts == [sentence]
        assert ui.session.path()


async def test_the_palette_attaches_a_collection(screen):
    async with screen(sources=library()) as ui:
        await ui.press("ctrl+p")
        await ui.type("Attach: notes")
        await ui.shown("collection of documents")
        await ui.press("enter")
        await ui.until(lambda: ui.session.sources.names == ("notes",), "the attachment")


async def test_a_name_alone_attaches_and_sends_nothing(screen):
    async with screen(sources=library()) as ui:
        await ui.ask("@docs @notes")
        assert ui.session.sources.names == ("docs", "notes")
        assert ui.session.path() == []
        assert "docs, notes attached: answers of this branch are taken from it." in ui.toasts


async def test_a_file_of_the_same_name_stays_a_file(screen, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "docs").write_text("the text of the file")
    async with screen("ok", sources=library()) as ui:
        await ui.ask("@docs what?")
        assert ui.session.sources.names == ()
        assert "the text of the file" in ui.session.path()[0].text


async def test_a_fork_keeps_its_sources(screen):
    sources = library([BOLTS], [NUTS])
    async with screen("12 [1]", "brass [1]", sources=sources) as ui:
        await ask_docs(ui)
        await ui.ask("/fork")
        await ui.ask("and nuts?")
        assert [names for names, _ in sources.searched] == [("docs",), ("docs",)]


# Declined questions.


async def test_a_declined_message_shows_the_rule_and_a_key_has_it_answered_anyway(screen):
    sources = library([], [BOLTS])
    sources.declined = "No document has the name Zoral."
    async with screen("No.", "12 Nm [1].", sources=sources) as ui:
        await ask_docs(ui, "@docs how tight is Zoral?")
        await ui.shown("No document has the name Zoral.", "O answers it anyway")
        await ui.press("shift+tab", "O")
        await ui.until(lambda: len(ui.client.requests) == 2, "the second request")
        await ui.answered()
        await ui.shown("12 Nm [1].", "1 passage from docs")
        assert sources.anyway == [False, True]
        await ui.press("O")
        await ui.until(lambda: "do not answer is asked again" in ui.toasts[-1])


async def test_the_evidence_that_is_asked_for_is_shown_and_set(screen):
    sources = library()
    async with screen(sources=sources) as ui:
        await ui.ask("/sources evidence")
        assert ui.toasts[-1].startswith("A passage must have an evidence of 0.44")
        await ui.ask("/sources evidence 0.3")
        assert sources.min_evidence == 0.3
        assert "an evidence of 0.3 " in ui.toasts[-1]
        await ui.ask("/sources evidence much")
        assert "takes a number from 0 to 1" in ui.toasts[-1]


# Citations.


async def test_a_key_opens_the_cited_passages_with_the_words_lit(screen, monkeypatch):
    copied = []
    words = (BOLTS.start, BOLTS.start + len("Each bolt takes 12 newton metres."))
    checked = CheckedAnswer(
        "12 Nm [1]. Brass [2].",
        dump_citations(
            [StoredCitation(1, True, *words), StoredCitation(2, True, NUTS.start, NUTS.end)]
        ),
    )
    sources = library([BOLTS, NUTS], checks=[checked])
    async with screen("12 Nm [1]. Brass [2].", sources=sources) as ui:
        await ask_docs(ui)
        await ui.shown("[1] guide.md:10  Install > Linux", "[2] nuts.md:20")
        monkeypatch.setattr(ui.app.terminal, "copy_text", copied.append)
        await ui.press("shift+tab", "C")
        await ui.shown("Each bolt takes 12 newton metres.", "Before it.", "After it.", "1 of 2")
        assert sources.opened[0] == (sources.opened[0][0], words)
        await ui.press("n")
        await ui.shown("Nuts are made of brass.", "2 of 2")
        await ui.press("y")
        assert copied == [f"{NUTS.text}\n\n(/docs/nuts.md:20)"]
        await ui.press("n")
        await ui.shown("1 of 2")
        await ui.press("escape")
        assert not isinstance(ui.app.screen, PassageScreen)


async def test_a_click_on_a_citation_or_on_the_row_below_opens_the_passage(screen):
    sources = library([BOLTS, NUTS])
    async with screen("Twelve [2].", sources=sources) as ui:
        await ask_docs(ui)
        rows = ui.text.split("\n")
        y = next(at for at, row in enumerate(rows) if "Twelve [2]" in row)
        await ui.pilot.click(offset=(rows[y].index("[2]") + 1, y))
        await ui.shown("Nuts are made of brass.", "nuts.md")
        await ui.press("escape")
        await ui.shown("[2] nuts.md:20")
        rows = ui.text.split("\n")
        y = next(at for at, row in enumerate(rows) if "nuts.md:20" in row)
        await ui.pilot.click(offset=(rows[y].index("nuts.md"), y))
        await ui.shown("Nuts are made of brass.", "from docs")


async def test_a_citation_without_support_is_dropped_visibly(screen, tmp_path):
    citations = dump_citations([StoredCitation(1, False, 0, 0)])
    checked = CheckedAnswer("Gold [unsupported].", citations)
    async with screen("Gold [1].", sources=library([BOLTS], checks=[checked])) as ui:
        await ask_docs(ui)
        await ui.shown("Gold [unsupported].", "1 citation dropped: [1] without support")
        await ui.shown("no passage supports this answer")
        await ui.gone("Gold [1].")
        await ui.press("shift+tab", "C")
        await ui.until(lambda: "The answer cites no passage." in ui.toasts)


async def test_a_citation_that_the_check_adds_is_shown_and_opens(screen):
    citations = dump_citations([StoredCitation(1, True, BOLTS.start, BOLTS.end)])
    checked = CheckedAnswer("It takes 12 Nm. [1]", citations)
    async with screen("It takes 12 Nm.", sources=library([BOLTS], checks=[checked])) as ui:
        await ask_docs(ui)
        await ui.shown("It takes 12 Nm. [1]", "guide.md:10")
        await ui.press("shift+tab", "C")
        await ui.shown("Each bolt takes 12 newton metres.")


async def test_numbers_that_are_no_citation_are_no_links(screen):
    text = "See [7] and `a[1]` and [1](https://example.org)."
    async with screen(text, "See [1].", sources=library([BOLTS])) as ui:
        await ask_docs(ui)
        await ui.press("shift+tab", "C")
        await ui.until(lambda: "The answer cites no passage." in ui.toasts)
        await ask_docs(ui, "and now?")  # nothing is found
        await ui.shown("nothing was found in the attached documents")
        ui.app.clear_notifications()
        await ui.press("shift+tab", "C")
        await ui.until(lambda: "The answer cites no passage." in ui.toasts)


async def test_control_sequences_of_a_document_never_reach_the_terminal(screen):
    hostile = passage(1, "bad \x1b]52;c;aGk=\x07\x1b[2J text", file="/docs/\x1b[31mred.md")
    async with screen("Bad [1].", sources=library([hostile])) as ui:
        await ask_docs(ui)
        await ui.press("shift+tab", "C")
        await ui.shown("bad  text", "red.md")
        assert "\x1b" not in ui.text


# The pane.


async def test_the_pane_lists_collections_documents_and_the_passages_of_the_last_answer(screen):
    sources = library([BOLTS, NUTS])
    sources.listed["docs"] = (
        DocumentView("/docs/scan.pdf", 0, "The file is encrypted."),
        DocumentView("/docs/guide.md", 21),
    )
    async with screen("Twelve [1].", sources=sources, size=(160, 40)) as ui:
        await ask_docs(ui)
        await ui.press("f6")
        await ui.shown("attached to this branch: docs", "340", "Passages of the last answer")
        row = next(one for one in ui.text.split("\n") if "guide.md:10" in one)
        assert "cited" in row
        assert "not cached" in row
        other = next(one for one in ui.text.split("\n") if "nuts.md:20" in one)
        assert "cited" not in other
        await ui.press("enter")  # on docs
        await ui.shown("/docs/guide.md", "The file is encrypted.")
        await ui.press("j", "j", "j", "space")  # on notes
        assert ui.session.sources.names == ("docs", "notes")
        await ui.press("j", "j", "enter")
        await ui.shown("Nuts are made of brass.")


async def test_a_key_deletes_a_document_or_the_collection(screen):
    sources = library()
    sources.listed["docs"] = (DocumentView("/docs/guide.md", 21, attributes="year=2026"),)
    async with screen(sources=sources, size=(160, 40)) as ui:
        await ui.press("f6")
        await ui.shown("docs")
        await ui.press("enter")
        await ui.shown("/docs/guide.md  year=2026")
        await ui.press("j", "D")
        await ui.shown("Delete /docs/guide.md from docs?")
        await ui.press("n", "k", "D")
        await ui.shown("Delete the collection docs?")
        await ui.press("y")
        await ui.until(lambda: DOCS not in sources.collections)


async def test_an_imported_conversation_says_which_collection_it_was_answered_from(
    screen, tmp_path
):
    async with screen("12 [1]", sources=library([BOLTS])) as ui:
        await ask_docs(ui)
        await ui.ask(f"/export {tmp_path / 'asked.json'}")
        await ui.ask(f"/import {tmp_path / 'asked.json'}")
        await ui.until(lambda: ui.toasts[-1].startswith("Its answers were taken from docs, which"))


async def test_a_replay_has_no_collections(screen):
    async with screen("ok") as ui:
        await ui.ask("@docs how tight?")
        assert (
            "@docs is sent as text. There are no collections here: a replay has none." in ui.toasts
        )
        await ui.press("f6")
        await ui.shown("There are no collections here: a replay has none.")
        await ui.ask("/sources create docs")
        assert "There are no collections here: a replay has none." in ui.toasts
