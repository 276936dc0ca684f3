"""`POST /v1/messages` and `/count_tokens` against the real engine with the toy executor."""

import asyncio
import json

import httpx
import pytest

from engine.api.request import FinishReason
from tests.server.byte_engine import byte_engine, is_quiet, wait_until
from tests.server.live import live
from tests.server.messages_client import ASK, accumulated, create, events_of, of_input, stream
from tests.server.scripted_engine import ScriptedEngine, batch, words
from tests.server.toy_tokenizer import IM_END

ANSWER = b"Hello, you."
BLOCK = 16
EPHEMERAL = {"type": "ephemeral"}


@pytest.fixture(scope="module")
def engine():
    force = {**dict(enumerate(ANSWER)), len(ANSWER): IM_END}
    with byte_engine(force=force, context=2048, block_size=BLOCK) as running:
        yield running


@pytest.fixture(scope="module")
def client(engine):
    with live(engine) as server, httpx.Client(base_url=server.url, timeout=60) as http:
        yield http


def unique(text):
    """A conversation of which nothing is cached."""
    return [{"role": "user", "content": f"{text} " + "x" * 100}]


def test_the_installed_models_are_not_read_on_the_event_loop(engine, monkeypatch):
    on_loop = []
    with live(engine) as server, httpx.Client(base_url=server.url, timeout=60) as http:
        names = server.context.models.names

        def read():
            try:
                asyncio.get_running_loop()
                on_loop.append(True)
            except RuntimeError:
                on_loop.append(False)
            return names()

        monkeypatch.setattr(server.context.models, "names", read)
        response = http.post("/v1/messages", json=ASK | {"model": "claude-of-another-server"})
    assert response.headers["x-pravaha-model"] == "toy"
    assert on_loop
    assert not any(on_loop)


class TestMessage:
    def test_it_has_the_members_of_the_api(self, client):
        message = create(client)
        assert message["id"].startswith("msg_")
        assert {name: message[name] for name in ("type", "role", "model")} == {
            "type": "message",
            "role": "assistant",
            "model": "toy",
        }
        text = {"type": "text", "text": ANSWER.decode(), "citations": None}
        assert message["content"] == [text]
        assert (message["stop_reason"], message["stop_sequence"]) == ("end_turn", None)
        assert message["usage"]["output_tokens"] == len(ANSWER) + 1

    def test_a_query_changes_nothing(self, client):
        response = client.post("/v1/messages?beta=true&x=%20", json=ASK)
        assert response.json()["content"] == create(client)["content"]

    def test_any_version_and_any_beta_are_accepted(self, client):
        headers = {"anthropic-version": "2099-01-01", "anthropic-beta": "a-2025,b-2026"}
        assert client.post("/v1/messages", json=ASK, headers=headers).status_code == 200

    @pytest.mark.parametrize("name", ["toy", "claude-haiku-4-5", "gpt-9", "a b\u00e9"])
    def test_any_model_is_the_loaded_one(self, client, name):
        response = client.post("/v1/messages", json=ASK | {"model": name})
        assert response.json()["model"] == response.headers["x-pravaha-model"] == "toy"

    def test_a_prefilled_answer_is_continued(self, engine, client):
        prefill = [*ASK["messages"], {"role": "assistant", "content": "He"}]
        message = create(client, messages=prefill)
        counted = client.post(
            "/v1/messages/count_tokens", json={"model": "toy", "messages": prefill}
        ).json()["input_tokens"]
        assert of_input(message["usage"]) == counted

    def test_without_an_answer_the_prompt_is_only_cached(self, client):
        fields = {"messages": unique("warm"), "cache_control": EPHEMERAL}
        warm = create(client, max_tokens=0, **fields)
        assert (warm["content"], warm["stop_reason"]) == ([], "max_tokens")
        assert warm["usage"]["output_tokens"] == 0
        again = create(client, **fields)
        created = warm["usage"]["cache_creation_input_tokens"]
        assert again["usage"]["cache_read_input_tokens"] == created > 0


