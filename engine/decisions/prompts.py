"""The prompts of decisions: what all questions share, and what each one adds.

    the input                                             ┐
    (filler, so that the whole is a number of KV blocks)  │
    INSTRUCTION, at the end of the user's last message    │ shared: computed once
    the template's end of the turn, start of the answer   ┘
    the question, its lettered options                    ┐ the tail: one per question and order
    "Answer:"                                             ┘

The question is the beginning of the model's own answer, which it goes on with the label. So neither the
instruction nor the marks of the chat template are computed for each question, and a tail has about as many
tokens as its question. With Qwen2.5-Coder 1.5B, answers were right as often as to questions in the user's
message (docs/api.md).

Rows share whole blocks: without the filler, which is less than one block, each would compute the rest of a
block again, which is more than most questions have.
"""

from collections.abc import Callable, Sequence

from engine.api.decisions import DecisionQuestion
from engine.decisions.labels import LETTERS, Labels
from engine.decisions.probabilities import orders

INSTRUCTION = (
    "Answer the questions about the text above. Of a statement, say yes if it is true and no if it is "
    "not. Of options, say the letter of the one that fits best."
)
SEPARATOR = "\n\n"
"""Stands between the input and the instruction."""
WITHOUT_CONTENT = "N/A"
"""The input of calibration."""
_FILLER = "\n"
_LETTER_AND_DIGIT = "Answer with one letter and one digit."


def instructed(text: str) -> str:
    """The user's last message: its text with the instruction."""
    return f"{text}{SEPARATOR}{INSTRUCTION}" if text.strip() else INSTRUCTION


def filled(
    ids: Sequence[int], encode_rest: Callable[[str], list[int]], block_size: int
) -> tuple[int, ...]:
    """A shared prompt with filler before its instruction, so that it is a whole number of blocks.

    Args:
        ids: the prompt; unchanged if its instruction has other tokens than alone.
        encode_rest: token ids of text that continues another.
        block_size: tokens per KV block.
    """
    missing = -len(ids) % block_size
    instruction = encode_rest(INSTRUCTION)
    size = len(instruction)
    for at in range(len(ids) - size, -1, -1):
        if ids[at] == instruction[0] and list(ids[at : at + size]) == instruction:
            return (*ids[:at], *encode_rest(_FILLER)[-1:] * missing, *ids[at:])
    return tuple(ids)


def is_answered_by_word(question: DecisionQuestion, labels: Labels) -> bool:
    """Whether the labels of a question are yes and no, so that it has no order of options."""
    return question.kind == "predicate" and bool(labels.word_ids)


def tails(
    question: DecisionQuestion, labels: Labels, encode_rest: Callable[[str], list[int]]
) -> list[tuple[int, ...]]:
    """Token ids of a question behind the shared prompt, one for each order of its options.

    Args:
        question: the question.
        labels: of its model.
        encode_rest: token ids of text that continues another.
    """
    if is_answered_by_word(question, labels):
        texts = [f"{question.text.strip()}\n{labels.prefix}"]
    else:
        options = question.shown()
        names = labels.names(len(options))
        ask = [_LETTER_AND_DIGIT] if len(options) > LETTERS else []
        texts = [
            "\n".join(
                [
                    question.text.strip(),
                    *lettered([options[at] for at in order], names),
                    *ask,
                    labels.prefix,
                ]
            )
            for order in orders(len(options))
        ]
    return [tuple(encode_rest(text)) for text in texts]


def lettered(options: Sequence[str], names: Sequence[str]) -> list[str]:
    """Options behind the labels of these names, one a line."""
    return [f"{name}) {option}" for name, option in zip(names, options, strict=True)]
