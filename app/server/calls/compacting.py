"""Compacting: a conversation's summary, which stands in its place when the client goes on."""

from typing import Any

from starlette.requests import Request

from app.server.calls.chat_turn import begin_turn
from app.server.calls.model import loaded_model
from app.server.calls.responses_call import drop_oldest
from app.server.calls.responses_input import ChatInput
from app.server.calls.responses_request import OwnNames
from app.server.calls.turn_prompt import count_prompt_tokens
from app.server.process.context import ServerContext
from app.server.wire.schemas import ChatCompletionRequest

SUMMARY_TOKENS = 1024
REQUEST = (
    "Stop here and write a summary of this conversation for someone who goes on with it without having "
    "read it: what the user wants, what was decided and done, the facts and names that are needed "
    "further, and what is left to do. Write the summary only."
)


async def summarize(
    request: Request, context: ServerContext, model: str, chat: ChatInput
) -> tuple[str, dict[str, Any]]:
    """The summary of a conversation, and the counts of its tokens as a chat's `usage`.

    Of a conversation that is too long for the model, the oldest messages are left out.

    Raises:
        ApiError, ClientDisconnected, QueueFull, EngineUnavailable: as `begin_turn` and `ChatTurn.answer`.
    """
    context_length = loaded_model(context, model).info.context_length
    room = min(SUMMARY_TOKENS, context_length // 4)
    chat.add({"role": "user", "content": REQUEST}, None)
    while True:
        with OwnNames(chat.paths).in_errors():
            body = ChatCompletionRequest.model_validate(
                {
                    "model": model,
                    "messages": chat.messages,
                    "max_completion_tokens": room,
                    "temperature": 0.0,
                }
            )
            count = await count_prompt_tokens(request, context, body)
        if count + room <= context_length or not drop_oldest(chat):
            break
    with OwnNames(chat.paths).in_errors():
        turn = await begin_turn(request, context, body)
    (choice,) = await turn.answer(request, context)
    return choice.text, turn.usage.counts()
