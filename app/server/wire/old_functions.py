"""OpenAI's old form of calls in a history, `function_call` and the role `function`, as tool calls."""

from typing import Any


def with_tool_calls(messages: Any) -> Any:
    """The messages in the form of today; what is in neither form is left as it is.

    The old form has no ids: a result belongs to the call before it.
    """
    if not isinstance(messages, list):
        return messages
    translated: list[Any] = []
    call_id = "function_0"
    for number, message in enumerate(messages):
        if isinstance(message, dict):
            if message.get("role") == "assistant" and _is_call(message.get("function_call")):
                call_id = f"function_{number}"
                rest = {name: one for name, one in message.items() if name != "function_call"}
                call = {"id": call_id, "type": "function", "function": message["function_call"]}
                message = {**rest, "tool_calls": [call]}
            elif message.get("role") == "function":
                message = {**message, "role": "tool", "tool_call_id": call_id}
        translated.append(message)
    return translated


def _is_call(value: Any) -> bool:
    return isinstance(value, dict) and {"name", "arguments"} <= value.keys()
