"""The tokenizer of a Hugging Face model directory, from tokenizer.json and related files."""

import hashlib
from pathlib import Path
from typing import Any

import orjson
from tokenizers import Tokenizer as Encoder

from engine.api.error_text import first_line
from engine.api.errors import ModelError
from engine.files.fields import Fields
from engine.files.json_file import read_optional_json
from engine.models.hub_files import TOOL_TEMPLATE_FILE
from engine.text.chat_template import ChatTemplate
from engine.text.end_of_turn import end_ids
from engine.text.infill import find_infill_tokens
from engine.text.special_ids import SpecialIds, without_rows
from engine.text.token_bytes import Scheme
from engine.text.tokenizer import Tokenizer

_MAX_BYTES = 256 << 20
_TEMPLATE_FILE = "chat_template.jinja"
_TEMPLATE_JSON = "chat_template.json"


def read_tokenizer(directory: Path, config: Fields, *, vocab_size: int) -> Tokenizer:
    """The tokenizer of a model directory.

    Args:
        directory: holds tokenizer.json; tokenizer_config.json, generation_config.json,
            chat_template.jinja, additional_chat_templates/tool_use.jinja and chat_template.json are read if
            present.
        config: the model's config.json.
        vocab_size: rows of the embedding.

    Raises:
        ModelError: a file is missing or damaged, or the kind of tokenizer is not supported.
    """
    path = directory / "tokenizer.json"
    raw = _read(path)
    try:
        encoder = Encoder.from_buffer(raw)
        description = orjson.loads(raw)
    except Exception as error:  # the library raises plain Exception for a damaged file
        raise ModelError(f"{path} is damaged: {first_line(error)}.") from error
    highest = max(encoder.get_vocab(with_added_tokens=False).values(), default=-1)
    if highest >= vocab_size:
        raise ModelError(f"{path} has token id {highest}, but the embedding has {vocab_size} rows.")
    notes: list[str] = []
    surplus = [
        token.content
        for token_id, token in encoder.get_added_tokens_decoder().items()
        if token_id >= vocab_size
    ]
    if surplus:
        encoder = _without_surplus(description, vocab_size, path)
        notes.append(without_rows(surplus, vocab_size))
    encoder.no_truncation()
    encoder.no_padding()
    scheme, strips = _scheme(description, path)
    settings = read_optional_json(directory / "tokenizer_config.json")
    if "auto_map" in settings:
        raise ModelError(f"{settings.source} requires custom code (auto_map), which is never run.")
    template, tool_use = _template(directory, settings), _tool_use(directory, settings)
    generation = read_optional_json(directory / "generation_config.json")
    special = {
        token.content: token_id
        for token_id, token in encoder.get_added_tokens_decoder().items()
        if token.special
    }
    bos = _token_text(settings, "bos_token")
    eos = _token_text(settings, "eos_token")
    bos_id = None if bos is None else encoder.token_to_id(bos)
    declared = set()
    for fields in (config, generation):
        special_ids = SpecialIds(fields, vocab_size)
        declared.update(special_ids.all("eos_token_id"))
        notes += special_ids.notes
    if eos is not None and (eos_id := encoder.token_to_id(eos)) is not None:
        declared.add(eos_id)
    return Tokenizer(
        encoder,
        scheme=scheme,
        vocab_size=vocab_size,
        bos_id=bos_id,
        eos_ids=end_ids(declared, special, template),
        add_bos=bos_id is not None and _adds_bos(encoder, settings, bos_id),
        strip_leading_space=strips,
        chat_template=ChatTemplate(template, tokens=_named_tokens(settings), tool_use=tool_use),
        fingerprint=hashlib.sha256(
            raw + (template or "").encode() + (tool_use or "").encode()
        ).hexdigest(),
        notes=notes,
        infill=find_infill_tokens(encoder.token_to_id),
    )


def _read(path: Path) -> bytes:
    try:
        if path.stat().st_size > _MAX_BYTES:
            raise ModelError(f"{path} is larger than {_MAX_BYTES >> 20} MB.")
        return path.read_bytes()
    except FileNotFoundError as error:
        raise ModelError(f"{path.parent} has no {path.name}.") from error
    except OSError as error:
        raise ModelError(f"{path} cannot be read: {error.strerror}.") from error


