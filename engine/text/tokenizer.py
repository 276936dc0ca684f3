"""`Tokenizer`: encoding and decoding for one model.

Encoding is done by the `tokenizers` library, decoding by one table of bytes per token, so that streamed
and complete text are equal. Thread-safe.
"""

import os
from collections.abc import Callable, Iterable, Mapping, Sequence, Set
from dataclasses import asdict
from functools import cached_property, partial
from typing import Any

import tokenizers

from engine.api.chat import ChatMessage
from engine.api.error_text import first_line
from engine.api.errors import InvalidRequest, ModelError
from engine.text.chat_encoding import ChatEncoder, encode_rest
from engine.text.chat_template import ChatTemplate
from engine.text.continued_chat import encode_after
from engine.text.continued_message import render_open
from engine.text.control_tokens import ControlTokens
from engine.text.incremental_detokenizer import IncrementalDetokenizer
from engine.text.infill import InfillTokens
from engine.text.reasoning_markers import ReasoningMarkers, markers_of
from engine.text.token_bytes import Scheme, TokenBytes
from engine.text.tool_messages import TemplateTool

# Each call encodes one text: a second thread pool would only take cores from the executor's.
os.environ.setdefault("TOKENIZERS_PARALLELISM", "false")

_CHATML_MARK = "<|im_start|>"


