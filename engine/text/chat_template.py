"""`ChatTemplate`: renders a conversation as the text format that a model was trained on.

Chat templates come with model files and are untrusted: `TemplateSandbox` limits what they can access,
compute and allocate.
"""

from collections.abc import Callable, Mapping, Sequence
from functools import cached_property
from typing import Any

from jinja2 import Template

from engine.api.chat import ChatMessage, has_images, text_of
from engine.api.error_text import first_line
from engine.api.errors import InvalidRequest
from engine.text.message_forms import (
    alternating,
    fold_system,
    with_single_texts,
    without_empty_answers,
)
from engine.text.template_budget import MAX_TEXT, TemplateBudget, TemplateLimitError, spending
from engine.text.template_sandbox import RefusedMessagesError, TemplateSandbox
from engine.text.tool_calls.choosing import form_of_template
from engine.text.tool_calls.form import CallForm
from engine.text.tool_calls.written_calls import can_write
from engine.text.tool_messages import (
    TemplateTool,
    as_plain_messages,
    nested_too_deep,
    uses_tools,
    with_argument_texts,
    with_numbered_ids,
    with_offer,
    with_short_ids,
    with_single_calls,
    with_system,
    with_system_tools,
    with_written_calls,
)
from engine.text.tool_probes import (
    LONG_ID_PROBE,
    PROBE,
    PROBE_OF_TWO,
    PROBE_TOOLS,
    is_offer_complete,
    is_probe_complete,
    is_probe_of_two_complete,
)

CHATML = (
    "{% for message in messages %}"
    "{{ '<|im_start|>' + message['role'] + '\\n' + message['content'] + '<|im_end|>' + '\\n' }}"
    "{% endfor %}"
    "{% if add_generation_prompt %}{{ '<|im_start|>assistant\\n' }}{% endif %}"
)
"""The template for models without one whose vocabulary has its marks: a common training format."""

_CONTINUING = (
    "{% for message in messages %}"
    "{% if not loop.first and message['role'] != 'assistant' %}{{ '\n\n' }}{% endif %}"
    "{{ message['content'] }}{% endfor %}"
)
"""The template for models that know no turns: what was written so far."""

_PROBE = "a message's text"
"""The content by which a template is asked for the form of contents that it reads."""
_MAX_SOURCE = 128 << 10
"""Maximum length of a source in characters; the longest published templates have about 30,000."""
_CallWriter = Callable[[Sequence[ChatMessage]], Sequence[ChatMessage]]
"""Makes the calls of a conversation readable for a kind of template."""
_OfferWriter = Callable[[Sequence[ChatMessage], Sequence[TemplateTool]], Sequence[ChatMessage]]
"""Makes the place for the tools in a conversation."""
_ABSENT_TOKENS = dict.fromkeys(("bos_token", "eos_token", "unk_token", "pad_token"), "")
"""Templates add these to texts, which an undefined variable does not allow."""


class _Rejected(InvalidRequest):
    """The template called `raise_exception`."""