class TestStops:
    @pytest.mark.parametrize("ask", [create, lambda *a, **k: accumulated(stream(*a, **k))])
    @pytest.mark.parametrize(
        ("stops", "text", "reason", "sequence"),
        [
            (["lo", "never"], "Hel", "stop_sequence", "lo"),
            (["never", "you", "H"], "", "stop_sequence", "H"),
            (["never"], "Hello, you.", "end_turn", None),
            ([], "Hello, you.", "end_turn", None),
            (["."], "Hello, you", "stop_sequence", "."),
            (["<|im_end|>"], "Hello, you.", "stop_sequence", "<|im_end|>"),
        ],
    )
    def test_the_stop_sequence_is_named(self, client, ask, stops, text, reason, sequence):
        message = ask(client, stop_sequences=stops)
        assert "".join(one["text"] for one in message["content"]) == text
        assert (message["stop_reason"], message["stop_sequence"]) == (reason, sequence)

    def test_a_limit_is_named(self, client):
        assert create(client, max_tokens=4)["stop_reason"] == "max_tokens"
        assert accumulated(stream(client, max_tokens=4))["stop_reason"] == "max_tokens"

    def test_the_end_of_the_context_is_no_limit_of_the_request(self):
        with (
            byte_engine(force=dict.fromkeys(range(64), ord("a")), context=64) as engine,
            live(engine) as server,
            httpx.Client(base_url=server.url) as client,
        ):
            message = create(client, max_tokens=10_000)
        assert message["stop_reason"] == "model_context_window_exceeded"
        assert of_input(message["usage"]) + message["usage"]["output_tokens"] == 64


class TestUsage:
    def test_what_was_cached_is_measured(self, client, engine):
        before = engine.snapshot().totals
        first, second = (create(client, messages=unique("usage"))["usage"] for _ in range(2))
        after = engine.snapshot().totals
        read = [one["cache_read_input_tokens"] for one in (first, second)]
        assert sum(read) == after.prefix_cache_hits - before.prefix_cache_hits
        assert of_input(first) == of_input(second) > read[1] > read[0]

    def test_created_is_what_a_request_that_asks_for_it_adds_to_the_cache(self, client):
        messages = unique("created")
        messages[0]["content"] = [
            {"type": "text", "text": messages[0]["content"], "cache_control": EPHEMERAL}
        ]
        first, second = (create(client, messages=messages)["usage"] for _ in range(2))
        known = first["cache_read_input_tokens"] + first["cache_creation_input_tokens"]
        assert first["cache_creation_input_tokens"] > 0
        assert known % BLOCK == 0
        assert first["input_tokens"] == of_input(first) - known < BLOCK
        assert second["cache_read_input_tokens"] == known
        assert second["cache_creation_input_tokens"] == 0
        assert (
            create(client, messages=unique("not asked"))["usage"]["cache_creation_input_tokens"]
            == 0
        )

    @pytest.mark.parametrize(
        "fields",
        [
            {"cache_control": EPHEMERAL},
            {"system": [{"type": "text", "text": "a", "cache_control": EPHEMERAL}]},
            {"tools": [{"name": "f", "cache_control": EPHEMERAL}]},
            {"tools": [{"type": "web_search_20260318", "cache_control": EPHEMERAL}]},
            {
                "messages": [
                    {
                        "role": "user",
                        "content": [
                            {
                                "type": "tool_result",
                                "tool_use_id": "t",
                                "content": [
                                    {"type": "text", "text": "b" * 50, "cache_control": EPHEMERAL}
                                ],
                            }
                        ],
                    }
                ]
            },
        ],
    )
    def test_caching_may_be_asked_for_anywhere(self, client, fields):
        marked = {"cache_salt": str(fields)} | fields  # nothing of it is cached
        usage = create(client, **marked)["usage"]
        assert usage["cache_creation_input_tokens"] == of_input(usage) // BLOCK * BLOCK > 0

    @pytest.mark.parametrize(
        "fields",
        [
            {},
            {"system": "Be brief."},
            {"system": [{"type": "text", "text": "Be brief."}], "thinking": {"type": "adaptive"}},
            {
                "messages": [
                    {"role": "user", "content": [{"type": "text", "text": "\u00e9t\u00e9"}]}
                ]
            },
            {
                "messages": [
                    *ASK["messages"],
                    {"role": "assistant", "content": "He"},
                ]
            },
        ],
    )
    def test_the_count_is_that_of_the_message(self, client, fields):
        body = {name: value for name, value in (ASK | fields).items() if name != "max_tokens"}
        response = client.post("/v1/messages/count_tokens", json=body)
        counted = response.json()
        assert list(counted) == ["input_tokens"]
        assert "x-pravaha-ignored-fields" not in response.headers
        assert counted["input_tokens"] == of_input(create(client, **fields)["usage"])

    def test_an_overlong_prompt_is_counted(self, client):
        body = ASK | {"messages": [{"role": "user", "content": "x" * 5000}]}
        assert client.post("/v1/messages/count_tokens", json=body).json()["input_tokens"] > 5000


