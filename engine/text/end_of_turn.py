"""Which tokens end an answer. Files often declare one and use another."""

from collections.abc import Iterable, Mapping

_END_OF_TEXT = frozenset({"<|endoftext|>", "<|end_of_text|>", "</s>", "<|eot_id|>", "<|eom_id|>"})
"""Control tokens after which no chat or base model has anything to say."""

_END_OF_TURN = frozenset({"<|im_end|>", "<|end|>", "<end_of_turn>", "<|end_of_turn|>"})
"""Control tokens that end a turn where the chat template uses them."""


def end_ids(
    declared: Iterable[int], special: Mapping[str, int], chat_template: str | None
) -> frozenset[int]:
    """Declared end tokens, plus the well-known ones this vocabulary and template use.

    Args:
        declared: ids that the model's files name.
        special: control tokens' text to id.
        chat_template: the model's template source, if it has one.
    """
    ids = set(declared)
    for text, token_id in special.items():
        if text in _END_OF_TEXT or (text in _END_OF_TURN and text in (chat_template or "")):
            ids.add(token_id)
    return frozenset(ids)
