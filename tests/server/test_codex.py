"""What Codex reads: the list of models in its own form, and the events of a stream."""

from tests.server.responses_api import answering, stream

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


def test_the_path_has_no_websocket():
    """Codex falls back to POST."""
    headers = {
        "connection": "Upgrade", "upgrade": "websocket", "sec-websocket-version": "13",
        "sec-websocket-key": "dGhlIHNhbXBsZSBub25jZQ==",
    }  # fmt: skip
    with answering("x") as http:
        response = http.get("/v1/responses", headers=headers)
    assert response.status_code == 405
    assert response.json()["error"]["type"] == "invalid_request_error"