class TestStream:
    def test_it_is_the_message_with_its_blocks_in_order(self, client):
        events = stream(client)
        assert [one["type"] for one in events if one["type"] != "content_block_delta"] == [
            "message_start",
            "ping",
            "content_block_start",
            "content_block_stop",
            "message_delta",
            "message_stop",
        ]
        start = events[0]["message"]
        assert start["content"] == []
        assert (start["stop_reason"], start["stop_sequence"]) == (None, None)
        assert all(one["index"] == 0 for one in events if one["type"].startswith("content"))
        whole, streamed = create(client), accumulated(events)
        for message in (whole, streamed):
            del message["id"]
        assert streamed == whole

    def test_the_first_event_has_the_length_of_the_prompt(self, client):
        start, *_, delta, _ = stream(client)
        usage = start["message"]["usage"]
        assert of_input(usage) == usage["input_tokens"] == of_input(delta["usage"])
        assert usage["output_tokens"] == 0

    def test_the_first_event_comes_before_the_prompt_is_read_and_pings_follow(self):
        engine = ScriptedEngine(lambda request: [])  # never answers
        with (
            live(engine, keep_alive_s=0.05) as server,
            httpx.Client(base_url=server.url) as client,
            client.stream("POST", "/v1/messages", json=ASK | {"stream": True}) as response,
        ):
            events = []
            for line in response.iter_lines():
                if line.startswith("event: "):
                    events.append(line.removeprefix("event: "))
                if len(events) == 5:
                    break
        assert events == ["message_start", *["ping"] * 4]
        assert engine.was_aborted.wait(30)

    def test_an_empty_answer_has_no_blocks(self):
        with (
            live(ScriptedEngine(words(""))) as server,
            httpx.Client(base_url=server.url) as client,
        ):
            assert create(client)["content"] == []
            assert [one["type"] for one in stream(client)] == [
                "message_start",
                "ping",
                "message_delta",
                "message_stop",
            ]

    def test_a_client_that_leaves_ends_its_request(self):
        with (
            byte_engine(step_s=0.005) as engine,
            live(engine) as server,
            httpx.Client(base_url=server.url) as client,
        ):
            fields = ASK | {"stream": True, "max_tokens": 400, "temperature": 0}
            for lines in (1, 4, 7):
                with client.stream("POST", "/v1/messages", json=fields) as response:
                    for _ in zip(range(lines), response.iter_lines(), strict=False):
                        pass
            wait_until(lambda: is_quiet(engine) and not server.context.drain.active)
            assert 'route="/v1/messages"' in client.get("/metrics").text