class ChatTemplate:
    """A chat template, compiled when first used. Thread-safe.

    Attributes:
        source: its Jinja source.
        is_fallback: whether the model has no template and this is ChatML, or none.
        tokens: texts of special tokens by template variable.
        for_tools: a template of its own for conversations with tools, which some models have; None for none.
    """

    def __init__(
        self,
        source: str | None,
        *,
        tokens: Mapping[str, str],
        tool_use: str | None = None,
        sandbox: TemplateSandbox | None = None,
    ) -> None:
        """Use `source`; errors in it are raised by `render`.

        Args:
            source: Jinja source; None, and one without any text, takes ChatML.
            tokens: texts of special tokens by template variable, such as `bos_token`.
            tool_use: source of the template for conversations with tools; None, and one without any text,
                takes the same one for all.
            sandbox: the environment to run it in; None creates one.
        """
        if source is not None and not source.strip():
            source = None
        self.is_fallback = source is None
        self.source = CHATML if source is None else source
        self.tokens = dict(tokens)
        self.for_tools: ChatTemplate | None = None
        if tool_use is not None and tool_use.strip():
            self.for_tools = ChatTemplate(tool_use, tokens=tokens, sandbox=sandbox)
            self.for_tools._no_tools = []  # it loops over tools without asking for them
        self._no_tools: list[TemplateTool] | None = None
        self._sandbox = sandbox

    @classmethod
    def continuing_text(cls, tokens: Mapping[str, str], *, begins: bool) -> "ChatTemplate":
        """The template of a model that continues text: contents without roles, a blank line after an answer.

        Args:
            tokens: texts of special tokens by template variable.
            begins: whether the model expects the beginning-of-sequence token.
        """
        template = cls(("{{ bos_token }}" if begins else "") + _CONTINUING, tokens=tokens)
        template.is_fallback = True
        return template

    def render(
        self,
        messages: Sequence[ChatMessage],
        *,
        add_generation_prompt: bool = True,
        tools: Sequence[TemplateTool] = (),
        variables: Mapping[str, Any] | None = None,
        budget: TemplateBudget | None = None,
    ) -> str:
        """Render the conversation, in the form that the template knows.

        Tools are described in a system message if it does not render them, tool calls are text, and a system
        message stands in the user's if it renders none. If it does not render several calls in a message,
        each has a message of its own; if it rejects several messages of a role in a row, they are rendered
        as one, and empty answers are left out.

        A model with a template of its own for tools gets that one if there are tools, calls or results.

        Of `variables` the template gets those that do not stand in place of its own.

        Raises:
            InvalidRequest: the template rejects the messages, fails, or exceeds a limit.
        """
        if self.for_tools is not None and (tools or uses_tools(messages)):
            return self.for_tools.render(
                messages,
                add_generation_prompt=add_generation_prompt,
                tools=tools,
                variables=variables,
                budget=budget,
            )
        if uses_tools(messages):
            try:
                messages = self._with_rendered_calls(messages)
            except RecursionError as error:
                raise nested_too_deep() from error
        if tools and self._offer_writer is None:
            messages, tools = with_offer(messages, tools), ()
        elif tools and self._offer_writer is not None:
            try:
                offering = self._offer_writer(messages, tools)
                return self._render_in_form(
                    offering, add_generation_prompt, budget, tools, variables
                )
            except InvalidRequest:
                # It may fail on a schema: one demands descriptions, another loops over the type `null`.
                messages, tools = with_offer(messages, tools), ()
        return self._render_in_form(messages, add_generation_prompt, budget, tools, variables)

    def _render_in_form(
        self,
        messages: Sequence[ChatMessage],
        add_generation_prompt: bool,
        budget: TemplateBudget | None,
        tools: Sequence[TemplateTool],
        variables: Mapping[str, Any] | None,
    ) -> str:
        """Render messages that have the form of the template, but for their contents and their order."""
        form = self._in_form(messages)
        systems = sum(one["role"] == "system" for one in form)
        if systems and not self.renders_system:
            form = fold_system(form)
        elif systems > 1 and not self.renders_systems:
            form = alternating(form)
        try:
            return self._render(form, add_generation_prompt, budget, tools, variables)
        except _Rejected as rejected:
            other = alternating(without_empty_answers(with_single_texts(form)))
            if other == form:
                raise
            try:
                return self._render(other, add_generation_prompt, budget, tools, variables)
            except InvalidRequest:
                raise rejected from None

    @cached_property
    def problem(self) -> str | None:
        """Why no conversation can be rendered, in a sentence; None if one can, or might."""
        question = {"role": "user", "content": _PROBE}
        try:
            if _PROBE in self.render([question]):
                return None
            return "The model's chat template does not write what the user asks."
        except _Rejected:
            return None  # it may want another conversation
        except InvalidRequest as error:
            return str(error).replace("these messages", "a plain question")

    def _in_form(self, messages: Sequence[ChatMessage]) -> Sequence[ChatMessage]:
        """The messages with their contents in the form that the template reads."""
        if self.reads_parts:
            return [
                {**one, "content": [{"type": "text", "text": one["content"]}]}
                if isinstance(one["content"], str)
                else one
                for one in messages
            ]
        return [
            one
            if isinstance(one["content"], str) or has_images(one) or self.reads_several_parts
            else {**one, "content": text_of(one["content"])}
            for one in messages
        ]

    @cached_property
    def reads_several_parts(self) -> bool:
        """Whether the template renders each part of a content, with what it puts between them.

        Others write a list of parts as Python prints it, or nothing of it.
        """
        texts = [f"{_PROBE} {number}" for number in range(2)]
        content = [{"type": "text", "text": text} for text in texts]
        try:
            rendering = self._render([{"role": "user", "content": content}], True, None)
        except InvalidRequest:
            return False
        return all(text in rendering for text in texts) and repr(texts[0]) not in rendering

    @cached_property
    def reads_parts(self) -> bool:
        """Whether the template renders texts only as parts of a content.

        Those of many models that see images iterate over the parts.
        """
        return not self._renders(_PROBE) and self._renders([{"type": "text", "text": _PROBE}])

    def _renders(self, content: Any) -> bool:
        try:
            return _PROBE in self._render([{"role": "user", "content": content}], True, None)
        except InvalidRequest:
            return False

    @cached_property
    def renders_system(self) -> bool:
        """Whether the template renders a system message."""
        system = [{"role": "system", "content": _PROBE}, {"role": "user", "content": "x"}]
        try:
            return _PROBE in self._render(self._in_form(system), True, None)
        except InvalidRequest:
            return False

    @cached_property
    def renders_systems(self) -> bool:
        """Whether the template renders several system messages, also between others; many keep one."""
        written = [f"{_PROBE} {number}" for number in range(3)]
        roles = ("system", "system", "user", "assistant", "system", "user")
        texts = (written[0], written[1], "x", "y", written[2], "z")
        probe = [{"role": role, "content": text} for role, text in zip(roles, texts, strict=True)]
        try:
            rendering = self._render(self._in_form(probe), True, None)
        except InvalidRequest:
            return False
        return all(text in rendering for text in written)

    @property
    def renders_offers(self) -> bool:
        """Whether the template renders the tools that the model may call."""
        return self._offer_writer is not None

    @cached_property
    def _offer_writer(self) -> _OfferWriter | None:
        """What makes the template render the tools; None if nothing does."""
        writers: tuple[_OfferWriter, ...] = (
            lambda messages, _: messages,
            with_system,
            with_system_tools,
        )
        return next(filter(self._renders_offer, writers), None)

    def _renders_offer(self, write: _OfferWriter) -> bool:
        question = self._in_form(write([{"role": "user", "content": "x"}], PROBE_TOOLS))
        try:
            return is_offer_complete(self._render(question, True, None, PROBE_TOOLS))
        except InvalidRequest:
            return False

    @cached_property
    def demands_short_ids(self) -> bool:
        """Whether the template renders calls with ids of nine letters and digits only, as Mistral's do."""
        return self.renders_tools and not self._renders_probe(
            self._with_readable_calls(LONG_ID_PROBE)
        )

    @cached_property
    def renders_several_calls(self) -> bool:
        """Whether the template renders all calls of a message."""
        probe = self._with_readable_calls(PROBE_OF_TWO)
        try:
            return is_probe_of_two_complete(self._render(self._in_form(probe), True, None))
        except InvalidRequest:
            return False

    @cached_property
    def renders_tools(self) -> bool:
        """Whether the template renders tool calls and their results."""
        return self._call_writer is not None

    @cached_property
    def _call_writer(self) -> _CallWriter | None:
        """What makes the calls of a conversation readable for the template; None if it renders none.

        DeepSeek's read arguments as JSON text only, and Kimi's a tool's name only in the ids of its calls.
        """
        writers: tuple[_CallWriter, ...] = (list, with_argument_texts, with_numbered_ids)
        return next((write for write in writers if self._renders_probe(write(PROBE))), None)

    @cached_property
    def _written_form(self) -> CallForm | None:
        """The form in which calls are written among the text of a template that renders all but calls.

        None for one that renders no offers or no results either: both are text then.
        """
        form = form_of_template(self.source)
        if not self.renders_offers or not form.signs or not can_write(form):
            return None
        return form if self._renders_probe(with_written_calls(PROBE, form)) else None

    def _with_rendered_calls(self, messages: Sequence[ChatMessage]) -> Sequence[ChatMessage]:
        """The conversation with all its calls and results as the template renders them."""
        if not self.renders_tools:
            form = self._written_form
            return (
                as_plain_messages(messages) if form is None else with_written_calls(messages, form)
            )
        if self.demands_short_ids:
            messages = with_short_ids(messages)
        if not self.renders_several_calls:
            messages = with_single_calls(messages)
        return self._with_readable_calls(messages)

    def _with_readable_calls(self, messages: Sequence[ChatMessage]) -> Sequence[ChatMessage]:
        """The messages with their calls as the template reads them."""
        return messages if self._call_writer is None else self._call_writer(messages)

    def _renders_probe(self, probe: Sequence[ChatMessage]) -> bool:
        try:
            return is_probe_complete(self._render(self._in_form(probe), True, None))
        except InvalidRequest:
            return False

    def _render(
        self,
        messages: Sequence[ChatMessage],
        add_generation_prompt: bool,
        budget: TemplateBudget | None,
        tools: Sequence[TemplateTool] = (),
        variables: Mapping[str, Any] | None = None,
    ) -> str:
        try:
            with spending(budget or TemplateBudget()):
                return self._write(messages, add_generation_prompt, tools, variables or {})
        except RefusedMessagesError as error:
            raise _Rejected(
                f"The model's chat template rejects these messages: {first_line(error)}.",
                param="messages",
            ) from error
        except TemplateLimitError as error:
            raise InvalidRequest(
                f"The model's chat template was stopped: {first_line(error)}.", param="messages"
            ) from error
        except (Exception, RecursionError) as error:  # a template can raise any exception
            raise InvalidRequest(
                f"The model's chat template fails on these messages: {first_line(error)}.",
                param="messages",
            ) from error

    def _write(
        self,
        messages: Sequence[ChatMessage],
        add_generation_prompt: bool,
        tools: Sequence[TemplateTool],
        variables: Mapping[str, Any],
    ) -> str:
        parts: list[str] = []
        length = 0
        pieces = self._template.generate(
            {
                **{
                    name: one
                    for name, one in variables.items()
                    if name not in self._template.globals
                },
                "messages": [_with_thinking(message) for message in messages],
                "tools": [dict(tool) for tool in tools] or self._no_tools,
                "documents": None,
                "add_generation_prompt": add_generation_prompt,
                **(_ABSENT_TOKENS | self.tokens),
            }
        )
        for piece in pieces:
            length += len(piece)
            if length > MAX_TEXT:
                raise TemplateLimitError(f"it writes more than {MAX_TEXT >> 20} million characters")
            parts.append(piece)
        return "".join(parts)

    @cached_property
    def _template(self) -> Template:
        if len(self.source) > _MAX_SOURCE:
            raise TemplateLimitError(f"its source is longer than {_MAX_SOURCE >> 10} KiB")
        return (self._sandbox or TemplateSandbox()).from_string(self.source)


def _with_thinking(message: ChatMessage) -> ChatMessage:
    """The message with its reasoning as `thinking` too, which the templates of gpt-oss and LFM2.5 read."""
    reasoning = message.get("reasoning_content")
    return dict(message) if reasoning is None else {"thinking": reasoning, **message}
