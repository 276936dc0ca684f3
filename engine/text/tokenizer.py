"""Text to token ids and back, for one model.

Encoding is the `tokenizers` library's; decoding goes through one table of bytes per token, so that
streamed and whole text can never disagree. Every method may be called from any thread.
"""

import os
from collections.abc import Callable, Iterable, Sequence
from functools import cached_property

import tokenizers

from engine.api.chat import ChatMessage
from engine.api.errors import InvalidRequest, ModelError
from engine.text.chat_encoding import ChatEncoder
from engine.text.chat_template import ChatTemplate
from engine.text.control_tokens import ControlTokens
from engine.text.incremental_detokenizer import IncrementalDetokenizer
from engine.text.token_bytes import Scheme, TokenBytes

# One text a call: a second thread pool beside the executor's would only take cores from it.
os.environ.setdefault("TOKENIZERS_PARALLELISM", "false")


class Tokenizer:
    """A model's vocabulary, its special tokens and its chat template.

    Attributes:
        vocab_size: ids are in [0, vocab_size).
        special_ids: control tokens, which `skip_special` hides.
        eos_ids: tokens that end an answer: end of text and end of turn.
        bos_id: beginning-of-sequence token, if the model has one.
        add_bos: the model expects `bos_id` before a raw prompt. The caller prepends it (`encode`
            never does); a rendered chat already holds what it needs.
        fingerprint: changes when stored token ids would mean other text.
        has_chat_template: False when `render_chat` falls back to ChatML.
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
    ) -> None:
        """Wrap an encoder whose added tokens are set.

        Args:
            encoder: recognises added tokens, special ones included, in text.
            pieces: the vocabulary by id; None asks the encoder for each.
            scheme: how pieces spell bytes.
            vocab_size: rows of the model's embedding, at least the encoder's own ids.
            bos_id: see the attribute.
            eos_ids: see the attribute.
            add_bos: see the attribute.
            strip_leading_space: encoding puts a space before the text, which decoding drops.
            chat_template: renders conversations.
            fingerprint: see the attribute.
        """
        added = encoder.get_added_tokens_decoder()
        self._encoder = encoder
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
        self._chat_template = chat_template
        self.bos_id = bos_id
        self.eos_ids = eos_ids
        self.add_bos = add_bos
        self.fingerprint = fingerprint

    @property
    def has_chat_template(self) -> bool:
        """Whether the model brings its own chat template."""
        return not self._chat_template.is_fallback

    @cached_property
    def control_tokens(self) -> ControlTokens:
        """The control tokens with what is written for them."""
        spellings: dict[str, int] = {}
        for token_id in sorted(self.special_ids):
            text = self._bytes[token_id].decode(errors="replace")
            if text:
                spellings.setdefault(text, token_id)
        return ControlTokens(spellings)

    def encode(self, text: str, *, special: bool = False) -> list[int]:
        """Token ids of text, without an added bos.

        Control tokens spelled out in the text are ordinary text unless `special`: never use it for
        what a user or a document wrote; conversations have `encode_chat`.

        Raises:
            InvalidRequest: the text is not valid Unicode.
        """
        encoder = self._encoder if special else self._plain_encoder
        try:
            # The batch call releases the GIL, `encode` keeps it: a second for a book.
            (encoding,) = encoder.encode_batch_fast([text], add_special_tokens=False)
        except TypeError as error:
            raise InvalidRequest(_why_not_text(text)) from error
        ids: list[int] = encoding.ids
        return ids

    def decode(self, token_ids: Iterable[int], *, skip_special: bool = True) -> str:
        """Text of token ids; bytes that form no character become U+FFFD.

        Raises:
            InvalidRequest: an id outside the vocabulary.
        """
        ids = list(token_ids)
        for token_id in ids:
            self._check(token_id)
        stream = self.incremental_detokenizer(skip_special=skip_special)
        return stream.feed(ids) + stream.flush()

    def incremental_detokenizer(
        self, *, skip_special: bool = True, after: int | None = None
    ) -> IncrementalDetokenizer:
        """An incremental decoder.

        Args:
            skip_special: hide control tokens.
            after: the token before the stream's first, when it continues a prompt. SentencePiece
                text keeps its leading space after an ordinary token; without `after`, and after a
                special one, text begins anew.
        """
        begins = after is None or after in self.special_ids
        return IncrementalDetokenizer(
            self._bytes,
            hidden=self.special_ids if skip_special else frozenset(),
            strip_leading_space=self._strip_leading_space and begins,
        )

    def token_bytes(self, token_id: int) -> bytes:
        """The bytes one token stands for; possibly part of a character.

        Raises:
            InvalidRequest: an id outside the vocabulary.
        """
        self._check(token_id)
        return self._bytes[token_id]

    def render_chat(
        self, messages: Sequence[ChatMessage], *, add_generation_prompt: bool = True
    ) -> str:
        """The chat template applied to messages, as text to look at; to run it, `encode_chat`.

        Raises:
            InvalidRequest: the template refuses the messages.
        """
        return self._chat_template.render(messages, add_generation_prompt=add_generation_prompt)

    def encode_chat(
        self, messages: Sequence[ChatMessage], *, add_generation_prompt: bool = True
    ) -> list[int]:
        """Token ids of the rendered messages, in which no content becomes a control token.

        Raises:
            InvalidRequest: the template refuses the messages, or one is not valid Unicode.
        """
        encoder = ChatEncoder(self.encode, self.render_chat, self.control_tokens)
        return encoder.encode_chat(messages, add_generation_prompt=add_generation_prompt)

    def _check(self, token_id: int) -> None:
        if not 0 <= token_id < self.vocab_size:
            raise InvalidRequest(
                f"Token id {token_id} is outside the vocabulary of {self.vocab_size} tokens."
            )


def _why_not_text(text: str) -> str:
    try:
        text.encode()
    except UnicodeEncodeError as error:
        return f"The text holds half a surrogate pair at character {error.start}."
    return "The tokenizer takes text only."


def _lookup(pieces: Sequence[str]) -> Callable[[int], str | None]:
    return lambda token_id: pieces[token_id] if token_id < len(pieces) else None


def _special_as_text(encoder: tokenizers.Tokenizer) -> tokenizers.Tokenizer:
    """A sibling that shares the model (no copy) and reads special tokens as ordinary text.

    Two encoders instead of one with a switch: the switch would need a lock around every call.
    """
    sibling = tokenizers.Tokenizer(encoder.model)
    if encoder.normalizer is not None:
        sibling.normalizer = encoder.normalizer
    if encoder.pre_tokenizer is not None:
        sibling.pre_tokenizer = encoder.pre_tokenizer
    added = encoder.get_added_tokens_decoder()
    sibling.add_tokens([added[token_id] for token_id in sorted(added)])
    if sibling.get_added_tokens_decoder().keys() != added.keys():
        raise ModelError("The tokenizer's added tokens leave gaps between their ids.")
    sibling.encode_special_tokens = True
    return sibling
