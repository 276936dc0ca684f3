"""How a Messages request becomes a chat."""

import itertools

import pytest

from app.server.calls.messages_history import ChatHistory
from app.server.calls.thinking_signature import omitted_text, signature_of
from app.server.wire.errors import ApiError
from app.server.wire.messages_schemas import CountTokensRequest
from app.server.wire.schemas import ChatCompletionRequest

PNG = {"type": "base64", "media_type": "image/png", "data": "AAAA"}
SHOWN = {"type": "image_url", "image_url": {"url": "data:image/any;base64,AAAA"}}


def text(value):
    return {"type": "text", "text": value}


def history(*messages, system=None):
    fields = {"model": "m", "messages": list(messages), "system": system}
    translated = ChatHistory(CountTokensRequest.model_validate(fields))
    # Whatever comes out is a valid chat.
    ChatCompletionRequest.model_validate({"model": "m", "messages": translated.messages})
    return translated


def chat(*messages, system=None):
    """The messages of the chat, their contents as texts where they are only text."""
    found = history(*messages, system=system).messages
    for message in found:
        if all(part["type"] == "text" for part in message["content"]):
            message["content"] = "".join(part["text"] for part in message["content"])
    return found


def user(content):
    return {"role": "user", "content": content}


def assistant(content):
    return {"role": "assistant", "content": content}


def system(content):
    return {"role": "system", "content": content}


def call(name="f", id_="t1", **arguments):
    return {"type": "tool_use", "id": id_, "name": name, "input": arguments}


def result(content=None, id_="t1", **fields):
    return {"type": "tool_result", "tool_use_id": id_, "content": content} | fields


def tool(content, id_="t1"):
    return {"role": "tool", "content": content, "tool_call_id": id_}


class TestSystem:
    @pytest.mark.parametrize("given", ["A\n\nB", [text("A"), text("B")]])
    def test_it_is_the_first_message(self, given):
        assert chat(user("hi"), system=given) == [system("A\n\nB"), user("hi")]

    def test_messages_before_all_others_belong_to_it(self):
        given = chat(system("B"), system([text("C")]), user("hi"), system="A")
        assert given == [system("A\n\nB\n\nC"), user("hi")]

    def test_later_ones_stay_where_they_are(self):
        given = chat(
            user("hi"), system([text("agents")]), system("skills"), assistant("ok"), user("go")
        )
        assert given == [user("hi"), system("agents\n\nskills"), assistant("ok"), user("go")]

    def test_the_billing_header_is_left_out(self):
        header = text("x-anthropic-billing-header: cc_version=2.1.332.abc; cch=12345;")
        given = history(user("hi"), system=[header, text("A")])
        assert given.messages[0] == {"role": "system", "content": [text("A")]}
        assert given.ignored == ["system[0]:text"]
        assert chat(user("hi"), system=[header]) == [user("hi")]

    def test_one_for_a_single_turn_goes_with_the_next_message_of_the_user(self):
        once = system("now") | {"clear_at": "next_user_message"}
        assert chat(user("a"), once) == [user("a"), system("now")]
        assert chat(user("a"), once, assistant("b")) == [user("a"), system("now"), assistant("b")]
        assert chat(user("a"), once, assistant("b"), user("c")) == [
            user("a"),
            assistant("b"),
            user("c"),
        ]
        kept = system("now") | {"clear_at": "never"}
        assert chat(user("a"), kept, user("c"))[1] == system("now")

    def test_changes_of_tools_are_no_text(self):
        change = {"type": "tool_addition", "tool": {"type": "tool_reference", "name": "f"}}
        assert chat(user("hi"), system([change])) == [user("hi")]


