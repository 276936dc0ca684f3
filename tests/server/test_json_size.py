"""Bodies of very many values are refused before they are parsed; text of any size is not."""

import json

import httpx
import pytest

from app.server.wire.errors import ApiError
from app.server.wire.json_size import (
    MAX_CONTAINERS,
    MAX_STRINGS,
    MAX_VALUES,
    UNCOUNTED_BYTES,
    check_json_size,
)
from tests.server.live import live
from tests.server.scripted_engine import ScriptedEngine, words

PAD = '"' + "x" * UNCOUNTED_BYTES + '"'  # smaller bodies are not counted


def array(item, count):
    return f"[{PAD},{','.join([item] * count)}]".encode()


@pytest.mark.parametrize(
    ("item", "count", "what"),
    [
        ("[]", MAX_CONTAINERS - 1, "objects and arrays"),
        ("{}", MAX_CONTAINERS - 1, "objects and arrays"),
        ('"x"', MAX_STRINGS - 1, "texts and names"),
        (r'"\\"', MAX_STRINGS - 1, "texts and names"),  # its last quote looks escaped
        (r'"\""', MAX_STRINGS - 1, "texts and names"),
        ("1", MAX_VALUES, "values"),
    ],
)
def test_the_number_of_values_is_limited(item, count, what):
    check_json_size(array(item, count))
    for more in (count + 1, 2 * count + 2):
        with pytest.raises(ApiError, match=what) as refused:
            check_json_size(array(item, more))
        assert refused.value.status_code == 400
        assert refused.value.code == "too_many_values"


@pytest.mark.parametrize(
    "piece", ["[{,:", '[["a", "b"], {"c": 1}]', "\\\\", "\\", "\n", '"', "é[,"]
)
def test_text_does_not_count(piece):
    text = json.dumps({"prompt": piece * (2_000_000 // len(piece))}).encode()
    check_json_size(text)


def test_an_open_string_is_left_to_the_parser():
    check_json_size(b'{"prompt": "' + b"x" * UNCOUNTED_BYTES)


def test_a_refusal_names_what_there_are_too_many_of():
    nested = array("[]", MAX_CONTAINERS).decode()
    call = {"id": "a", "function": {"name": "f", "arguments": f'{{"a": {nested}}}'}}
    message = {"role": "assistant", "tool_calls": [call]}
    with live(ScriptedEngine(words("ok"))) as server:
        body = httpx.post(
            f"{server.url}/v1/completions",
            content=f'{{"model": "toy", "prompt": "x", "metadata": {nested}}}',
            headers={"content-type": "application/json"},
        )
        arguments = httpx.post(f"{server.url}/apply-template", json={"messages": [message]})
    for response, param in ((body, None), (arguments, "messages")):
        assert response.status_code == 400
        error = response.json()["error"]
        assert (error["code"], error["param"]) == ("too_many_values", param)
        assert "10,000 objects and arrays" in error["message"]
