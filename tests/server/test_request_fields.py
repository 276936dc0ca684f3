import inspect
import json
from dataclasses import replace

import httpx
import openai
import pytest
from openai.types import chat as chat_types

from app.server.wire.fields import UNSUPPORTED, discard_undeclared, header_value
from app.server.wire.schemas import COMPLETION_DEFAULT_TOKENS, ChatCompletionRequest
from engine.api.generation_defaults import GenerationDefaults
from tests.fakes.tool_template import TOOL_TEMPLATE, tool_call
from tests.server.live import live
from tests.server.scripted_engine import ScriptedEngine, words

CHAT = {"model": "toy", "messages": [{"role": "user", "content": "hi"}]}
NOT_A_DEFAULT = {"never": "inert"}


@pytest.fixture(scope="module")
def engine():
    scripted = ScriptedEngine(words("ok"))
    scripted.info = replace(scripted.info, context_length=2048)  # tools take a few hundred bytes
    return scripted


@pytest.fixture(scope="module")
def client(engine):
    with live(engine) as server, httpx.Client(base_url=server.url) as http:
        yield http


def chat(client, **fields):
    return client.post("/v1/chat/completions", json=CHAT | fields)


def complete(client, **fields):
    return client.post("/v1/completions", json={"model": "toy", "prompt": "hi"} | fields)


def with_field(client, name, value):
    """Use the field in the endpoint that does not declare it."""
    post = complete if name in ChatCompletionRequest.model_fields else chat
    return post(client, **{name: value})


TRANSPORT = {"self", "extra_headers", "extra_query", "extra_body", "timeout"}
"""Parameters of the official client's methods that are not in the body."""

SDK = {
    "/v1/chat/completions": (openai.resources.chat.Completions, CHAT),
    "/v1/completions": (openai.resources.Completions, {"model": "toy", "prompt": "hi"}),
    "/v1/embeddings": (openai.resources.Embeddings, {"model": "minilm", "input": "hi"}),
}

WITHOUT_EFFECT = {
    "audio", "metadata", "prediction", "prompt_cache_key", "prompt_cache_options", "prompt_cache_retention",
    "safety_identifier", "service_tier", "store", "user", "verbosity",
}  # fmt: skip
"""Fields of the official client that may have any value here."""

WITHOUT_EFFECT_INSIDE = {"name", "prompt_cache_breakpoint"}
"""Members of the official client's messages and parts that may have any value here."""

OTHER_SERVERS = (
    "allowed_token_ids", "bad_words", "cache_salt", "chat_template", "continue_final_message",
    "documents", "dry_multiplier", "ebnf", "grammar",
    "length_penalty", "logits_processors", "lora_path", "min_tokens", "mirostat", "n_predict",
    "regex", "repeat_penalty", "skip_special_tokens", "structural_tag", "truncate_prompt_tokens",
    "typical_p", "use_beam_search",
)  # fmt: skip
"""Fields of vLLM, SGLang and llama.cpp that would change an answer."""


def refusals(post, names):
    """Of each name with a value that no field has: the field that the 400 names, or the status."""
    errors = {}
    for name in names:
        response = post(name)
        param = response.json().get("error", {}).get("param") or ""
        errors[name] = param.split(".")[-1 if "]" in param else 0] or response.status_code
    return errors


@pytest.mark.parametrize("path", SDK)
def test_no_field_of_the_official_client_is_dropped(client, path):
    api, body = SDK[path]
    fields = set(inspect.signature(api.create).parameters) - TRANSPORT
    assert set(body) <= fields  # the signature was understood
    fields -= WITHOUT_EFFECT
    found = refusals(lambda name: client.post(path, json=body | {name: NOT_A_DEFAULT}), fields)
    assert found == {name: name for name in fields}


@pytest.mark.parametrize("kind", ["Developer", "System", "User", "Assistant", "Tool"])
def test_no_field_of_the_official_clients_messages_is_dropped(client, kind):
    fields = set(getattr(chat_types, f"ChatCompletion{kind}MessageParam").__annotations__)
    assert {"role", "content"} <= fields
    fields -= WITHOUT_EFFECT_INSIDE
    turn = {"role": kind.lower(), "content": "x"}
    if kind == "Tool":
        turn["tool_call_id"] = "a"
    found = refusals(lambda name: chat(client, messages=[turn | {name: NOT_A_DEFAULT}]), fields)
    assert found == {name: name for name in fields}