class TestUser:
    def test_blocks_are_paragraphs(self):
        assert chat(user([text("a"), text("b")])) == [user("a\n\nb")]
        assert chat(user([text("a"), text(""), text("b")])) == [user("a\n\nb")]

    def test_messages_in_a_row_are_one(self):
        assert chat(user("a"), user([text("b")])) == [user("a\n\nb")]

    @pytest.mark.parametrize("empty", [[], "", None, [text("")]])
    def test_it_may_say_nothing(self, empty):
        assert chat(user(empty)) == [user("")]

    def test_images_stay_between_texts(self):
        given = history(user([text("a"), {"type": "image", "source": PNG}, text("b")]))
        assert given.messages == [user([text("a"), SHOWN, text("b")])]
        assert given.places == {"messages[0].content[1]": "messages[0].content[1]"}

    @pytest.mark.parametrize(
        ("source", "url"),
        [
            ({"type": "file", "file_id": "file-1"}, "file-1"),
            ({"type": "url", "url": "data:image/png;base64,AAAA"}, "data:image/png;base64,AAAA"),
        ],
    )
    def test_images_of_other_sources(self, source, url):
        (message,) = history(user([{"type": "image", "source": source}])).messages
        assert message["content"] == [{"type": "image_url", "image_url": {"url": url}}]

    @pytest.mark.parametrize(
        ("source", "expected"),
        [
            ({"type": "text", "media_type": "text/plain", "data": "body"}, "body"),
            ({"type": "content", "content": "body"}, "body"),
            ({"type": "content", "content": [text("bo"), text("dy")]}, "bo\n\ndy"),
        ],
    )
    def test_documents_are_texts(self, source, expected):
        document = {"type": "document", "source": source}
        assert chat(user([document])) == [user(expected)]
        titled = document | {"title": "T", "context": "C", "citations": {"enabled": True}}
        assert chat(user([titled])) == [user(f"Document: T\n\nC\n\n{expected}")]

    @pytest.mark.parametrize(
        ("block", "path"),
        [
            (
                {"type": "document", "source": {"type": "url", "url": "https://x"}},
                "content[1].source",
            ),
            (
                {
                    "type": "document",
                    "source": {
                        "type": "content",
                        "content": [
                            {"type": "document", "source": {"type": "file", "file_id": "f"}}
                        ],
                    },
                },
                "content[1].source.content[0].source",
            ),
            ({"type": "image", "source": {"type": "base64"}}, "content[1].source"),
            ({"type": "image", "source": {"type": "ftp"}}, "content[1].source"),
        ],
    )
    def test_what_cannot_be_read_is_refused_by_its_path(self, block, path):
        with pytest.raises(ApiError) as refused:
            history(user([text("a"), block]))
        assert refused.value.status_code == 400
        assert refused.value.param == f"messages[0].{path}"
        assert refused.value.param in refused.value.detail

    def test_passages_have_their_source(self):
        passage = {
            "type": "search_result",
            "title": "T",
            "source": "https://x",
            "content": [text("p")],
        }
        assert chat(user([passage])) == [user("T\nSource: https://x\n\np")]


class TestAssistant:
    def test_its_texts_are_joined_as_they_are(self):
        given = chat(user("a"), assistant([text("It is "), text("here.")]))
        assert given == [user("a"), assistant("It is here.")]

    def test_calls_and_reasoning(self):
        given = chat(
            user("a"),
            assistant(
                [
                    {"type": "thinking", "thinking": "Hm.", "signature": "s"},
                    {"type": "redacted_thinking", "data": "x"},
                    text("Let me see."),
                    call(city="Rome"),
                    call("g", "t2"),
                ]
            ),
        )
        assert given[1] == {
            "role": "assistant",
            "content": "Let me see.",
            "reasoning_content": "Hm.",
            "tool_calls": [
                {
                    "id": "t1",
                    "type": "function",
                    "function": {"name": "f", "arguments": {"city": "Rome"}},
                },
                {"id": "t2", "type": "function", "function": {"name": "g", "arguments": {}}},
            ],
        }

    def test_omitted_reasoning_comes_back_by_its_signature(self):
        omitted = {
            "type": "thinking",
            "thinking": "",
            "signature": signature_of("H\u00e9.", shown=False),
        }
        given = chat(user("a"), assistant([omitted, text("b")]), user("c"))
        assert given[1]["reasoning_content"] == "H\u00e9."

    @pytest.mark.parametrize("signature", ["", "text.", "text.***", "text./w==", "EqQBCg", None])
    def test_any_signature_is_accepted(self, signature):
        block = {"type": "thinking", "thinking": "", "signature": signature}
        assert chat(user("a"), assistant([block, text("b")]))[1] == assistant("b")
        assert omitted_text(signature or "") == ""

    def test_a_summary_of_earlier_messages_is_text(self):
        given = chat(assistant([{"type": "compaction", "content": "So far: x."}]), user("go"))
        assert given == [assistant("So far: x."), user("go")]
        failed = {"type": "compaction", "content": None}
        assert chat(assistant([failed, text("a")]), user("go"))[0] == assistant("a")

    def test_messages_in_a_row_are_one(self):
        given = chat(user("a"), assistant([text("b")]), assistant([call()]), assistant("c"))
        assert given[1]["content"] == "b\n\nc"
        assert len(given) == 2


