"""The tokenizer of a GGUF file, built from the vocabulary in its metadata.

Takes about 70 ms for 49,000 tokens in bytes, almost all of it in the `tokenizers` library, and 2 s for a
SentencePiece vocabulary of 262,000 (Gemma 3), more than half of it for its merges.
"""

import hashlib
from collections.abc import Mapping, Sequence
from enum import IntEnum

from tokenizers import AddedToken, normalizers
from tokenizers import Tokenizer as Encoder
from tokenizers.models import BPE

from engine.api.error_text import first_line
from engine.api.errors import ModelError
from engine.files.fields import Fields
from engine.text.chat_template import ChatTemplate
from engine.text.end_of_turn import end_ids
from engine.text.infill import DECLARED_KEYS, find_infill_tokens
from engine.text.pre_tokenizers import text_splitter
from engine.text.sentencepiece_merges import merges_from_scores
from engine.text.special_ids import SpecialIds, without_rows
from engine.text.token_bytes import Scheme
from engine.text.tokenizer import Tokenizer

_SPACE_MARK = "\u2581"
_PREFIX = "tokenizer.ggml."
_END_KEYS = ("eos_token_id", "eot_token_id", "eom_token_id")
_NAMED = {"bos": "bos", "eos": "eos", "unk": "unknown", "pad": "padding"}
"""GGUF's words for the special tokens that chat templates know by other names."""


class TokenType(IntEnum):
    """GGUF's `tokenizer.ggml.token_type`."""

    NORMAL = 1
    UNKNOWN = 2
    CONTROL = 3
    USER_DEFINED = 4
    UNUSED = 5
    BYTE = 6


_OF_TEXT = frozenset({TokenType.NORMAL, TokenType.BYTE})
"""The kinds of tokens without which text cannot be written."""


def read_tokenizer(metadata: Mapping[str, object], *, source: str, vocab_size: int) -> Tokenizer:
    """The tokenizer of GGUF metadata.

    Args:
        metadata: the file's key-value pairs.
        source: names the file in messages.
        vocab_size: rows of the embedding, at least the size of the vocabulary.

    Raises:
        ModelError: a field is missing or damaged, or the kind of tokenizer is not supported.
    """
    fields = Fields(metadata, source=source)
    kind = fields.text(_PREFIX + "model")
    pieces = fields.texts(_PREFIX + "tokens")
    types = _token_types(fields, len(pieces))
    surplus = pieces[vocab_size:]
    if not pieces or any(kind in _OF_TEXT for kind in types[vocab_size:]):
        raise ModelError(
            f"{source} lists {len(pieces)} tokens for an embedding of {vocab_size} rows."
        )
    pieces, types = pieces[:vocab_size], types[:vocab_size]
    special_ids = SpecialIds(fields, len(pieces), prefix=_PREFIX)
    match kind:
        case "gpt2":
            encoder, adds_bos, adds_space = _byte_level(fields, pieces, source=source)
            scheme: Scheme = "byte-level"
        case "llama":
            unknown = special_ids.first("unknown_token_id")
            encoder, adds_bos, adds_space = _sentencepiece(fields, pieces, types, unknown)
            scheme = "sentencepiece"
        case "gemma4":
            types = _gemma4_types(pieces, types)
            unknown = special_ids.first("unknown_token_id")
            encoder, adds_bos, adds_space = _character_level(fields, pieces, types, unknown)
            scheme = "sentencepiece"
        case _:
            raise ModelError(
                f"{source} has a tokenizer of kind {kind!r}, which is not supported "
                "(supported: gemma4, gpt2, llama)."
            )
    declared = [token_id for key in _END_KEYS for token_id in special_ids.all(key)]
    # As SentencePiece, which looks for user-defined tokens after it has replaced spaces by marks. It puts a
    # space before a text once, but `tokenizers` would put one before each of these tokens.
    special = _add_tokens(
        encoder, pieces, types, declared, in_normalized=kind == "llama" and not adds_space
    )
    template = fields.optional_text("tokenizer.chat_template")
    tool_use = fields.optional_text("tokenizer.chat_template.tool_use")
    named = {name: special_ids.first(f"{key}_token_id") for name, key in _NAMED.items()}
    bos_id = named["bos"]
    infill = {key: one for key in DECLARED_KEYS if (one := special_ids.first(key)) is not None}
    texts = {f"{name}_token": pieces[i] for name, i in named.items() if i is not None}
    return Tokenizer(
        encoder,
        pieces=pieces,
        scheme=scheme,
        vocab_size=vocab_size,
        bos_id=bos_id,
        eos_ids=end_ids(declared, special, template),
        add_bos=bos_id is not None and fields.flag(_PREFIX + "add_bos_token", default=adds_bos),
        strip_leading_space=adds_space,
        chat_template=ChatTemplate(template, tokens=texts, tool_use=tool_use),
        fingerprint=_fingerprint(fields, pieces, types, (template or "") + (tool_use or "")),
        notes=special_ids.notes + ([without_rows(surplus, vocab_size)] if surplus else []),
        infill=find_infill_tokens(encoder.token_to_id, infill),
    )


def _token_types(fields: Fields, count: int) -> list[int]:
    key = _PREFIX + "token_type"
    if key not in fields:
        return [TokenType.NORMAL] * count
    types = fields.integers(key)
    if len(types) != count:
        raise ModelError(f"{fields.source} gives {len(types)} token types for {count} tokens.")
    return types