class Tokenizer:
    """A model's vocabulary, its special tokens and its chat template.

    Attributes:
        vocab_size: ids are in [0, vocab_size).
        special_ids: control tokens, which `skip_special` hides.
        eos_ids: tokens that end an answer: end of text and end of turn.
        bos_id: beginning-of-sequence token, or None.
        add_bos: whether the model expects `bos_id` before a raw prompt. The caller prepends it, not
            `encode`; a rendered chat already contains it.
        fingerprint: equal fingerprints map token ids to equal text.
        infill: the tokens for filling a gap between two texts, or None.
        has_chat_template: False if `render_chat` falls back to ChatML, or to plain text.
        continues_text: whether the model has no chat template, and its vocabulary no marks of ChatML: chats
            are texts that it continues.
    """

    def __init__(
        self,
        encoder: tokenizers.Tokenizer,
        *,
        pieces: Sequence[str] | None = None,
        scheme: Scheme,
        vocab_size: int,
        bos_id: int | None,
        eos_ids: frozenset[int],
        add_bos: bool,
        strip_leading_space: bool,
        chat_template: ChatTemplate,
        fingerprint: str,
        notes: Sequence[str] = (),
        infill: InfillTokens | None = None,
    ) -> None:
        """Wrap an encoder.

        Args:
            encoder: its added tokens, including special ones, must be set.
            pieces: the vocabulary by id; None reads it from the encoder.
            scheme: how pieces represent bytes.
            vocab_size: rows of the model's embedding.
            bos_id: see the attribute.
            eos_ids: see the attribute.
            add_bos: see the attribute.
            strip_leading_space: encoding adds a space before the text, which decoding removes.
            chat_template: renders conversations.
            fingerprint: see the attribute.
            notes: what of the model's files is not used, and why, in sentences.
            infill: see the attribute.
        """
        added = encoder.get_added_tokens_decoder()
        self._encoder = encoder
        self._pieces = pieces
        self._scheme = scheme
        self._plain_encoder = _special_as_text(encoder)
        self.vocab_size = max(vocab_size, encoder.get_vocab_size(with_added_tokens=True))
        self.special_ids = frozenset(i for i, token in added.items() if token.special)
        self._bytes = TokenBytes(
            encoder.id_to_token if pieces is None else _lookup(pieces),
            scheme=scheme,
            literal={token_id: token.content for token_id, token in added.items()},
            size=self.vocab_size,
        )
        self._strip_leading_space = strip_leading_space
        self.continues_text = chat_template.is_fallback and not any(
            added[i].content == _CHATML_MARK for i in self.special_ids
        )
        if self.continues_text:
            chat_template = ChatTemplate.continuing_text(chat_template.tokens, begins=add_bos)
        self._chat_template = chat_template
        self.bos_id = bos_id
        self.eos_ids = eos_ids
        self.add_bos = add_bos
        self.fingerprint = fingerprint
        self._notes = tuple(notes)
        self.infill = infill

    @classmethod
    def from_fields(cls, fields: Mapping[str, Any]) -> "Tokenizer":
        """The tokenizer that `to_fields` described.

        Raises:
            ModelError: a field is missing or damaged.
        """
        try:
            encoder = tokenizers.Tokenizer.from_str(fields["encoder"])
            pieces = None
            if fields["pieces"] is not None:
                named = {int(token_id): piece for token_id, piece in fields["pieces"].items()}
                pieces = [
                    named.get(token_id) or encoder.id_to_token(token_id) or ""
                    for token_id in range(fields["num_pieces"])
                ]
            template = fields["chat_template"]
            return cls(
                encoder,
                pieces=pieces,
                scheme=fields["scheme"],
                vocab_size=fields["vocab_size"],
                bos_id=fields["bos_id"],
                eos_ids=frozenset(fields["eos_ids"]),
                add_bos=fields["add_bos"],
                strip_leading_space=fields["strip_leading_space"],
                chat_template=ChatTemplate(
                    template["source"],
                    tokens=template["tokens"],
                    tool_use=template.get("tool_use"),
                ),
                fingerprint=fields["fingerprint"],
                infill=None if fields.get("infill") is None else _infill(fields["infill"]),
            )
        except Exception as error:  # the library raises plain Exception for damaged text
            raise ModelError(f"The tokenizer is damaged: {first_line(error)}.") from error

    def to_fields(self) -> dict[str, Any]:
        """JSON values from which `from_fields` makes an equal tokenizer; megabytes of text."""
        pieces = None
        if self._pieces is not None:  # only those that the encoder does not know under this id
            pieces = {
                str(token_id): piece
                for token_id, piece in enumerate(self._pieces)
                if self._encoder.id_to_token(token_id) != piece
            }
        return {
            "encoder": self._encoder.to_str(),
            "pieces": pieces,
            "num_pieces": 0 if self._pieces is None else len(self._pieces),
            "scheme": self._scheme,
            "vocab_size": self.vocab_size,
            "bos_id": self.bos_id,
            "eos_ids": sorted(self.eos_ids),
            "add_bos": self.add_bos,
            "strip_leading_space": self._strip_leading_space,
            "chat_template": {
                "source": None if self._chat_template.is_fallback else self._chat_template.source,
                "tokens": dict(self._chat_template.tokens),
                "tool_use": None
                if self._chat_template.for_tools is None
                else self._chat_template.for_tools.source,
            },
            "fingerprint": self.fingerprint,
            "infill": None
            if self.infill is None
            else asdict(self.infill) | {"end_ids": sorted(self.infill.end_ids)},
        }

    @property
    def has_chat_template(self) -> bool:
        """Whether the model has a chat template."""
        return not self._chat_template.is_fallback

    @property
    def notes(self) -> tuple[str, ...]:
        """What the model's owner should know about its files, in sentences.

        Renders the chat template the first time.
        """
        notes = list(self._notes)
        if self.continues_text:
            notes.append("The model has no chat template: it continues text.")
        if not self.eos_ids:
            notes.append("No token is known to end an answer: each ends at its length limit.")
        if self._chat_template.problem is not None:
            notes.append(f"Chats are refused. {self._chat_template.problem}")
        return tuple(notes)

    @property
    def chat_template(self) -> str:
        """The source of the template that `render_chat` applies."""
        return self._chat_template.source

    @property
    def tool_template(self) -> str:
        """The source of the template that it applies where there are tools."""
        return (self._chat_template.for_tools or self._chat_template).source

    @cached_property
    def reasoning(self) -> ReasoningMarkers | None:
        """How the model marks its reasoning; None for a model without any."""
        if self._chat_template.is_fallback:
            return None
        return markers_of(self.chat_template) or markers_of(self.tool_template)

    def named_token(self, name: str) -> str | None:
        """The text of a special token by its name in chat templates, such as `eos_token`; None without one.

        A model without a name for its BOS or end token has that of the id.
        """
        text = self._chat_template.tokens.get(name)
        if text is not None:
            return text
        ids = {"bos_token": self.bos_id, "eos_token": min(self.eos_ids, default=None)}
        token_id = ids.get(name)
        return None if token_id is None else self._bytes[token_id].decode(errors="replace")

    @cached_property
    def control_tokens(self) -> ControlTokens:
        """The control tokens and their spellings."""
        spellings: dict[str, int] = {}
        for token_id in sorted(self.special_ids):
            text = self._bytes[token_id].decode(errors="replace")
            if text:
                spellings.setdefault(text, token_id)
        return ControlTokens(spellings)

    def encode(self, text: str, *, special: bool = False) -> list[int]:
        """Token ids of text, without BOS.

        Spellings of control tokens are encoded as ordinary text unless `special` is set. Do not set it
        for text from users or documents; for conversations use `encode_chat`.

        Raises:
            InvalidRequest: the text is not valid Unicode.
        """
        encoder = self._encoder if special else self._plain_encoder
        try:
            # The batch call releases the GIL; `encode` holds it, about 1 s for a book.
            (encoding,) = encoder.encode_batch_fast([text], add_special_tokens=False)
        except TypeError as error:
            raise InvalidRequest(_encoding_error(text)) from error
        ids: list[int] = encoding.ids
        return ids

    def encode_rest(self, text: str) -> list[int]:
        """As `encode`, for text that continues another: no space is added before it."""
        return encode_rest(self.encode, text) if self._strip_leading_space else self.encode(text)

    def decode(self, token_ids: Iterable[int], *, skip_special: bool = True) -> str:
        """Text of token ids; invalid UTF-8 becomes U+FFFD.

        Raises:
            InvalidRequest: an id outside the vocabulary.
        """
        ids = list(token_ids)
        for token_id in ids:
            self._check(token_id)
        stream = self.incremental_detokenizer(skip_special=skip_special)
        return stream.feed(ids) + stream.flush()

    def token_texts(self, token_ids: Iterable[int]) -> list[str]:
        """The text that each token adds to the text of those before it, without control tokens.

        A character (or grapheme that is certain to grow) is added whole by the token that completes it,
        and the tokens before add nothing. The concatenation is `decode(token_ids)`.

        Raises:
            InvalidRequest: an id outside the vocabulary.
        """
        ids = list(token_ids)
        for token_id in ids:
            self._check(token_id)
        stream = self.incremental_detokenizer()
        texts = [stream.feed([token_id]) for token_id in ids]
        if texts:
            texts[-1] += stream.flush()
        return texts

    def incremental_detokenizer(
        self,
        *,
        skip_special: bool = True,
        after: int | None = None,
        shown: Set[int] = frozenset(),
    ) -> IncrementalDetokenizer:
        """A detokenizer for one sequence.

        Args:
            skip_special: omit control tokens.
            shown: control tokens that are not omitted.
            after: the token before the first one, if the sequence continues a prompt. SentencePiece
                text keeps its leading space after an ordinary token, and in the middle of an infill; at
                the start of a text or after another special token it is removed.
        """
        starts_text = after is None or after in self.special_ids
        if after is not None and self.infill is not None and after == self.infill.middle:
            starts_text = False
        return IncrementalDetokenizer(
            self._bytes,
            hidden=self.special_ids - shown if skip_special else frozenset(),
            strip_leading_space=self._strip_leading_space and starts_text,
        )

    def token_bytes(self, token_id: int) -> bytes:
        """The bytes of a token, possibly a part of a character.

        Raises:
            InvalidRequest: an id outside the vocabulary.
        """
        self._check(token_id)
        return self._bytes[token_id]

    def render_chat(
        self,
        messages: Sequence[ChatMessage],
        *,
        add_generation_prompt: bool = True,
        tools: Sequence[TemplateTool] = (),
        variables: Mapping[str, Any] | None = None,
    ) -> str:
        """The chat template applied to messages. For token ids use `encode_chat`.

        Args:
            messages: the conversation.
            add_generation_prompt: whether the assistant's turn is begun.
            tools: what the model may call (`template_tools`).
            variables: further variables for the template, such as `enable_thinking`; those that it does
                not read have no effect.

        Raises:
            InvalidRequest: the template rejects the messages, fails, exceeds a limit, or cannot render any;
                or a variable spells a control token.
        """
        if self._chat_template.problem is not None:
            raise InvalidRequest(self._chat_template.problem, param="messages")
        self._check_variables(variables or {})
        return self._chat_template.render(
            messages,
            add_generation_prompt=add_generation_prompt,
            tools=tools,
            variables=variables,
        )

    def render_open_chat(
        self,
        messages: Sequence[ChatMessage],
        *,
        tools: Sequence[TemplateTool] = (),
        variables: Mapping[str, Any] | None = None,
    ) -> str:
        """The chat template applied to messages, up to the end of the last one, which is continued.

        Raises:
            InvalidRequest: as `render_chat`, or the last message cannot be continued.
        """
        render = partial(self.render_chat, tools=tools, variables=variables)
        return "".join(render_open(messages, render))

    def encode_chat(
        self,
        messages: Sequence[ChatMessage],
        *,
        add_generation_prompt: bool = True,
        tools: Sequence[TemplateTool] = (),
        variables: Mapping[str, Any] | None = None,
    ) -> list[int]:
        """Token ids of the rendered messages; spellings of control tokens in them are ordinary text.

        So are those in the tools. Arguments as of `render_chat`.

        Raises:
            InvalidRequest: as `render_chat`, or a message is not valid Unicode.
        """
        encoder = self._chat_encoder(tools, variables)
        return encoder.encode_chat(messages, add_generation_prompt=add_generation_prompt)

    def encode_open_chat(
        self,
        messages: Sequence[ChatMessage],
        *,
        tools: Sequence[TemplateTool] = (),
        variables: Mapping[str, Any] | None = None,
    ) -> tuple[list[int], int]:
        """Token ids of messages whose last one is continued, and how many of them begin the answer.

        Raises:
            InvalidRequest: as `render_open_chat`, or a message is not valid Unicode.
        """
        return self._chat_encoder(tools, variables).encode_open(messages)

    def encode_chat_after(
        self,
        messages: Sequence[ChatMessage],
        answer: int,
        computed: Sequence[int],
        *,
        add_generation_prompt: bool = True,
        tools: Sequence[TemplateTool] = (),
        variables: Mapping[str, Any] | None = None,
    ) -> list[int] | None:
        """Token ids of messages that begin with a sequence that was computed (`encode_after`)."""
        return encode_after(
            self._chat_encoder(tools, variables),
            messages,
            answer,
            computed,
            self.eos_ids,
            add_generation_prompt=add_generation_prompt,
        )

    def _chat_encoder(
        self, tools: Sequence[TemplateTool], variables: Mapping[str, Any] | None
    ) -> ChatEncoder:
        render = partial(self.render_chat, variables=variables)
        return ChatEncoder(
            self.encode,
            render,
            self.control_tokens,
            tools,
            lambda offered: partial(render, tools=offered),
        )

    def _check_variables(self, variables: Mapping[str, Any]) -> None:
        """Refuse text that could become a control token where the template writes it."""
        pending: list[Any] = [variables]
        while pending:
            value = pending.pop()
            if isinstance(value, str) and self.control_tokens.is_spelled_in(value):
                raise InvalidRequest(
                    "A variable for the chat template spells a control token.",
                    param="chat_template_kwargs",
                )
            if isinstance(value, Mapping):
                pending += [*value, *value.values()]
            elif isinstance(value, list):
                pending += value

    def _check(self, token_id: int) -> None:
        if not 0 <= token_id < self.vocab_size:
            raise InvalidRequest(
                f"Token id {token_id} is outside the vocabulary of {self.vocab_size} tokens."
            )


