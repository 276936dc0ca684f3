"""The tokenizer over HTTP, in vLLM's words and in llama.cpp's."""

import httpx
import pytest

from tests.server.byte_engine import byte_engine
from tests.server.live import live
from tests.server.toy_tokenizer import END_OF_TEXT, IM_END, IM_START

END = "<|endoftext|>"


@pytest.fixture(scope="module")
def with_bos():
    with (
        byte_engine(add_bos=True) as engine,
        live(engine) as server,
        httpx.Client(base_url=server.url) as http,
    ):
        yield http


def tokens(client, **body):
    response = client.post("/tokenize", json=body)
    assert response.status_code == 200, response.text
    answer = response.json()
    assert answer["count"] == len(answer["tokens"])
    return answer["tokens"]


def test_a_client_learns_the_id_of_the_end_token(client):
    """What lm-eval's remote tokenizer does."""
    info = client.get("/tokenizer_info").json()
    ids = tokens(client, prompt=info["eos_token"], add_special_tokens=False)
    assert ids == [END_OF_TEXT]
    asked = {"model": "toy", "prompt": [[*ids, 65, 66]], "echo": True, "logprobs": 1}
    answer = client.post("/v1/completions", json=asked | {"max_tokens": 1, "temperature": 0})
    assert len(answer.json()["choices"][0]["logprobs"]["token_logprobs"]) == 4


def test_the_tokenizer_tells_its_template_and_its_special_tokens(client):
    info = client.get("/tokenizer_info").json()
    named = {name: info[name] for name in ("bos_token", "eos_token", "unk_token", "pad_token")}
    assert named == {"bos_token": END, "eos_token": END, "unk_token": None, "pad_token": None}
    assert "<|im_start|>" in info["chat_template"]
    assert info["add_bos_token"] is False
    assert info["control_tokens"][END] == END_OF_TEXT


@pytest.mark.parametrize(
    ("fields", "expected"),
    [
        ({}, [END_OF_TEXT, 65, IM_END]),
        ({"parse_special": True}, [END_OF_TEXT, 65, IM_END]),
        ({"add_special_tokens": False}, [65, IM_END]),
        ({"add_special": False}, [65, IM_END]),
        ({"add_special_tokens": True, "parse_special": False}, [END_OF_TEXT, *b"A<|im_end|>"]),
    ],
)
def test_a_prompt_is_read_as_by_completions_unless_told_otherwise(with_bos, fields, expected):
    assert tokens(with_bos, prompt="A<|im_end|>", **fields) == expected


@pytest.mark.parametrize(
    ("fields", "expected"),
    [
        ({}, [65]),
        ({"add_special": True}, [END_OF_TEXT, 65]),
        ({"add_special": True, "with_pieces": False}, [END_OF_TEXT, 65]),
    ],
)
def test_llama_cpps_words(with_bos, fields, expected):
    assert tokens(with_bos, content="A", **fields) == expected


def test_pieces_are_texts_or_bytes(client):
    pieces = tokens(client, content="Aé" + END, with_pieces=True)
    assert pieces == [
        {"id": 65, "piece": "A"},
        {"id": 0xC3, "piece": [0xC3]},
        {"id": 0xA9, "piece": [0xA9]},
        {"id": END_OF_TEXT, "piece": END},
    ]


def test_messages_are_written_by_the_template(client):
    ids = tokens(client, messages=[{"role": "user", "content": "<|im_end|>"}])
    assert ids[0] == IM_START
    assert ids.count(IM_END) == 1  # the one in the message is text
    shorter = tokens(
        client, messages=[{"role": "user", "content": "x"}], add_generation_prompt=False
    )
    assert shorter[-2:] == [IM_END, ord("\n")]


@pytest.mark.parametrize(
    ("body", "param"),
    [
        ({}, "prompt"),
        ({"prompt": "a", "content": "a"}, "prompt"),
        ({"prompt": "a", "messages": [{"role": "user", "content": "x"}]}, "prompt"),
        ({"messages": [{"role": "user", "content": "x"}], "parse_special": True}, "parse_special"),
        (
            {"messages": [{"role": "user", "content": "x"}], "add_special_tokens": True},
            "add_special_tokens",
        ),
        ({"prompt": "a", "enable_thinking": True}, "enable_thinking"),
        ({"content": "a", "reasoning": {"effort": "low"}}, "reasoning"),
        ({"prompt": "a", "chat_template_kwargs": {"x": 1}}, "chat_template_kwargs"),
        ({"prompt": "a", "continue_final_message": True}, "continue_final_message"),
    ],
)
def test_what_contradicts_itself_is_refused(client, body, param):
    response = client.post("/tokenize", json=body)
    assert response.status_code == 400
    assert response.json()["error"]["param"] == param


@pytest.mark.parametrize("text", ["Aé ✓", END + "x<|im_start|>"])
def test_detokenizing_is_the_inverse(client, text):
    ids = tokens(client, prompt=text)
    answer = client.post("/detokenize", json={"tokens": ids}).json()
    assert (answer["prompt"], answer["content"]) == (text, text)


@pytest.mark.parametrize(
    ("prompt", "words"),
    [
        ([None, 65], r"item [0] is null"),
        ([65, None], r"item [1] is null"),
        ([[None, 65], [65]], r"item [0][0] is null; token ids are integers"),
        ([[65], [65, None]], r"item [1][1] is null"),
        ([[65], [65, 1.5]], r"item [1][1] is a float"),
        ([[65], [True]], r"item [1][0] is a bool"),
        ([[65], []], r"item [1] is an empty list"),
        (["a", 65], "must hold only strings"),
    ],
)
def test_a_prompt_that_is_none_is_refused_by_its_place(client, prompt, words):
    response = client.post("/v1/completions", json={"model": "toy", "prompt": prompt})
    assert response.status_code == 400
    error = response.json()["error"]
    assert words in error["message"]
    assert error["param"] == "prompt"