def _without_surplus(description: dict[str, Any], rows: int, path: Path) -> Encoder:
    """The encoder without the added tokens that have no row in the embedding.

    Raises:
        ModelError: the rest is not a tokenizer.
    """
    kept = [token for token in description["added_tokens"] if token["id"] < rows]
    try:
        return Encoder.from_buffer(orjson.dumps({**description, "added_tokens": kept}))
    except Exception as error:  # the library raises plain Exception for a damaged file
        raise ModelError(
            f"{path} has tokens beyond the {rows} rows of the embedding and cannot be read without them: "
            f"{first_line(error)}."
        ) from error


def _scheme(description: object, path: Path) -> tuple[Scheme, bool]:
    """How pieces represent bytes, and whether decoding removes a leading space."""
    decoder = description.get("decoder") if isinstance(description, dict) else None
    steps = _steps(decoder)
    kinds = {str(step.get("type")) for step in steps}
    if kinds == {"ByteLevel"}:
        return "byte-level", False
    if kinds and kinds <= {"Replace", "ByteFallback", "Fuse", "Strip", "Metaspace"}:
        metaspace = [step for step in steps if step.get("type") == "Metaspace"]
        return "sentencepiece", "Strip" in kinds or any(
            step.get("prepend_scheme", "always") != "never" for step in metaspace
        )
    raise ModelError(
        f"{path} has the decoder {', '.join(sorted(kinds)) or 'none'}, which is not supported "
        "(supported: byte-level and SentencePiece)."
    )


def _steps(decoder: object) -> list[dict[str, object]]:
    match decoder:
        case {"type": "Sequence", "decoders": list(steps)}:
            return [step for step in steps if isinstance(step, dict)]
        case dict():
            return [decoder]
        case _:
            return []


def _template(directory: Path, settings: Fields) -> str | None:
    if (source := _template_file(directory / _TEMPLATE_FILE)) is not None:
        return source
    if "chat_template" not in settings:
        # Where older processors of images save it.
        return read_optional_json(directory / _TEMPLATE_JSON).optional_text("chat_template")
    if not settings.is_list("chat_template"):
        return settings.optional_text("chat_template")
    return _named_template(settings, "default")


def _tool_use(directory: Path, settings: Fields) -> str | None:
    """The template for conversations with tools, if the model has one of its own."""
    if (source := _template_file(directory / TOOL_TEMPLATE_FILE)) is not None:
        return source
    is_listed = "chat_template" in settings and settings.is_list("chat_template")
    return _named_template(settings, "tool_use") if is_listed else None


def _template_file(path: Path) -> str | None:
    """The text of a template's file; None if there is none, or nothing in it."""
    if not path.is_file():
        return None
    try:
        source = _read(path).decode()
    except UnicodeDecodeError as error:
        raise ModelError(f"{path} is not UTF-8.") from error
    return source if source.strip() else None


def _named_template(settings: Fields, name: str) -> str | None:
    for named in settings.objects("chat_template"):
        if named.text("name") == name:
            return named.text("template")
    return None


def _named_tokens(settings: Fields) -> dict[str, str]:
    """Special tokens by their variable names in chat templates."""
    names = ("bos_token", "eos_token", "unk_token", "pad_token")
    texts = {name: _token_text(settings, name) for name in names}
    return {name: text for name, text in texts.items() if text is not None}


def _token_text(settings: Fields, key: str) -> str | None:
    """A special token's text, given as a string or as an object with `content`."""
    if settings.is_mapping(key):
        nested = settings.mapping(key)
        return None if nested is None else nested.text("content")
    return settings.optional_text(key)


def _adds_bos(encoder: Encoder, settings: Fields, bos_id: int) -> bool:
    """Whether BOS is added: by tokenizer_config if specified, else by the post-processor."""
    if "add_bos_token" in settings:
        return settings.flag("add_bos_token", default=False)
    return encoder.encode("", add_special_tokens=True).ids[:1] == [bos_id]
