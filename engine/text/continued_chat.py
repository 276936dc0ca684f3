"""Prompts of conversations whose beginning was already computed: its token ids are kept, not written anew.

A client sends an answer back as text. Encoded again, the text may divide into other tokens than those that
the model wrote, calls of tools are rendered with other spaces, and templates leave out the reasoning: from
there on no KV block could be used again. So the prompt of the next turn is the sequence that was computed,
answer included, and the rendering of what follows the answer.
"""

from collections.abc import Sequence
from collections.abc import Set as AbstractSet

from engine.api.chat import ChatMessage
from engine.api.errors import InvalidRequest
from engine.text.chat_encoding import ChatEncoder
from engine.text.continued_message import Render, absent_mark


def encode_after(
    encoder: ChatEncoder,
    messages: Sequence[ChatMessage],
    answer: int,
    computed: Sequence[int],
    end_ids: AbstractSet[int],
    *,
    add_generation_prompt: bool = True,
) -> list[int] | None:
    """Token ids of a conversation that begin with a computed sequence.

    Args:
        encoder: of the model, with the tools and variables of the request.
        messages: the conversation.
        answer: index of the assistant's message with which the computed sequence ends.
        computed: token ids of the prompt and of the answer, its end token included if it has one.
        end_ids: tokens that end an answer.
        add_generation_prompt: whether the assistant's turn is begun.

    Returns:
        The ids; None if the template does not write what follows independently of the answer.

    Raises:
        InvalidRequest: a message is not valid Unicode.
    """
    following = _after_stand_in(encoder, messages, answer, add_generation_prompt)
    if following is None:
        following = _after_answer(encoder, messages, answer, end_ids, add_generation_prompt)
    if following is None:
        return None
    begun = [*computed]
    # The end of the turn stands in both, or the model has ended with another token, or with none.
    if begun and begun[-1] in end_ids and following[0] in end_ids:
        begun.pop()
    return [*begun, *following]


def _after_stand_in(
    encoder: ChatEncoder,
    messages: Sequence[ChatMessage],
    answer: int,
    add_generation_prompt: bool,
) -> list[int] | None:
    """Token ids of what follows the answer, found by a mark in its place; None if there is no such place."""
    mark = absent_mark(messages)
    stand_in: ChatMessage = {"role": "assistant", "content": mark}
    marked = [*messages[:answer], stand_in, *messages[answer + 1 :]]

    def rest(turns: Sequence[ChatMessage], render: Render) -> str:
        text = render(turns, add_generation_prompt=add_generation_prompt)
        _, found, after = text.partition(mark)
        if not found or mark in after:
            raise _NotDividedError("The template does not write the answer once.")
        return after

    try:
        following = encoder.encode_rendering(marked, rest)
    except InvalidRequest:
        return None  # a template may want the calls of the message in place of its text
    # Ordinary text after the answer would have to be divided together with it.
    if not following or following[0] not in encoder.controls.ids:
        return None
    if messages[answer].get("tool_calls"):
        # A template may take the name of a result from its call, which does not stand there.
        ids = encoder.encode_chat(messages, add_generation_prompt=add_generation_prompt)
        if ids[-len(following) :] != following:
            return None
    return following


def _after_answer(
    encoder: ChatEncoder,
    messages: Sequence[ChatMessage],
    answer: int,
    end_ids: AbstractSet[int],
    add_generation_prompt: bool,
) -> list[int] | None:
    """Token ids from the end token of the answer on; None if the template writes none.

    For templates that need the calls of the answer, which they refuse to leave out or name in the results.
    The answer is rendered without and with what follows; it ends at the last end token of the former.
    """
    written = {name: one for name, one in messages[answer].items() if name != "reasoning_content"}
    turns = [*messages[:answer], written, *messages[answer + 1 :]]
    try:
        prompt = encoder.encode_chat(turns[:answer])
        ended = encoder.encode_chat(turns[: answer + 1], add_generation_prompt=False)
        ids = encoder.encode_chat(turns, add_generation_prompt=add_generation_prompt)
    except InvalidRequest:
        return None
    end = next((at for at in reversed(range(len(ended))) if ended[at] in end_ids), -1)
    if end < len(prompt) or ids[: end + 1] != ended[: end + 1]:
        return None
    return ids[end:]


class _NotDividedError(InvalidRequest):
    """The rendering has no place where the answer ends."""