class TestResults:
    @pytest.mark.parametrize(
        ("content", "expected"),
        [
            ("21 degrees", "21 degrees"),
            ([text("a"), text("b")], "a\n\nb"),
            (None, ""),
            ([], ""),
            ([{"type": "tool_reference", "tool_name": "g"}], "The tool g is available now."),
            (
                [{"type": "document", "source": {"type": "text", "data": "d"}}],
                "d",
            ),
        ],
    )
    def test_a_result_is_a_message(self, content, expected):
        assert chat(user("a"), assistant([call()]), user([result(content)]))[2:] == [tool(expected)]

    @pytest.mark.parametrize(
        ("content", "expected"), [("no file", "Error: no file"), (None, "Error")]
    )
    def test_an_error_is_marked(self, content, expected):
        given = chat(user([result(content, is_error=True)]))
        assert given == [tool(expected)]
        assert chat(user([result("fine", is_error=False)])) == [tool("fine")]

    def test_results_come_before_what_the_user_says(self):
        given = chat(user([text("go on"), result("1"), result("2", "t2"), text("please")]))
        assert given == [tool("1"), tool("2", "t2"), user("go on\n\nplease")]

    def test_an_image_follows_its_result(self):
        shown = [text("a picture"), {"type": "image", "source": PNG}]
        given = history(user([result(shown), text("what is it?")]))
        assert given.messages == [
            tool([text("a picture")]),
            user([text("Images in the result of the call t1:"), SHOWN, text("what is it?")]),
        ]
        assert given.places == {"messages[1].content[1]": "messages[0].content[0].content[1]"}
        only = history(user([result([{"type": "image", "source": PNG}])]))
        assert [one["role"] for one in only.messages] == ["tool", "user"]


def test_blocks_that_mean_nothing_are_listed():
    given = history(
        user([text("a"), {"type": "container_upload", "file_id": "f"}, call()]),
        assistant(
            [{"type": "server_tool_use", "id": "s"}, {"type": "image", "source": PNG}, text("b")]
        ),
        user([result([{"type": "browser_state"}, text("c")])]),
    )
    assert given.ignored == [
        "messages[0].content[1]:container_upload",
        "messages[0].content[2]:tool_use",
        "messages[1].content[0]:server_tool_use",
        "messages[1].content[1]:image",
        "messages[2].content[0].content[0]:browser_state",
    ]


def test_a_turn_begins_with_the_turn_before():
    conversation = [
        user([text("<system-reminder>x</system-reminder>"), text("do it")]),
        system("agents"),
        assistant([{"type": "thinking", "thinking": "t", "signature": "s"}, call()]),
        user([result("1"), text("and?")]),
        assistant("done"),
        user("thanks"),
    ]
    turns = [chat(*conversation[: end + 1], system="S") for end in (1, 3, 5)]
    for before, after in itertools.pairwise(turns):
        assert after[: len(before)] == before
