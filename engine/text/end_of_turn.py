"""The tokens that end an answer, which model files often declare incompletely."""

from collections.abc import Iterable, Mapping

_END_OF_TEXT = frozenset(
    {
        "<|endoftext|>",
        "<|end_of_text|>",
        "</s>",
        "<eos>",
        "<｜end▁of▁sentence｜>",
        "<|eot_id|>",
        "<|eom_id|>",
        "<|return|>",
        "<|call|>",
    }
)
"""Control tokens that end the text in every model that has them."""

_END_OF_TURN = frozenset(
    {
        "<|im_end|>",
        "<|end|>",
        "<end_of_turn>",
        "<|end_of_turn|>",
        "<turn|>",  # Gemma 4
        "<|eot|>",  # Llama 4
        "<|END_OF_TURN_TOKEN|>",  # Command
        "<end_of_utterance>",
        # The beginning of what others write, which follows without a mark of an end: GLM, Phi-3; Gemma 4.
        "<|user|>",
        "<|observation|>",
        "<|tool_response>",
    }
)
"""Control tokens that end a turn if the chat template contains them."""

_OF_HARMONY = frozenset({"<|return|>", "<|call|>"})
_END_OF_MESSAGE = "<|end|>"


def end_ids(
    declared: Iterable[int], special: Mapping[str, int], chat_template: str | None
) -> frozenset[int]:
    """The declared end tokens, and the well-known ones of this vocabulary and template.

    Without the end of a message in the vocabulary of gpt-oss, whose answers have several.

    Args:
        declared: ids that the model's files declare.
        special: text to id of the control tokens.
        chat_template: the model's template source, if it has one.
    """
    ids = set(declared)
    for text, token_id in special.items():
        if text in _END_OF_TEXT or (text in _END_OF_TURN and text in (chat_template or "")):
            ids.add(token_id)
    if special.keys() >= _OF_HARMONY and _END_OF_MESSAGE in special:
        ids.discard(special[_END_OF_MESSAGE])
    return frozenset(ids)
