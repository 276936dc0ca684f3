"""The tools of a chat request, and the form in which its model calls them."""

from collections.abc import Sequence
from functools import partial

from app.server.calls.chat_form import ChatForm
from app.server.calls.model import LoadedModel
from app.server.calls.prompts import template_messages
from app.server.process.context import ServerContext
from app.server.wire.errors import bad_request
from app.server.wire.schemas import ChatCompletionRequest
from engine.grammar.call_plan import CallPlanner, call_planner
from engine.grammar.turn_tools import TurnTools
from engine.text.tool_calls.choosing import chosen_form
from engine.text.tool_calls.form import CallForm
from engine.text.tool_calls.last_speaker import follows_result
from engine.text.tool_calls.repeated_calls import exhausted_call
from engine.text.tool_calls.thresholds import call_thresholds


def turn_tools(
    context: ServerContext, body: ChatCompletionRequest, model: LoadedModel
) -> TurnTools | None:
    """The tools of a request; None if it has none, or none of a type that is served.

    Raises:
        ApiError: 400 for a choice that no tool fits.
    """
    given, choice = body.offered_tools, body.choice_of_tools
    field = "function_call" if body.answers_function_call else "tool_choice"
    if choice.mode == "required" and not body.has_tools:
        raise bad_request(f"`{field}` asks for a call, but there are no tools.", param=field)
    if not given:
        return None
    unknown = sorted((choice.names or frozenset()) - {one.name for one in given})
    if unknown:
        raise bad_request(
            f"`{field}` names {unknown[0]!r}, which is none of the tools.", param=field
        )
    messages = template_messages(body.messages, reads_arguments=False)
    return TurnTools(
        given,
        choice,
        call_form(context, model),
        model.tokenizer,
        body.tool_decision or context.config.tool_decision,
        None if body.allow_repeated_calls else exhausted_call(messages),
    )


def turn_planner(
    body: ChatCompletionRequest,
    model: LoadedModel,
    tools: TurnTools,
    form: ChatForm,
    prompt: Sequence[int],
    *,
    in_loop: bool,
    in_words: bool,
) -> CallPlanner | None:
    """The planner of a turn; None if the model decides itself whether it calls a tool.

    Args:
        body: the chat request.
        model: the model.
        tools: of the turn.
        form: how the conversation becomes a prompt.
        prompt: of the turn.
        in_loop, in_words: as in `CallPlanner`.
    """
    if body.prompt_logprobs is not None:
        return None
    return call_planner(
        tools,
        model.info,
        call_thresholds(model.info, model.tokenizer),
        prompt,
        render=partial(model.tokenizer.render_chat, variables=form.variables),
        follows_result=follows_result(template_messages(body.messages, reads_arguments=False)),
        in_loop=in_loop,
        in_words=in_words,
        constrains=not body.ignore_eos,
    )


def call_form(context: ServerContext, model: LoadedModel) -> CallForm:
    """The form in which a model writes calls: the one of the settings, else that of its template."""
    return chosen_form(context.config.tool_call_form, model.tokenizer.tool_template)
