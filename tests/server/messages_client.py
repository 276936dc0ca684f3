"""Requests to `/v1/messages`, and the events of its streams."""

import json

ASK = {
    "model": "claude-opus-4-6",
    "max_tokens": 64,
    "messages": [{"role": "user", "content": "hi"}],
}


def create(client, **fields):
    response = client.post("/v1/messages", json=ASK | fields)
    assert response.status_code == 200, response.text
    return response.json()


def of_input(usage):
    """All tokens of the prompt."""
    return (
        usage["input_tokens"]
        + usage["cache_read_input_tokens"]
        + usage["cache_creation_input_tokens"]
    )


def events_of(text):
    """The events of a stream; each one has its type as its name."""
    assert text.endswith("\n\n")
    events = []
    for block in text[:-2].split("\n\n"):
        name, data = block.split("\n")
        events.append(json.loads(data.removeprefix("data: ")))
        assert name == "event: " + events[-1]["type"]
    return events


def stream(client, **fields):
    response = client.post("/v1/messages", json=ASK | fields | {"stream": True})
    assert response.status_code == 200, response.text
    assert response.headers["content-type"].startswith("text/event-stream")
    return events_of(response.text)


def accumulated(events):
    """The message that a client makes of a stream, as Anthropic's own one does."""
    message, arguments = None, {}
    for event in events:
        match event["type"]:
            case "message_start":
                message = event["message"]
            case "content_block_start":
                assert event["index"] == len(message["content"])
                message["content"].append(event["content_block"])
            case "content_block_delta":
                block, delta = message["content"][event["index"]], event["delta"]
                if delta["type"] == "input_json_delta":
                    arguments[event["index"]] = (
                        arguments.get(event["index"], "") + delta["partial_json"]
                    )
                elif delta["type"] == "signature_delta":
                    block["signature"] = delta["signature"]
                else:
                    member = delta["type"].removesuffix("_delta")
                    block[member] += delta[member]
            case "content_block_stop":
                if event["index"] in arguments:
                    message["content"][event["index"]]["input"] = json.loads(
                        arguments[event["index"]]
                    )
            case "message_delta":
                message |= event["delta"]
                message["usage"] |= event["usage"]
    return message
