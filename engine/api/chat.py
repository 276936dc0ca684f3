"""`ChatMessage`: one message of a chat."""

from typing import Any

ChatMessage = dict[str, Any]
"""`{"role": "system" | "user" | "assistant" | "tool", "content": text}`.

A message of the assistant may have `tool_calls`, a list of `{"id", "type": "function", "function": {"name",
"arguments"}}`; `arguments` is an object, as chat templates expect it. A message of a tool has the
`tool_call_id` of the call whose result it is.
"""
