"""Where checkpoints of a prompt's recurrent state are made: *borders*, multiples of the block size in tokens.

A state can only be saved after the step that ended there, so a prompt's chunks end at its borders: each costs
a part of a step. They are

* the last border before the prompt's end, which the next turn of a conversation, another answer and the other
  choices of a request begin with;
* the last borders before messages begin or end, that is before control tokens, which only the chat template
  writes (`engine.text.chat_encoding`): a template may render the beginning of an answer, or the last turn,
  differently in the next prompt;
* where the prompt leaves what others had in common with it: what two prompts share a third one will;
* every `interval` tokens, which bounds what a fork at any token computes again.
"""

from collections.abc import Iterable

MAX_MESSAGES = 3
"""Borders before messages: the last ones of a prompt. A prompt of a hundred short messages would otherwise be
computed in a hundred small chunks."""
NEAR_BLOCKS = 2
"""Of borders before messages and where prompts part, none is made so few blocks before or after another:
computing these tokens again costs no more than the step that ends at the border."""


def borders_between(
    start: int,
    end: int,
    *,
    block_size: int,
    interval: int,
    messages: Iterable[int] = (),
    most_messages: int = MAX_MESSAGES,
    shared: int = 0,
) -> list[int]:
    """Borders of a prompt after its first `start` tokens, in ascending order.

    Args:
        start: tokens that need not be computed; a border.
        end: tokens of the prompt. At least the last one is computed after the last border.
        block_size: tokens in a block.
        interval: tokens between borders, a multiple of `block_size`.
        messages: positions of control tokens, ascending.
        most_messages: borders before messages, the last ones.
        shared: leading tokens that are cached, with or without a state.
    """
    most = (end - 1) // block_size * block_size
    if most <= start:
        return []
    near = NEAR_BLOCKS * block_size
    found: list[int] = []
    for token in reversed(list(messages)):
        border = min(token, most) // block_size * block_size
        if border < start + near or len(found) == most_messages:
            break
        if not found or border <= found[-1] - near:
            found.append(border)
    if not found or most - found[0] >= near:
        found.append(most)
    parting = min(shared, most) // block_size * block_size
    if parting >= start + near and all(abs(border - parting) >= near for border in found):
        found.append(parting)
    return sorted({*found, *range((start // interval + 1) * interval, most + 1, interval)})
