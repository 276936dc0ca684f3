"""`prepare`: the questions of a call as rows behind an encoded input."""

from collections.abc import Sequence

from engine.api.chat import ChatMessage
from engine.api.decisions import MAX_QUESTIONS, DecisionQuestion, DecisionRules
from engine.api.errors import InvalidRequest
from engine.api.image import PlacedImage
from engine.decisions.batch import DecisionBatch
from engine.decisions.calibration import Calibration
from engine.decisions.labels import Labels
from engine.decisions.prompts import WITHOUT_CONTENT, filled, instructed
from engine.text.tokenizer import Tokenizer

TEMPLATE_VARIABLES = {"enable_thinking": False}
"""For chat templates of models that reason: the answer begins at once."""

BEGUN: ChatMessage = {"role": "assistant", "content": "Answers"}
"""An answer, in place of which the questions stand."""


def prepare(
    tokenizer: Tokenizer,
    questions: Sequence[DecisionQuestion],
    rules: DecisionRules,
    *,
    shared: Sequence[int],
    block_size: int,
    model: str,
    calibration: Calibration,
    images: tuple[PlacedImage, ...] = (),
    cache_salt: str | None = None,
) -> DecisionBatch:
    """The rows of a call.

    Args:
        tokenizer: of the model.
        questions: 1 to `MAX_QUESTIONS`.
        rules: how probabilities are read.
        shared: the input with `INSTRUCTION`, up to the start of the answer.
        block_size: tokens per KV block of the engine.
        model: its name.
        calibration: scores of an earlier call without content.
        images: those of the input, in their places.
        cache_salt: as `Request.cache_salt`.

    Raises:
        InvalidRequest: there are no questions or too many, or one is not valid Unicode.
        NoLabels: the tokenizer has no tokens for labels.
    """
    if not 1 <= len(questions) <= MAX_QUESTIONS:
        raise InvalidRequest(
            f"Ask between 1 and {MAX_QUESTIONS} questions, not {len(questions)}.", param="questions"
        )
    without_content: tuple[int, ...] = ()
    if rules.calibrate:
        empty = input_ids(tokenizer, WITHOUT_CONTENT)
        without_content = filled(empty, tokenizer.encode_rest, block_size)
    return DecisionBatch(
        questions,
        rules,
        Labels(tokenizer.encode, max(len(one.options) for one in questions)),
        tokenizer.encode_rest,
        shared=filled(shared, tokenizer.encode_rest, block_size),
        without_content=without_content,
        images=images,
        cache_salt=cache_salt,
        model=(model, tokenizer.fingerprint),
        calibration=calibration,
    )


def input_ids(tokenizer: Tokenizer, text: str) -> list[int]:
    """Token ids of a text that questions are asked about, up to the beginning of the answer.

    That is where the template writes an answer that is begun, so behind reasoning, which is empty.

    Raises:
        InvalidRequest: it is not valid Unicode, or the chat template rejects a plain message.
    """
    messages: list[ChatMessage] = [{"role": "user", "content": instructed(text)}, BEGUN]
    ids, begun = tokenizer.encode_open_chat(messages, variables=TEMPLATE_VARIABLES)
    return ids[: len(ids) - begun]