def test_no_field_of_the_official_clients_text_parts_is_dropped(client):
    fields = set(chat_types.ChatCompletionContentPartTextParam.__annotations__)
    assert fields - WITHOUT_EFFECT_INSIDE == {"type", "text"}
    part = dict.fromkeys(fields, NOT_A_DEFAULT) | {"type": "text", "text": "x"}
    response = chat(client, messages=[{"role": "user", "content": [part]}])
    assert response.status_code == 200
    assert "x-pravaha-ignored-fields" not in response.headers


def test_fields_of_other_servers_are_refused_by_name(client):
    found = refusals(lambda name: chat(client, **{name: NOT_A_DEFAULT}), OTHER_SERVERS)
    assert found == {name: name for name in OTHER_SERVERS}


def test_an_unsupported_field_is_refused_with_its_code_and_its_name(client):
    error = complete(client, tools=[{"type": "function"}]).json()["error"]
    assert (error["code"], error["param"]) == ("unsupported_parameter", "tools")
    assert "`tools`" in error["message"]


def test_an_unsupported_field_may_be_null(client):
    statuses = {name: with_field(client, name, None).status_code for name in UNSUPPORTED}
    assert statuses == dict.fromkeys(UNSUPPORTED, 200)


@pytest.mark.parametrize(
    ("name", "value", "status"),
    [
        ("response_format", {"type": "text"}, 200),
        ("tools", [], 200),
        ("tools", [{"type": "function", "function": {"name": "f"}}], 200),
        ("tools", [{"type": "function"}], 400),
        ("tool_choice", "auto", 200),
        ("tool_choice", "required", 400),
        ("min_tokens", 0, 200),
        ("min_tokens", False, 400),
        ("min_tokens", 3, 400),
        ("typical_p", 1.0, 200),
        ("typical_p", 0.9, 400),
        ("skip_special_tokens", True, 200),
        ("skip_special_tokens", False, 400),
        ("cache_salt", "tenant", 200),
        ("cache_salt", None, 200),
        ("cache_salt", "", 400),
        ("cache_salt", 5, 400),
        ("cache_salt", "x" * 1025, 400),
        ("echo", False, 200),
        ("echo", True, 400),
        ("enable_thinking", False, 200),
        ("enable_thinking", True, 200),
        ("reasoning_effort", "high", 200),
        ("reasoning_effort", "", 400),
        ("chat_template_kwargs", {"enable_thinking": False}, 200),
        ("chat_template_kwargs", ["enable_thinking"], 400),
        ("best_of", 1, 200),
        ("best_of", 2, 400),
        ("prediction", {"type": "content", "content": "x"}, 200),
        ("function_call", "auto", 200),
        ("functions", [], 200),
        ("modalities", ["text"], 200),
        ("parallel_tool_calls", False, 200),
        ("logit_bias", {}, 200),
        ("top_logprobs", 0, 200),
        ("max_output_tokens", 5, 400),
        ("num_predict", 5, 400),
        ("stop_sequences", ["x"], 400),
        ("logit_processors", 1, 200),  # unknown field: ignored and listed
    ],
)
def test_unsupported_fields_with_default_values_pass(client, name, value, status):
    assert chat(client, **{name: value}).status_code == status


def test_max_completion_tokens_limits_plain_completions_too(client, engine):
    engine.requests.clear()
    assert complete(client, max_completion_tokens=7).status_code == 200
    assert complete(client, max_completion_tokens=7, max_tokens=9).status_code == 200
    assert complete(client).status_code == 200
    assert complete(client, top_logprobs=2).status_code == 400
    limits = [request.sampling.max_tokens for request in engine.requests]
    assert limits == [7, 7, COMPLETION_DEFAULT_TOKENS]


def test_fields_without_an_effect_are_not_counted_as_ignored(client):
    responses = {name: chat(client, **{name: "anything"}) for name in WITHOUT_EFFECT}
    assert {name: response.status_code for name, response in responses.items()} == dict.fromkeys(
        WITHOUT_EFFECT, 200
    )
    ignored = [name for name, r in responses.items() if "x-pravaha-ignored-fields" in r.headers]
    assert ignored == []


def test_the_cache_salt_reaches_the_engine_for_every_choice(client, engine):
    engine.requests.clear()
    assert chat(client, cache_salt="one", n=2).status_code == 200
    assert complete(client, cache_salt="two").status_code == 200
    assert complete(client).status_code == 200
    assert [request.cache_salt for request in engine.requests] == ["one", "one", "two", None]