def _byte_level(
    fields: Fields, pieces: Sequence[str], *, source: str
) -> tuple[Encoder, bool, bool]:
    """The encoder, whether it adds BOS by default, and whether it adds a leading space."""
    splitter = text_splitter(fields.text(_PREFIX + "pre", default="default"), source=source)
    encoder = Encoder(_bpe(fields, pieces, _merges(fields), ignore_merges=splitter.ignore_merges))
    if splitter.normalizer is not None:
        encoder.normalizer = splitter.normalizer
    encoder.pre_tokenizer = splitter.pre_tokenizer
    return encoder, splitter.adds_bos, False


def _merges(fields: Fields) -> list[tuple[str, str]]:
    """The merges of the file, in order of application."""
    merges: list[tuple[str, str]] = []
    for merge in fields.texts(_PREFIX + "merges"):
        left, space, right = merge.partition(" ")
        if not space:
            raise ModelError(f"{fields.source}: the merge {merge!r} does not name two tokens.")
        merges.append((left, right))
    return merges


def _character_level(
    fields: Fields, pieces: Sequence[str], types: Sequence[int], unknown: int | None
) -> tuple[Encoder, bool, bool]:
    """The encoder of Gemma 4: SentencePiece's marks and bytes, with the merges in the file."""
    encoder = Encoder(
        _bpe(
            fields,
            pieces,
            _merges(fields),
            byte_fallback=TokenType.BYTE in types,
            fuse_unk=True,
            unk_token=None if unknown is None else pieces[unknown],
        )
    )
    encoder.normalizer = normalizers.Replace(" ", _SPACE_MARK)
    return encoder, True, False


def _gemma4_types(pieces: Sequence[str], types: Sequence[int]) -> list[int]:
    """The types of a file of Gemma 4's, corrected.

    The converter calls the marks of calls and of reasoning user-defined, so that llama.cpp shows them, and
    runs of line feeds normal, for which there are no merges.
    """
    return [
        TokenType.CONTROL
        if kind == TokenType.USER_DEFINED
        else TokenType.USER_DEFINED
        if len(piece) > 1 and not piece.strip("\n")
        else kind
        for piece, kind in zip(pieces, types, strict=True)
    ]


def _sentencepiece(
    fields: Fields, pieces: Sequence[str], types: Sequence[int], unknown: int | None
) -> tuple[Encoder, bool, bool]:
    """The encoder, whether it adds BOS by default, and whether it adds a leading space."""
    scores = fields.numbers(_PREFIX + "scores")[: len(pieces)]
    if len(scores) != len(pieces):
        raise ModelError(f"{fields.source} gives {len(scores)} scores for {len(pieces)} tokens.")
    vocabulary = {piece: token_id for token_id, piece in enumerate(pieces)}
    mergeable = [
        piece
        for token_id, piece in enumerate(pieces)
        if types[token_id] == TokenType.NORMAL and vocabulary[piece] == token_id
    ]
    if unknown is None and TokenType.UNKNOWN in types:
        unknown = types.index(TokenType.UNKNOWN)
    encoder = Encoder(
        _bpe(
            fields,
            pieces,
            merges_from_scores(vocabulary, scores, mergeable),
            byte_fallback=TokenType.BYTE in types,
            fuse_unk=True,
            unk_token=None if unknown is None else pieces[unknown],
        )
    )
    adds_space = fields.flag(_PREFIX + "add_space_prefix", default=True)
    escape = normalizers.Replace(" ", _SPACE_MARK)
    encoder.normalizer = (
        normalizers.Sequence([normalizers.Prepend(_SPACE_MARK), escape]) if adds_space else escape
    )
    return encoder, True, adds_space


def _bpe(
    fields: Fields, pieces: Sequence[str], merges: list[tuple[str, str]], **options: object
) -> BPE:
    vocabulary = {piece: token_id for token_id, piece in enumerate(pieces)}
    try:
        return BPE(vocabulary, merges, **options)
    except Exception as error:  # the library raises plain Exception for merges of unknown tokens
        raise ModelError(
            f"{fields.source} has merges that do not fit its tokens: {first_line(error)}."
        ) from error


def _add_tokens(
    encoder: Encoder,
    pieces: Sequence[str],
    types: Sequence[int],
    declared: Sequence[int],
    *,
    in_normalized: bool,
) -> dict[str, int]:
    """Add control and user-defined tokens to the encoder; return the control tokens, text to id.

    User-defined ones are looked for in the text before or after it is normalized.
    """
    control = {i for i, kind in enumerate(types) if kind == TokenType.CONTROL}
    control |= set(declared)  # old converters mark all tokens as normal
    control |= {i for i, kind in enumerate(types) if kind == TokenType.UNKNOWN}
    user_defined = {i for i, kind in enumerate(types) if kind == TokenType.USER_DEFINED} - control
    encoder.add_tokens(
        [
            AddedToken(
                pieces[i], special=i in control, normalized=in_normalized and i not in control
            )
            for i in sorted(control | user_defined)
            if pieces[i] and encoder.token_to_id(pieces[i]) == i
        ]
    )
    return {pieces[i]: i for i in control}


def _fingerprint(
    fields: Fields, pieces: Sequence[str], types: Sequence[int], templates: str
) -> str:
    """SHA-256 of everything that determines the mapping between text and ids."""
    digest = hashlib.sha256()
    parts = [
        fields.text(_PREFIX + "model"),
        fields.text(_PREFIX + "pre", default=""),
        "\n".join(pieces),
        ",".join(map(str, types)),
        templates,
    ]
    if _PREFIX + "merges" in fields:
        parts.append("\n".join(fields.texts(_PREFIX + "merges")))
    if _PREFIX + "scores" in fields:
        parts.append(",".join(map(repr, fields.numbers(_PREFIX + "scores"))))
    for part in parts:
        raw = part.encode("utf-8", "surrogatepass")
        digest.update(len(raw).to_bytes(8, "little"))
        digest.update(raw)
    return digest.hexdigest()
