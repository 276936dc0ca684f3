"""Pre-tokenizers of byte-level vocabularies, by their names in GGUF.

Unknown names are rejected, because a wrong pre-tokenizer degrades answers without an error. The names
are llama.cpp's (`tokenizer.ggml.pre`); the rules are those published with the models.
"""

from dataclasses import dataclass
from typing import Literal

from tokenizers import Regex
from tokenizers.normalizers import NFC, Normalizer
from tokenizers.pre_tokenizers import ByteLevel, Digits, PreTokenizer, Sequence, Split

from engine.api.errors import ModelError

Rule = Literal["gpt-2", "digits", "llama-3", "qwen2", "tekken", "legacy"]

_RULE_BY_NAME: dict[str, Rule] = {
    "gpt-2": "gpt-2",
    "phi-2": "gpt-2",
    "mpt": "gpt-2",
    "olmo": "gpt-2",
    "smollm": "digits",
    "starcoder": "digits",
    "refact": "digits",
    "codeshell": "digits",
    "llama-bpe": "llama-3",
    "llama3": "llama-3",
    "llama-v3": "llama-3",
    "falcon3": "llama-3",
    "qwen2": "qwen2",
    "deepseek-r1-qwen": "qwen2",
    "tekken": "tekken",
    "default": "legacy",
}

_CONTRACTION = "(?i:'s|'t|'re|'ve|'m|'ll|'d)"
_SPACES = r"\s*[\r\n]+|\s+(?!\S)|\s+"
_LLAMA_3 = (
    rf"{_CONTRACTION}|[^\r\n\p{{L}}\p{{N}}]?\p{{L}}+|\p{{N}}{{1,3}}"
    rf"| ?[^\s\p{{L}}\p{{N}}]+[\r\n]*|{_SPACES}"
)
_QWEN2 = _LLAMA_3.replace("{1,3}", "")
_UPPER = r"[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]"
_LOWER = r"[\p{Ll}\p{Lm}\p{Lo}\p{M}]"
_TEKKEN = (
    rf"[^\r\n\p{{L}}\p{{N}}]?{_UPPER}*{_LOWER}+|[^\r\n\p{{L}}\p{{N}}]?{_UPPER}+{_LOWER}*|\p{{N}}"
    rf"| ?[^\s\p{{L}}\p{{N}}]+[\r\n/]*|{_SPACES}"
)


@dataclass(frozen=True, slots=True)
class TextSplitter:
    """A pre-tokenization rule.

    Attributes:
        normalizer: applied to the text first, or None.
        pre_tokenizer: splits text into words and spells them in the byte alphabet.
        ignore_merges: whether a word that is a token is taken without merges (llama-3, tekken).
        adds_bos: whether models with this rule expect BOS if their file does not specify it.
    """

    normalizer: Normalizer | None
    pre_tokenizer: PreTokenizer
    ignore_merges: bool = False
    adds_bos: bool = False


def text_splitter(name: str, *, source: str) -> TextSplitter:
    """The rule of a GGUF pre-tokenizer name.

    Raises:
        ModelError: the name is unknown.
    """
    rule = _RULE_BY_NAME.get(name)
    if rule is None:
        raise ModelError(
            f"{source} requires the pre-tokenizer {name!r}, which is not supported "
            f"(supported: {', '.join(sorted(_RULE_BY_NAME))})."
        )
    match rule:
        case "gpt-2":
            return TextSplitter(None, ByteLevel(add_prefix_space=False))
        case "digits":
            digits = Digits(individual_digits=True)
            return TextSplitter(None, Sequence([digits, ByteLevel(add_prefix_space=False)]))
        case "llama-3":
            return TextSplitter(None, _split(_LLAMA_3), ignore_merges=True, adds_bos=True)
        case "qwen2":
            return TextSplitter(NFC(), _split(_QWEN2))
        case "tekken":
            return TextSplitter(None, _split(_TEKKEN), ignore_merges=True, adds_bos=True)
        case "legacy":
            return TextSplitter(None, _legacy())


def _split(pattern: str) -> PreTokenizer:
    return Sequence([Split(Regex(pattern), "isolated"), _spell_bytes()])


def _spell_bytes() -> PreTokenizer:
    return ByteLevel(add_prefix_space=False, use_regex=False)


def _legacy() -> PreTokenizer:
    """The rule of files without the key: punctuation, GPT-2's words, groups of three digits."""
    return Sequence(
        [
            Split(Regex(r"[\p{P}\$\+<=>\^~\|]+"), "isolated"),
            Split(
                Regex(
                    r"'s|'t|'re|'ve|'m|'ll|'d| ?\p{L}+| ?\p{N}+| ?[^\s\p{L}\p{N}]+|\s+(?!\S)|\s+"
                ),
                "isolated",
            ),
            Split(Regex(r"\p{N}+"), "isolated"),
            Split(Regex(r"[0-9][0-9][0-9]"), "isolated"),
            _spell_bytes(),
        ]
    )
