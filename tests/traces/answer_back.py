"""How clients write an answer of the server into the history that they send with the next request.

The members of `takes_back` in a trace are `reasoning`, which is "drop" or "replay"; `text`: "keep", "trim",
or "null" beside calls; `arguments`: "keep", or "javascript" for parsed and written by `JSON.stringify`;
`ids`: "keep" or "rename".
"""

import json
from typing import Any


def chat_message(message: dict[str, Any], how: dict[str, str]) -> dict[str, Any]:
    """A message of chat completions as the client sends it back."""
    text, calls = message.get("content"), message.get("tool_calls") or []
    if how["text"] == "trim":
        text = (text or "").strip()
    elif how["text"] == "null" and calls:
        text = None
    back: dict[str, Any] = {"role": "assistant", "content": text}
    if how["reasoning"] == "replay" and message.get("reasoning_content"):
        back["reasoning_content"] = message["reasoning_content"]
    if calls:
        back["tool_calls"] = [_call(one, how) for one in calls]
    return back


def _call(call: dict[str, Any], how: dict[str, str]) -> dict[str, Any]:
    function = call["function"]
    arguments = function["arguments"]
    if how["arguments"] == "javascript":
        arguments = javascript(json.loads(arguments))
    name = f"call{call['id'][-8:]}" if how.get("ids") == "rename" else call["id"]
    return {
        "id": name,
        "type": "function",
        "function": {"name": function["name"], "arguments": arguments},
    }


def response_items(output: list[dict[str, Any]], how: dict[str, str]) -> list[dict[str, Any]]:
    """The items of a response as Codex sends them back: without ids of their own and statuses."""
    items = []
    for item in output:
        if item["type"] == "message":
            content = [{"type": one["type"], "text": one["text"]} for one in item["content"]]
            if any(one["text"] for one in content):
                items.append({"type": "message", "role": "assistant", "content": content})
        elif item["type"] == "reasoning":
            if how["reasoning"] == "replay":
                items.append(item)
            else:  # what it cannot read, it sends without the text
                items.append({"type": "reasoning", "summary": [], "encrypted_content": None})
        else:
            items.append({name: item[name] for name in item if name not in ("id", "status")})
    return items


def messages_message(answer: dict[str, Any], how: dict[str, str]) -> dict[str, Any]:
    """A message of Anthropic's API as the client sends it back: without empty texts."""
    blocks = []
    for block in answer["content"]:
        if block["type"] == "text":
            text = block["text"].strip() if how["text"] == "trim" else block["text"]
            if text.strip():
                blocks.append({"type": "text", "text": text})
        elif block["type"] == "tool_use":
            blocks.append({**block, "input": json.loads(javascript(block["input"]))})
        elif how["reasoning"] == "replay":
            blocks.append(block)
    return {"role": "assistant", "content": blocks or [{"type": "text", "text": "(no content)"}]}


def javascript(value: Any) -> str:
    """JSON as JavaScript writes it: no spaces, no fraction of a whole number."""
    return json.dumps(_whole(value), separators=(",", ":"), ensure_ascii=False)


def _whole(value: Any) -> Any:
    if isinstance(value, float) and value.is_integer():
        return int(value)
    if isinstance(value, dict):
        return {name: _whole(one) for name, one in value.items()}
    if isinstance(value, list):
        return [_whole(one) for one in value]
    return value