def test_priority_and_deadline_reach_the_engine_for_every_choice(client, engine):
    engine.requests.clear()
    assert chat(client, priority=-7, deadline_ms=250.5, n=2).status_code == 200
    body = {"model": "toy", "prompt": ["a", "b"], "priority": 3, "deadline_ms": 9}
    assert client.post("/v1/completions", json=body).status_code == 200
    assert chat(client, priority=None, deadline_ms=None).status_code == 200
    urgency = [(request.priority, request.deadline_ms) for request in engine.requests]
    assert urgency == [(-7, 250.5)] * 2 + [(3, 9)] * 2 + [(0, None)]


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("priority", 1.5),
        ("priority", True),
        ("priority", "high"),
        ("priority", 2**31),
        ("deadline_ms", 0),
        ("deadline_ms", -1),
        ("deadline_ms", "soon"),
        ("deadline_ms", 86_400_001),
        ("deadline_ms", True),
    ],
)
def test_an_invalid_priority_or_deadline_is_refused_by_name(client, name, value):
    response = chat(client, **{name: value})
    assert response.status_code == 400
    assert response.json()["error"]["param"] == name


def ignored_total(client):
    lines = client.get("/metrics").text.splitlines()
    return sum(
        float(line.rsplit(" ", 1)[1])
        for line in lines
        if line.startswith("pravaha_ignored_fields_total{")
    )


def test_unknown_fields_are_ignored_counted_and_listed(client):
    before = ignored_total(client)
    response = chat(
        client,
        shoe_size=43,
        messages=[{"role": "user", "content": "hi", "mood": "good"}],
    )
    assert response.status_code == 200
    assert response.headers["x-pravaha-ignored-fields"] == "shoe_size,messages[0].mood"
    assert ignored_total(client) == before + 2


def test_undeclared_fields_are_freed_before_the_answer():
    body = ChatCompletionRequest.model_validate(CHAT | {"shoe": "x" * 100}, strict=False)
    discard_undeclared(body)
    assert not body.model_extra
    assert body.messages[0].text == "hi"


def test_streams_list_ignored_fields_too(client):
    response = chat(client, shoe_size=43, stream=True)
    assert response.headers["x-pravaha-ignored-fields"] == "shoe_size"


def test_strict_fields_turn_them_into_400():
    with live(ScriptedEngine(words("ok")), strict_fields=True) as server:
        response = httpx.post(
            f"{server.url}/v1/chat/completions", json=CHAT | {"user": "u", "shoe_size": 43}
        )
    assert response.status_code == 400
    assert response.json()["error"]["param"] == "shoe_size"


def test_the_header_cannot_be_injected_into():
    value = header_value(["a\r\nset-cookie: x", "ü" * 500, "a,b"] + ["x"] * 100)
    assert value.isascii()
    assert "\r" not in value
    assert "\n" not in value
    assert value.split(",")[2] == "a%2Cb"
    assert value.endswith(",+83")
    assert len(value) < 4096


CALL = tool_call("weather", json.dumps({"city": "Paris"}))


@pytest.mark.parametrize(
    ("path", "message"),
    [
        ("messages[0].tool_calls[0].id", {"role": "assistant", "tool_calls": [{}]}),
        ("messages[0].tool_calls", {"role": "user", "content": "x", "tool_calls": [CALL]}),
        ("messages[0].tool_call_id", {"role": "tool", "content": "x"}),
        ("messages[0].tool_call_id", {"role": "user", "content": "x", "tool_call_id": "a"}),
        ("messages[0].function_call", {"role": "assistant", "function_call": {"name": "f"}}),
        ("messages[0].refusal", {"role": "user", "content": "x", "refusal": "no"}),
        (
            "messages[0].reasoning_content",
            {"role": "user", "content": "x", "reasoning_content": "y"},
        ),
        ("messages[0].prefix", {"role": "user", "content": "x", "prefix": True}),
        ("messages[0].audio", {"role": "assistant", "content": "x", "audio": {"id": "a"}}),
        ("messages[0]", {"role": "assistant", "content": [{"type": "thinking"}]}),
        (
            "messages[0].content",
            {"role": "user", "content": [{"type": "thinking", "thinking": "x"}]},
        ),
    ],
)
def test_fields_inside_messages_are_refused_by_their_path(client, path, message):
    error = chat(client, messages=[message]).json()["error"]
    assert error["param"] == path


