"""Who spoke last in a conversation with tools: the user, or a tool.

Agents' clients add messages of role `system`, and reminders in the name of the user, after the results of
tools. The answer is still about the results.
"""

from collections.abc import Sequence

from engine.api.chat import ChatMessage, has_images, text_of

_REMINDER, _REMINDER_END = "<system-reminder>", "</system-reminder>"


def is_of_user(message: ChatMessage) -> bool:
    """Whether a message is one in which the user says something: not only reminders of the client."""
    if message["role"] != "user":
        return False
    return has_images(message) or not _is_reminders(text_of(message["content"]))


def follows_result(messages: Sequence[ChatMessage]) -> bool:
    """Whether the next answer is about the results of tools: the user has said nothing since them."""
    for message in reversed(messages):
        if message["role"] == "tool":
            return True
        if message["role"] == "assistant" or is_of_user(message):
            return False
    return False


def _is_reminders(text: str) -> bool:
    text, at = text.strip(), 0
    while text.startswith(_REMINDER, at):
        end = text.find(_REMINDER_END, at)
        if end < 0:
            return False
        at = end + len(_REMINDER_END)
        while text[at : at + 1].isspace():
            at += 1
    return 0 < at == len(text)
