"""`chat_reasoning`: the reasoning that the answers of a chat may have."""

from functools import partial

from app.server.calls.model import LoadedModel
from app.server.calls.prompts import ChatPrompt
from engine.text.model_reasoning import ModelReasoning, reasoning_after
from engine.text.reasoning_markers import tail_of


def chat_reasoning(model: LoadedModel, prompt: ChatPrompt) -> ModelReasoning | None:
    """The reasoning that an answer may have; None if the model does not reason, or is done with it."""
    tokenizer = model.tokenizer
    if tokenizer.reasoning is None:
        return None
    tail = tail_of(
        prompt.ids, prompt.continued_tokens, partial(tokenizer.decode, skip_special=False)
    )
    return reasoning_after(
        tail,
        tokenizer.reasoning,
        encode=partial(tokenizer.encode, special=True),
        encode_rest=tokenizer.encode_rest,
    )