def test_our_own_answer_can_be_sent_back(client):
    message = chat(client).json()["choices"][0]["message"]
    response = chat(client, messages=[*CHAT["messages"], message, *CHAT["messages"]])
    assert response.status_code == 200
    assert "x-pravaha-ignored-fields" not in response.headers


@pytest.mark.parametrize("template", [None, TOOL_TEMPLATE])
def test_the_history_of_an_agent_reaches_the_template(template):
    """As the official client sends it: arguments are text, the assistant's content is null."""
    history = [
        {"role": "user", "content": "Weather?"},
        {"role": "assistant", "content": None, "tool_calls": [CALL]},
        {"role": "tool", "tool_call_id": "call_1", "content": [{"type": "text", "text": "sunny"}]},
        {"role": "assistant", "content": None},
    ]
    engine = ScriptedEngine(words("ok"), template=template)
    with live(engine) as server:
        api = openai.OpenAI(base_url=f"{server.url}/v1", api_key="x", max_retries=0)
        answer = api.chat.completions.create(model="toy", messages=history)
        response = httpx.post(f"{server.url}/apply-template", json={"messages": history})
    assert answer.choices[0].message.content == "ok"
    prompt = engine.tokenizer.decode(engine.requests[-1].prompt_ids, skip_special=False)
    assert prompt == response.json()["prompt"]
    if template:
        assert '<tool_call>\n{"name": "weather", "arguments": {"city": "Paris"}}' in prompt
        assert "<tool_response>\nsunny\n</tool_response>" in prompt
    else:
        assert '"name": "weather", "arguments": {"city": "Paris"}' in prompt
        assert "<|im_start|>user\n<tool_response>\nsunny" in prompt
    assert prompt.endswith("<|im_end|>\n<|im_start|>assistant\n")
    assert prompt.count("<|im_start|>assistant") == 2  # the empty last message begins the answer


def test_arguments_that_are_no_json_object_are_kept_as_text():
    message = {"role": "assistant", "tool_calls": [tool_call("f", "{broken")]}
    with live(ScriptedEngine(words("ok"))) as server:
        response = httpx.post(f"{server.url}/apply-template", json={"messages": [message]})
    assert '"arguments": "{broken"' in response.json()["prompt"]


@pytest.mark.parametrize(
    ("part", "word"),
    [
        ({"type": "input_audio", "input_audio": {}}, "input_audio"),
        ({"type": "file", "file": {}}, "file"),
    ],
)
def test_content_parts_other_than_text_are_refused_by_kind(client, part, word):
    text = {"type": "text", "text": "look"}
    response = chat(client, messages=[{"role": "user", "content": [text, part]}])
    assert response.status_code == 400
    assert word in response.json()["error"]["message"]
    assert response.json()["error"]["param"] == "messages[0].content"


def test_text_parts_are_joined_and_developer_means_system(client, engine):
    parts = [{"type": "text", "text": "one "}, {"type": "text", "text": "two"}]
    chat(
        client,
        messages=[{"role": "developer", "content": "Rule."}, {"role": "user", "content": parts}],
    )
    prompt = engine.tokenizer.decode(engine.requests[-1].prompt_ids, skip_special=False)
    assert prompt.startswith("<|im_start|>system\nRule.<|im_end|>\n<|im_start|>user\none two")


