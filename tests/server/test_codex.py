"""What Codex reads: the list of models in its own form, and the events of a stream."""

import json

from engine.api.request import FinishReason
from tests.server.responses_api import answering, prompt_of, stream
from tests.server.scripted_engine import batch
from tests.server.test_responses_socket import answer, open_socket

DEMANDED = {
    "slug": str, "display_name": str, "supported_reasoning_levels": list, "shell_type": str,
    "visibility": str, "supported_in_api": bool, "priority": int, "base_instructions": str,
    "supports_reasoning_summaries": bool, "support_verbosity": bool, "truncation_policy": dict,
    "supports_parallel_tool_calls": bool, "experimental_supported_tools": list,
}  # fmt: skip
"""Members without which Codex refuses the whole list, and their types."""


def test_the_list_of_models_has_codexs_form_for_codex_alone():
    with answering("x") as http:
        plain = http.get("/v1/models").json()
        codex = http.get("/v1/models", params={"client_version": "0.163.0"}).json()
    assert "models" not in plain
    assert codex["data"] == plain["data"]
    (model,) = codex["models"]
    assert {name: type(model[name]) for name in DEMANDED} == DEMANDED
    assert model["slug"] == plain["data"][0]["id"]
    assert model["context_window"] == plain["data"][0]["max_model_len"] == 512
    assert model["truncation_policy"] == {"mode": "tokens", "limit": 64}
    assert model["apply_patch_tool_type"] == "freeform"
    assert model["input_modalities"] == ["text"]


def test_the_context_length_is_a_reason_that_codex_knows():
    with answering("x") as http:
        events = stream(http, input="y" * 600)
    assert events[-1]["type"] == "response.failed"
    assert events[-1]["response"]["error"]["code"] == "context_length_exceeded"


def test_a_turn_over_a_websocket_begins_with_a_warm_up_and_adds_to_it():
    """As Codex 0.163 sends it with `supports_websockets = true`."""
    common = {
        "type": "response.create", "model": "toy", "stream": True, "store": False,
        "tools": [{"type": "function", "name": "exec_command", "parameters": {"type": "object"}}],
        "tool_choice": "auto", "parallel_tool_calls": True, "reasoning": {"summary": "auto"},
        "include": ["reasoning.encrypted_content"], "prompt_cache_key": "k",
        "client_metadata": {"x-codex-turn-metadata": "{}"},
    }  # fmt: skip
    headers = {"OpenAI-Beta": "responses_websockets=2026-02-06", "session_id": "s"}
    with (
        answering(script=unless_warm_up, context=4096) as http,
        open_socket(http, additional_headers=headers) as socket,
    ):
        socket.send(
            json.dumps(common | {"input": [said("developer", "Rules.")], "generate": False})
        )
        warm = answer(socket)[-1]["response"]
        assert (warm["status"], warm["output"]) == ("completed", [])
        turn = {"input": [said("user", "Write.")], "previous_response_id": warm["id"]}
        socket.send(json.dumps(common | turn))
        assert answer(socket)[-1]["response"]["status"] == "completed"
        assert prompt_of(http).index("Rules.") < prompt_of(http).index("Write.")


def unless_warm_up(request):
    """An answer, unless only the prompt is to be read."""
    if request.sampling.max_tokens == 0:
        return [batch(request, "", FinishReason.LENGTH)]
    return [batch(request, "Hello.", FinishReason.STOP)]


def said(role, text):
    return {"type": "message", "role": role, "content": [{"type": "input_text", "text": text}]}
