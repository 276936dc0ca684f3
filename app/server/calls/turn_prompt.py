"""The prompt of a chat's turn, with its images in their places."""

from collections.abc import Sequence
from dataclasses import dataclass

from starlette.requests import Request

from app.server.calls.chat_form import ChatForm, chat_form
from app.server.calls.chat_images import ChatImages, read_images
from app.server.calls.guarding import CallGuard
from app.server.calls.model import LoadedModel, loaded_model
from app.server.calls.prompts import ChatPrompt, chat_prompt
from app.server.calls.tool_calling import turn_tools
from app.server.process.context import ServerContext
from app.server.wire.schemas import ChatCompletionRequest, Message
from engine.api.image import PlacedImage
from engine.grammar.turn_tools import TurnTools


@dataclass(frozen=True, slots=True)
class TurnPrompt:
    """The prompt of a turn.

    Attributes:
        ids: the token ids, those of images included.
        images: the images, in their places.
        chat: the prompt before the images were placed.
    """

    ids: tuple[int, ...]
    images: tuple[PlacedImage, ...]
    chat: ChatPrompt


async def turn_prompt(
    context: ServerContext,
    body: ChatCompletionRequest,
    form: ChatForm,
    model: LoadedModel,
    messages: Sequence[Message],
    images: ChatImages | None,
    guard: CallGuard,
    tools: TurnTools | None,
    *,
    is_kept: bool,
) -> TurnPrompt:
    """The prompt of a turn.

    Args:
        context: the server.
        body: the chat request.
        form: how the conversation becomes a prompt.
        model: the model.
        messages: of the request, with what was added to them.
        images: those of the messages.
        guard: of the call; checks the messages.
        tools: what the model is offered.
        is_kept: whether the conversation may go on from tokens that are kept.

    Raises:
        ApiError: 400 for fields that contradict each other, or an image that cannot be decoded.
        InvalidRequest: the chat template rejects the messages.
    """
    chat = await chat_prompt(
        model,
        messages,
        form,
        tools=() if tools is None else tools.for_template,
        check=guard.check_value,
        answered=context.answered_turns if is_kept else None,
        cache_salt=body.cache_salt,
    )
    prompt, placed = chat.ids, tuple[PlacedImage, ...]()
    if images is not None:
        prompt, placed = await images.placed(context, prompt)
    return TurnPrompt(prompt, placed, chat)


async def count_prompt_tokens(
    request: Request, context: ServerContext, body: ChatCompletionRequest
) -> int:
    """How many tokens the prompt of a chat without retrieval has; nothing is submitted.

    Raises:
        ApiError, ClientDisconnected, InvalidRequest: as for the chat itself.
    """
    model = loaded_model(context, body.model)
    messages = body.messages
    images = await read_images(request, context, body, model)
    if images is not None:
        messages = images.in_messages(messages, small=model.info.is_small)
    guard = CallGuard(context, body)
    tools = turn_tools(context, body, model)
    prompt = await turn_prompt(
        context,
        body,
        chat_form(body),
        model,
        messages,
        images,
        guard,
        tools,
        is_kept=images is None,
    )
    return len(prompt.ids)