@pytest.mark.parametrize(
    ("fields", "param"),
    [
        ({"top_logprobs": 2}, "top_logprobs"),
        ({"logprobs": True, "top_logprobs": 21}, "top_logprobs"),
        ({"stream_options": {"include_usage": True}}, "stream_options"),
        ({"temperature": -0.1}, "temperature"),
        ({"temperature": True}, "temperature"),
        ({"top_p": 0}, "top_p"),
        ({"top_p": 1.1}, "top_p"),
        ({"min_p": -1}, "min_p"),
        ({"presence_penalty": 2.5}, "presence_penalty"),
        ({"frequency_penalty": -3}, "frequency_penalty"),
        ({"repetition_penalty": 0}, "repetition_penalty"),
        ({"dry_multiplier": -0.1}, "dry_multiplier"),
        ({"dry_base": 0.9}, "dry_base"),
        ({"dry_allowed_length": -1}, "dry_allowed_length"),
        ({"dry_penalty_last_n": -2}, "dry_penalty_last_n"),
        ({"dry_sequence_breakers": [""]}, "dry_sequence_breakers[0]"),
        ({"dry_sequence_breakers": ["x" * 41]}, "dry_sequence_breakers[0]"),
        ({"dry_sequence_breakers": ["x"] * 17}, "dry_sequence_breakers"),
        ({"n": 0}, "n"),
        ({"n": 1000}, "n"),
        ({"n": True}, "n"),
        ({"max_tokens": 0}, "max_tokens"),
        ({"max_tokens": "5"}, "max_tokens"),
        ({"max_completion_tokens": -2}, "max_completion_tokens"),
        ({"stop": [f"stop {number}" for number in range(65)]}, "stop"),
        ({"stop": [1]}, "stop[0]"),
        ({"stop_token_ids": [-1]}, "stop_token_ids[0]"),
        ({"stop_token_ids": [100_000]}, "stop_token_ids"),
        ({"logprob_token_ids": [-1]}, "logprob_token_ids[0]"),
        ({"logprob_token_ids": [100_000]}, "logprob_token_ids"),
        ({"logprob_token_ids": [1] * 65}, "logprob_token_ids"),
        ({"logprob_token_ids": 5}, "logprob_token_ids"),
        ({"logit_bias": {"5": 101}}, "logit_bias[5]"),
        ({"logit_bias": {"x": 1}}, "logit_bias"),
        ({"logit_bias": {"100000": 1}}, "logit_bias"),
        ({"seed": 2**64}, "seed"),
        ({"request_id": "a b"}, "request_id"),
        ({"messages": []}, "messages"),
        ({"messages": [{"role": "wizard", "content": "x"}]}, "messages[0].role"),
        ({"messages": [{"role": "user"}]}, "messages[0].content"),
        ({"messages": [{"role": "user", "content": None}]}, "messages[0].content"),
        ({"messages": [{"role": "user", "content": "x" * 3000}]}, "messages"),
        ({"model": ""}, "model"),
    ],
)
def test_a_bad_value_is_a_400_that_names_its_field(client, fields, param):
    response = chat(client, **fields)
    assert response.status_code == 400
    assert response.json()["error"]["type"] == "invalid_request_error"
    assert response.json()["error"]["param"] == param


def test_every_sampling_field_reaches_the_engine(client, engine):
    fields = {
        "temperature": 0.5,
        "top_p": 0.9,
        "top_k": 40,
        "min_p": 0.05,
        "presence_penalty": 0.1,
        "frequency_penalty": 0.2,
        "repetition_penalty": 1.1,
        "dry_multiplier": 0.8,
        "dry_base": 1.5,
        "dry_allowed_length": 3,
        "dry_penalty_last_n": 100,
        "dry_sequence_breakers": ["\n\n", "."],
        "logit_bias": {"65": -1.5},
        "logprob_token_ids": [66, 65],
        "shown_control_ids": [257],
        "seed": 42,
        "stop": "END",
        "stop_token_ids": [66],
        "ignore_eos": True,
        "include_stop_str_in_output": True,
        "max_tokens": 3,
        "max_completion_tokens": 7,
        "logprobs": True,
        "top_logprobs": 5,
    }
    assert chat(client, **fields).status_code == 200
    sampling = engine.requests[-1].sampling
    assert sampling.temperature == 0.5
    assert sampling.top_p == 0.9
    assert sampling.top_k == 40
    assert sampling.min_p == 0.05
    assert sampling.presence_penalty == 0.1
    assert sampling.frequency_penalty == 0.2
    assert sampling.repetition_penalty == 1.1
    assert sampling.dry_multiplier == 0.8
    assert sampling.dry_base == 1.5
    assert sampling.dry_allowed_length == 3
    assert sampling.dry_penalty_last_n == 100
    assert sampling.dry_sequence_breakers == ("\n\n", ".")
    assert sampling.logit_bias == ((65, -1.5),)
    assert sampling.logprob_token_ids == (66, 65)
    assert sampling.shown_control_ids == (257,)
    assert sampling.seed == 42
    assert sampling.stop == ("END",)
    assert sampling.stop_token_ids == (66,)
    assert sampling.ignore_eos
    assert sampling.include_stop
    assert sampling.max_tokens == 7
    assert sampling.logprobs == 5


@pytest.mark.parametrize("call", [chat, complete])
@pytest.mark.parametrize(
    ("seed", "used"), [(-1, None), (None, None), (-2, 2**64 - 2), (-(2**63), 2**63), (7, 7)]
)
def test_a_seed_of_minus_one_is_a_new_one_and_any_other_is_a_seed(client, engine, call, seed, used):
    assert call(client, seed=seed).status_code == 200
    assert engine.requests[-1].sampling.seed == used


