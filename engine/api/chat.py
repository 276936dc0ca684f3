"""`ChatMessage`: one message of a chat."""

ChatMessage = dict[str, str]
"""`{"role": "system" | "user" | "assistant", "content": text}`."""
