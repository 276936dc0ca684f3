"""Random Messages bodies: what is accepted is a valid chat, and anything else is refused with a sentence."""

import itertools

import httpx
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from pydantic import ValidationError

from app.server.calls.messages_history import ChatHistory
from app.server.calls.messages_tools import offered_tools
from app.server.wire.errors import ApiError
from app.server.wire.messages_schemas import MessagesRequest
from app.server.wire.schemas import ChatCompletionRequest
from tests.server.byte_engine import byte_engine
from tests.server.live import live

TEXT = st.text(max_size=5)
NAME = st.sampled_from(["f", "g", "t1", "t2"])
SOURCE = st.fixed_dictionaries(
    {"type": st.sampled_from(["text", "base64", "content", "url", "file", "other"])},
    optional={
        "data": st.one_of(TEXT, st.just("AAAA")),
        "content": st.one_of(
            TEXT, st.lists(st.fixed_dictionaries({"type": st.just("text"), "text": TEXT}))
        ),
        "url": TEXT,
        "file_id": TEXT,
        "media_type": st.one_of(st.none(), TEXT),
    },
)


def block(kind, **members):
    return st.fixed_dictionaries(
        {"type": st.just(kind), **members},
        optional={"cache_control": st.just({"type": "ephemeral"}), "new": TEXT},
    )


PLAIN = st.one_of(
    block("text", text=TEXT),
    block("image", source=SOURCE),
    block("document", source=SOURCE, title=st.one_of(st.none(), TEXT)),
    block(
        "search_result",
        source=TEXT,
        title=TEXT,
        content=st.lists(block("text", text=TEXT), max_size=2),
    ),
    block("tool_reference", tool_name=NAME),
    block("server_tool_use", id=TEXT),
    st.fixed_dictionaries({"type": st.one_of(TEXT, st.none(), st.integers())}),
)
BLOCK = st.one_of(
    PLAIN,
    block("tool_use", id=NAME, name=NAME, input=st.dictionaries(TEXT, st.integers(), max_size=2)),
    block(
        "tool_result",
        tool_use_id=NAME,
        content=st.one_of(st.none(), TEXT, st.lists(PLAIN, max_size=3)),
        is_error=st.one_of(st.none(), st.booleans()),
    ),
    block("thinking", thinking=TEXT, signature=st.one_of(TEXT, st.just("text.eA=="))),
    block("redacted_thinking", data=TEXT),
    block("compaction", content=st.one_of(st.none(), TEXT)),
    block("tool_addition", tool=st.fixed_dictionaries({"type": TEXT}, optional={"name": NAME})),
)
MESSAGE = st.fixed_dictionaries(
    {
        "role": st.sampled_from(["user", "assistant", "system"]),
        "content": st.one_of(TEXT, st.none(), st.lists(BLOCK, max_size=4)),
    },
    optional={"clear_at": st.sampled_from(["next_user_message", "never"])},
)
TOOL = st.one_of(
    st.fixed_dictionaries(
        {"name": NAME},
        optional={"input_schema": st.just({"type": "object"}), "defer_loading": st.booleans()},
    ),
    st.fixed_dictionaries(
        {"type": st.sampled_from(["custom", "bash_20250124"])}, optional={"name": NAME}
    ),
)
BODY = st.fixed_dictionaries(
    {"model": NAME, "max_tokens": st.integers(0, 3), "messages": st.lists(MESSAGE, max_size=5)},
    optional={
        "system": st.one_of(TEXT, st.lists(BLOCK, max_size=2)),
        "tools": st.lists(TOOL, max_size=3),
        "tool_choice": st.fixed_dictionaries(
            {"type": st.sampled_from(["auto", "any", "tool", "none"])}, optional={"name": NAME}
        ),
        "thinking": st.fixed_dictionaries({"type": TEXT}),
        "output_config": st.fixed_dictionaries(
            {}, optional={"effort": st.sampled_from(["low", "max"])}
        ),
    },
)


@given(BODY)
def test_whatever_is_accepted_is_a_valid_chat(body):
    try:
        request = MessagesRequest.model_validate(body)
        history = ChatHistory(request)
        offered_tools(request).fields(request)
    except (ValidationError, ApiError):
        return
    messages = history.messages
    if messages:
        ChatCompletionRequest.model_validate({"model": "m", "messages": messages})
    roles = [one["role"] for one in messages]
    repeated = [here for here, after in itertools.pairwise(roles) if here == after != "tool"]
    assert repeated == []
    assert all(path.partition("[")[0] in ("messages", "system") for path in history.ignored)


@pytest.fixture(scope="module")
def client():
    with (
        byte_engine(context=4096) as engine,
        live(engine) as server,
        httpx.Client(base_url=server.url, timeout=60) as http,
    ):
        yield http


@settings(max_examples=60, deadline=None)
@given(BODY)
def test_no_body_is_an_error_of_the_server(client, body):
    response = client.post("/v1/messages", json=body)
    assert response.status_code in (200, 400, 404), (body, response.text)
    if response.status_code == 400:
        assert response.json()["error"]["message"]
    if response.status_code == 404:
        assert response.json()["error"]["message"] == "This server keeps no files."