@pytest.mark.parametrize("seed", [2**64, -(2**63) - 1, 1.5, "7", True])
def test_a_seed_out_of_range_is_refused(client, seed):
    response = chat(client, seed=seed)
    assert (response.status_code, response.json()["error"]["param"]) == (400, "seed")


@pytest.mark.parametrize("call", [chat, complete])
@pytest.mark.parametrize("name", ["max_tokens", "max_completion_tokens"])
def test_a_limit_of_minus_one_is_none(client, engine, call, name):
    assert call(client, **{name: -1}).status_code == 200
    assert engine.requests[-1].sampling.max_tokens is None
    assert call(client, max_tokens=5, max_completion_tokens=-1).status_code == 200
    assert engine.requests[-1].sampling.max_tokens is None
    refused = call(client, **{name: -2})
    assert (refused.status_code, refused.json()["error"]["param"]) == (400, name)


def test_a_chat_of_no_tokens_is_refused_and_a_completion_is_not(client, engine):
    error = chat(client, max_tokens=0).json()["error"]
    assert (error["param"], "-1 for no limit" in error["message"]) == ("max_tokens", True)
    assert complete(client, max_tokens=0).status_code == 200
    assert engine.requests[-1].sampling.max_tokens == 0


@pytest.fixture
def model_defaults(engine):
    before = engine.info
    engine.info = replace(
        before,
        generation_defaults=GenerationDefaults(
            temperature=0.3, top_k=12, repetition_penalty=1.2, dry_multiplier=0.5, source="a test"
        ),
    )
    yield
    engine.info = before


@pytest.mark.parametrize("call", [chat, complete])
def test_the_models_defaults_replace_what_a_request_leaves_out(
    client, engine, model_defaults, call
):
    assert call(client).status_code == 200
    sampling = engine.requests[-1].sampling
    assert (sampling.temperature, sampling.top_k, sampling.top_p) == (0.3, 12, 1.0)
    assert (sampling.repetition_penalty, sampling.dry_multiplier) == (1.2, 0.5)
    given = {"temperature": 1, "top_k": -1, "repetition_penalty": 1.0, "dry_multiplier": None}
    assert call(client, **given).status_code == 200
    sampling = engine.requests[-1].sampling
    assert (sampling.temperature, sampling.top_k) == (1, 0)
    assert (sampling.repetition_penalty, sampling.dry_multiplier) == (1.0, 0.5)
    (model,) = client.get("/v1/models").json()["data"]
    assert model["details"]["generation_defaults"]["top_k"] == 12
    assert model["details"]["generation_defaults"]["source"] == "a test"


@pytest.mark.parametrize("call", [chat, complete])
def test_without_model_defaults_the_apis_apply(client, engine, call):
    assert call(client).status_code == 200
    sampling = engine.requests[-1].sampling
    assert (sampling.temperature, sampling.top_p, sampling.dry_multiplier) == (1.0, 1.0, 0.0)


def test_plain_completions_stop_at_16_tokens_unless_told_otherwise(client, engine):
    client.post("/v1/completions", json={"model": "toy", "prompt": "a"})
    assert engine.requests[-1].sampling.max_tokens == 16


@pytest.mark.parametrize(
    ("prompt", "expected"),
    [
        ("ab", [(97, 98)]),
        (["a", "b"], [(97,), (98,)]),
        ([97, 98], [(97, 98)]),
        ([[97], [98, 99]], [(97,), (98, 99)]),
        ("<|im_end|>", [(258,)]),
    ],
)
def test_every_spelling_of_a_prompt(client, engine, prompt, expected):
    del engine.requests[:]
    response = client.post("/v1/completions", json={"model": "toy", "prompt": prompt})
    assert response.status_code == 200
    assert [request.prompt_ids for request in engine.requests] == expected


@pytest.mark.parametrize(
    "prompt", ["", [], [[]], [1, "a"], ["a", 1], [[1], "a"], [True], [1.0], [-1], [259], None, {}]
)
def test_bad_prompts(client, prompt):
    response = client.post("/v1/completions", json={"model": "toy", "prompt": prompt})
    assert response.status_code == 400
    assert response.json()["error"]["param"] == "prompt"


def test_echo_repeats_the_prompt(client):
    body = {"model": "toy", "prompt": ["ab", "cd"], "echo": True}
    whole = client.post("/v1/completions", json=body).json()
    assert [choice["text"] for choice in whole["choices"]] == ["abok", "cdok"]