class TestFields:
    def test_unknown_members_are_ignored_and_listed(self, client):
        betas = {
            "context_management": {"edits": [{"type": "clear_tool_uses_20250919"}]},
            "mcp_servers": [{"type": "url", "url": "https://x", "name": "x"}],
            "container": "c-1",
        }
        unknown = {"tool_choices": 1, "reasoning_effort": "high", "best_of": 3}
        response = client.post("/v1/messages", json=ASK | betas | unknown)
        assert response.status_code == 200
        assert set(response.headers["x-pravaha-ignored-fields"].split(",")) == set(unknown)
        assert set(response.headers["x-pravaha-without-effect"].split(",")) == set(betas)

    def test_members_without_effect_are_not_listed(self, client):
        inert = {
            "metadata": {"user_id": "u"},
            "service_tier": "auto",
            "inference_geo": "us",
            "speed": "fast",
            "cache_control": {"type": "ephemeral", "ttl": "1h"},
            "user_profile_id": "p",
            "diagnostics": {"previous_message_id": None},
        }
        response = client.post("/v1/messages", json=ASK | inert)
        assert response.status_code == 200
        assert "x-pravaha-ignored-fields" not in response.headers

    def test_members_of_members_are_listed_with_their_paths(self, client):
        body = ASK | {
            "messages": [
                {"role": "user", "content": [{"type": "text", "text": "x", "new": 1}], "id": 1}
            ],
            "thinking": {"type": "later", "depth": 2},
            "output_config": {"size": 5, "task_budget": {"total": 5}},
            "tools": [{"name": "f", "input_schema": {"type": "object"}, "colour": "red"}],
        }
        response = client.post("/v1/messages", json=body)
        assert response.status_code == 200
        assert set(response.headers["x-pravaha-ignored-fields"].split(",")) == {
            "messages[0].id",
            "messages[0].content[0].new",
            "thinking.depth",
            "output_config.size",
            "tools[0].colour",
        }

    def test_blocks_and_tools_of_other_kinds_are_named(self, client):
        body = ASK | {
            "messages": [
                *ASK["messages"],
                {
                    "role": "assistant",
                    "content": [
                        {"type": "server_tool_use", "id": "s", "name": "web_search", "input": {}},
                        {"type": "web_search_tool_result", "tool_use_id": "s", "content": []},
                        {"type": "text", "text": "It rains."},
                    ],
                },
                {"role": "user", "content": [{"type": "container_upload", "file_id": "f"}]},
            ],
            "tools": [{"type": "web_search_20260318", "name": "web_search", "max_uses": 5}],
        }
        response = client.post("/v1/messages", json=body)
        assert response.status_code == 200
        assert response.headers["x-pravaha-skipped-tools"] == "web_search_20260318"
        ignored = response.headers["x-pravaha-ignored-fields"].split(",")
        assert {one for one in ignored if one.startswith("messages")} == {
            "messages[1].content[0]:server_tool_use",
            "messages[1].content[1]:web_search_tool_result",
            "messages[2].content[0]:container_upload",
        }

    def test_sampling_fields_reach_the_engine(self):
        engine = ScriptedEngine(words("ok"))
        with live(engine) as server, httpx.Client(base_url=server.url) as client:
            create(
                client,
                temperature=0.5,
                top_p=0.25,
                top_k=7,
                seed=3,
                cache_salt="s",
                stop_sequences=["a", "b"],
                max_tokens=9,
            )
        (request,) = engine.requests
        sampling = request.sampling
        assert (sampling.temperature, sampling.top_p, sampling.top_k) == (0.5, 0.25, 7)
        assert (sampling.seed, sampling.max_tokens, sampling.stop) == (3, 9, ("a", "b"))
        assert request.cache_salt == "s"

    @pytest.mark.parametrize("place", ["output_config", "output_format"])
    def test_a_schema_constrains_the_answer(self, place):
        schema = {"type": "object", "properties": {"a": {"type": "boolean"}}, "required": ["a"]}
        given = {"type": "json_schema", "schema": schema | {"additionalProperties": False}}
        fields = {place: {"format": given} if place == "output_config" else given}
        with (
            byte_engine(context=512) as engine,
            live(engine) as server,
            httpx.Client(base_url=server.url, timeout=60) as client,
        ):
            message = create(client, max_tokens=200, temperature=0, **fields)
        assert json.loads(message["content"][0]["text"])["a"] in (True, False)

    def test_strict_fields_refuses_what_is_unknown(self):
        with (
            live(ScriptedEngine(words("ok")), strict_fields=True) as server,
            httpx.Client(base_url=server.url) as client,
        ):
            assert client.post("/v1/messages", json=ASK).status_code == 200
            response = client.post("/v1/messages", json=ASK | {"colour": "red"})
        assert response.status_code == 400
        assert "colour" in response.json()["error"]["message"]