def _infill(fields: Mapping[str, Any]) -> InfillTokens:
    return InfillTokens(**{**fields, "end_ids": frozenset(fields["end_ids"])})


def _encoding_error(text: str) -> str:
    try:
        text.encode()
    except UnicodeEncodeError as error:
        return f"The text contains an unpaired surrogate at character {error.start}."
    return "The tokenizer accepts only text."


def _lookup(pieces: Sequence[str]) -> Callable[[int], str | None]:
    return lambda token_id: pieces[token_id] if token_id < len(pieces) else None


def _special_as_text(encoder: tokenizers.Tokenizer) -> tokenizers.Tokenizer:
    """A second encoder that shares the model (no copy) and encodes special tokens as ordinary text.

    Toggling `encode_special_tokens` of a single encoder would require a lock around every call.
    """
    sibling = tokenizers.Tokenizer(encoder.model)
    if encoder.normalizer is not None:
        sibling.normalizer = encoder.normalizer
    if encoder.pre_tokenizer is not None:
        sibling.pre_tokenizer = encoder.pre_tokenizer
    added = encoder.get_added_tokens_decoder()
    sibling.add_tokens([added[token_id] for token_id in sorted(added)])
    if sibling.get_added_tokens_decoder().keys() != added.keys():
        raise ModelError("The ids of the tokenizer's added tokens are not contiguous.")
    sibling.encode_special_tokens = True
    return sibling
