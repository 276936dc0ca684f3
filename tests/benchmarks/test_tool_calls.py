"""Cases of BFCL as requests, and the answers of a server."""

import argparse
import json

import httpx
import pytest

from benchmarks import tool_calls
from benchmarks.tool_calls import ask, tool_of

FUNCTION = {
    "name": "weather.get",
    "description": "Weather.",
    "parameters": {
        "type": "dict",
        "properties": {
            "days": {"type": "tuple", "items": {"type": "float"}},
            "place": {"type": "any"},
        },
        "required": ["days"],
    },
}
CASE = {"question": [[{"role": "user", "content": "Oslo?"}]], "function": [FUNCTION]}
OPTIONS = argparse.Namespace(model="m", max_tokens=9, body='{"tool_decision": "model"}')
ANSWER = {
    "choices": [
        {"message": {"tool_calls": [{"function": {"name": "weather_get", "arguments": "{}"}}]}}
    ],
    "usage": {"completion_tokens": 7},
}


def asked(*responses):
    """The result of a case, and the requests, if a server answers with these responses."""
    seen, left = [], list(responses)

    def answer(request):
        seen.append(json.loads(request.content))
        return left.pop(0)

    with httpx.Client(transport=httpx.MockTransport(answer), base_url="http://s") as client:
        return ask(client, CASE, OPTIONS), seen


def test_a_function_gets_the_types_and_the_name_of_json():
    assert tool_of(FUNCTION)["function"] == {
        "name": "weather_get",
        "description": "Weather.",
        "parameters": {
            "type": "object",
            "properties": {
                "days": {"type": "array", "items": {"type": "number"}},
                "place": {"type": "string"},
            },
            "required": ["days"],
        },
    }


def test_a_request_is_greedy_and_has_the_further_members():
    result, (body,) = asked(httpx.Response(200, json=ANSWER))
    assert result["calls"] == [{"weather_get": {}}]
    assert result["tokens"] == 7
    assert (body["temperature"], body["max_tokens"], body["tool_decision"]) == (0, 9, "model")


def test_a_model_that_is_loading_is_waited_for(monkeypatch):
    monkeypatch.setattr(tool_calls.time, "sleep", lambda seconds: None)
    loading = httpx.Response(503, json={"error": {"code": "model_loading"}})
    result, requests = asked(loading, loading, httpx.Response(200, json=ANSWER))
    assert result["calls"] == [{"weather_get": {}}]
    assert len(requests) == 3


def test_a_refusal_is_the_result():
    result, _ = asked(httpx.Response(400, json={"error": {"message": "no"}}))
    assert result["calls"] == []
    assert "no" in result["error"]


@pytest.mark.parametrize("arguments", ["{", "no JSON"])
def test_arguments_that_are_no_json_are_kept_as_they_are(arguments):
    broken = json.loads(json.dumps(ANSWER).replace('"{}"', json.dumps(arguments)))
    result, _ = asked(httpx.Response(200, json=broken))
    assert result["calls"] == [{"weather_get": arguments}]
