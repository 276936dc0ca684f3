"""A conversation as token ids in which no message can forge a control token.

A chat template yields one string, and encoding that string turns every spelled-out control token
into the real one, the user's `<|im_end|>` too. So wherever a message spells one, a guard character
that occurs in no message is put after its first character before the template is applied. The
rendered string is then cut at the control tokens that are not guarded, which are the template's
own; everything between them, guards removed, is encoded as ordinary text.

Conversations that spell no control token (nearly all) take the direct way, whose ids are the ones
the reference produces.
"""

import re
from collections.abc import Sequence
from functools import lru_cache

from engine.client import ChatMessage
from engine.errors import InvalidRequest
from engine.pipeline.tokenizer import Tokenizer

_GUARDS = range(0xF0000, 0xFFFFE)
"""Plane 15, private use: characters no text needs; one that the messages do not hold is chosen."""


def encode_chat(
    tokenizer: Tokenizer, messages: Sequence[ChatMessage], *, add_generation_prompt: bool
) -> list[int]:
    """Token ids of the rendered conversation.

    Raises:
        InvalidRequest: the template refuses the messages.
    """
    control = _control_tokens(tokenizer)
    if not any(control.spelled_in(message["content"]) for message in messages):
        rendered = tokenizer.render_chat(messages, add_generation_prompt=add_generation_prompt)
        return tokenizer.encode(rendered, special=True)
    guard = _absent_character("".join(message["content"] for message in messages))
    guarded = [
        {**message, "content": control.guard(message["content"], guard)} for message in messages
    ]
    rendered = tokenizer.render_chat(guarded, add_generation_prompt=add_generation_prompt)
    ids: list[int] = []
    for text, token_id in control.cut(rendered, guard):
        if text:
            ids += tokenizer.encode(text, special=False)
        if token_id is not None:
            ids.append(token_id)
    return ids


class ControlTokens:
    """The spellings of a model's control tokens."""

    def __init__(self, spellings: dict[str, int]) -> None:
        self._ids = spellings
        longest_first = sorted(spellings, key=len, reverse=True)
        self._any = "|".join(re.escape(one) for one in longest_first) or r"(?!)"
        # Lookahead, so that spellings which overlap are all found.
        self._starts = re.compile(f"(?={self._any})")

    def spelled_in(self, text: str) -> bool:
        """Whether the text spells a control token."""
        return self._starts.search(text) is not None

    def guard(self, text: str, guard: str) -> str:
        """The text with a guard after the first character of every spelling."""
        pieces, last = [], 0
        for match in self._starts.finditer(text):
            cut = match.start() + 1
            pieces += [text[last:cut], guard]
            last = cut
        return "".join([*pieces, text[last:]])

    def cut(self, rendered: str, guard: str) -> list[tuple[str, int | None]]:
        """(ordinary text, control token after it) pairs, guards removed; the last has no token."""
        parts = re.split(f"({self._any})(?!{guard})", rendered)
        texts = [text.replace(guard, "") for text in parts[::2]]
        tokens: list[int | None] = [self._ids[one] for one in parts[1::2]]
        return list(zip(texts, [*tokens, None], strict=True))


@lru_cache(maxsize=8)
def _control_tokens(tokenizer: Tokenizer) -> ControlTokens:
    spellings: dict[str, int] = {}
    for token_id in sorted(tokenizer.special_ids):
        text = tokenizer.token_bytes(token_id).decode(errors="replace")
        if text:
            spellings.setdefault(text, token_id)
    return ControlTokens(spellings)


def _absent_character(text: str) -> str:
    present = set(text)
    for code in _GUARDS:
        if chr(code) not in present:
            return chr(code)
    raise InvalidRequest(
        "The messages use every private character there is, so they cannot be told apart from "
        "control tokens.",
        param="messages",
    )