def test_a_failure_in_a_stream_is_an_error_event_and_the_end():
    def script(request):
        return [batch(request, "Hel"), batch(request, "", FinishReason.ERROR, error="It broke.")]

    with live(ScriptedEngine(script)) as server, httpx.Client(base_url=server.url) as client:
        response = client.post("/v1/messages", json=ASK | {"stream": True})
    *_, last = events_of(response.text)
    assert last == {
        "type": "error",
        "error": {"type": "api_error", "message": "It broke."},
        "request_id": response.headers["request-id"],
    }


SYSTEM_FIRST = """\
{%- for m in messages %}
{%- if m.role == 'system' and not loop.first %}{{ raise_exception('Not the first.') }}{% endif %}
{{- '<|im_start|>' + m.role + '\\n' + m.content + '<|im_end|>\\n' }}
{%- endfor %}
{%- if add_generation_prompt %}{{ '<|im_start|>assistant\\n' }}{% endif %}"""
"""A template that has a place for one system message, at the beginning."""

ALTERNATING = """\
{%- for m in messages %}
{%- if m.role not in ('user', 'assistant') or (m.role == 'user') != (loop.index0 % 2 == 0) %}
{{- raise_exception('Roles must alternate.') }}{% endif %}
{{- '<|im_start|>' + m.role + '\\n' + m.content + '<|im_end|>\\n' }}
{%- endfor %}
{%- if add_generation_prompt %}{{ '<|im_start|>assistant\\n' }}{% endif %}"""
"""A template that has no place for any."""


@pytest.mark.parametrize(
    "template", [None, SYSTEM_FIRST, ALTERNATING], ids=["anywhere", "first", "none"]
)
def test_messages_of_the_system_stay_where_they_are_said_in_any_template(template):
    """The conversation of an agent, turn by turn: each prompt begins with the one before."""
    turns = [
        {
            "role": "user",
            "content": [{"type": "text", "text": "reminder"}, {"type": "text", "text": "do it"}],
        },
        {"role": "system", "content": [{"type": "text", "text": "environment"}]},
        {"role": "assistant", "content": "I did."},
        {"role": "user", "content": "thanks"},
        {"role": "system", "content": "skills"},
    ]
    engine = ScriptedEngine(words("ok"), template=template)
    with live(engine) as server, httpx.Client(base_url=server.url) as client:
        for end in (2, 5):
            create(client, system="You are an agent.", messages=turns[:end])
    first, second = (
        engine.tokenizer.decode(one.prompt_ids, skip_special=False) for one in engine.requests
    )
    opening = "<|im_start|>assistant\n"
    assert first.endswith(opening)
    assert second.startswith(first.removesuffix(opening))
    said = ["You are an agent.", "reminder", "do it", "environment", "I did.", "thanks", "skills"]
    places = [second.index(text) for text in said]
    assert places == sorted(places)
