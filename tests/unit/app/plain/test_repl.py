"""The plain chat: what it prints for what is typed."""

import io

import pytest

from app.plain.commands import COMMANDS
from app.plain.repl import PlainChat
from engine.api.request import FinishReason
from engine.conversations.session import TreeSession
from engine.conversations.store import Store
from tests.fakes.chat_toys import ToyClient


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

    def __init__(self, folder):
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
        session = TreeSession(self.store, self.client, resume=self.resume)
        chat = PlainChat(session, self.client, read=read, out=out, show_prompts=typed)
        self.succeeded = chat.run()
        session.close()
        return out.getvalue()


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


def test_escapes_of_a_model_never_reach_the_terminal(chat):
    chat.client.replies = [("a\x1b[2Jb\x1b]52;c;eA==\x07c\x9b1md", FinishReason.STOP)]
    assert chat("hello") == "abcd\n"


def test_a_backslash_continues_a_line_and_two_slashes_send_one(chat):
    chat("one\\", "two", "//new")
    texts = [
        chat.client.detokenize(request.prompt_ids, skip_special=False)
        for request in chat.client.requests
    ]
    assert "user\none\ntwo<|im_end|>" in texts[0]
    assert "user\n/new<|im_end|>" in texts[1]


def test_an_unknown_command_is_not_sent_and_a_near_one_named(chat):
    assert "did you mean /trees?" in chat("/tress")
    assert chat.client.requests == []
    assert not chat.succeeded


def test_a_failed_answer_is_told_and_the_chat_goes_on(chat):
    chat.client.replies = [("so f", FinishReason.ERROR)]
    assert chat("hello", "again") == "so f\nError: the step failed\nok\n"
    assert not chat.succeeded


def test_conversations_are_listed_and_opened(chat):
    chat("about rivers", "/new", "about hills")
    shown = chat("/trees", "/open 2", "/history", "/trees HILLS", "/open 9")
    assert "1. about hills (2 messages" in shown
    assert "2. about rivers (2 messages" in shown
    assert "You: about rivers\nPravāha: ok\n" in shown
    assert "/open takes a number from 1 to 1" in shown


def test_the_system_prompt_is_shown_set_and_removed(chat):
    shown = chat("/system", "/system be brief", "/system", "hello", "/system -", "more")
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
    assert chat("/trees") == "No conversations.\n"


def test_export_writes_every_node_and_overwrites_nothing(chat, tmp_path):
    file = tmp_path / "out.jsonl"
    assert f"2 nodes written to {file}" in chat("hello", f"/export {file}")
    assert len(file.read_text().splitlines()) == 2
    assert "can't be written" in chat("hello", f"/export {file}")


def test_every_command_can_be_given_without_an_argument(chat):
    for name in COMMANDS:
        shown = chat("hello", f"/{name}")
        assert "\x1b" not in shown
        assert "no command" not in shown


def test_help_names_every_command(chat):
    shown = chat("/help")
    assert all(f"/{name}: " in shown for name in COMMANDS)


def test_a_notice_of_the_store_is_told_once(chat):
    chat.store._notices.append("The database was damaged.")
    assert chat("hello", "more").count("Note: The database was damaged.") == 1


def test_a_surplus_argument_is_refused(chat):
    shown = chat("/delete OTHER", "/new conversation", "/quit")
    assert "/delete takes no argument." in shown
    assert "/new takes no argument." in shown
    assert "archived" not in shown.lower()
