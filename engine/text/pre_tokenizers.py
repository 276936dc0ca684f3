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

Rule = Literal[
    "gpt-2", "gpt-neox", "digits", "digits-nfc", "cl100k", "llama-3", "glm", "o200k", "qwen2", "qwen35",
    "tekken", "seed", "minicpm", "deepseek", "legacy",
]  # fmt: skip

NAMES_BY_RULE: dict[Rule, str] = {
    "gpt-2": "gpt-2 phi-2 gigachat a.x-4.0 mellum exaone4 jais trillion granite-docling",
    "gpt-neox": "olmo mpt",
    "digits": "smollm starcoder refact codeshell exaone minerva-7b mellum2",
    "digits-nfc": "command-r",
    "cl100k": "dbrx smaug-bpe",  # Granite 4, OLMo 2 and 3, Phi-4; SmolLM3
    "llama-3": "llama-bpe llama3 llama-v3 falcon3 falcon-h1 pixtral midm-2.0 lfm2",
    "glm": "glm4 glm5 chatglm-bpe",
    "o200k": "gpt-4o llama4 kanana2 talkie minimax-m2",  # gpt-oss, Phi-4-mini
    "qwen2": "qwen2 deepseek-r1-qwen stablelm2 megrez kormo",
    "qwen35": "qwen35",
    "tekken": "tekken",  # Mistral Nemo and later, Nemotron 3
    "seed": "seed-coder",
    "minicpm": "minicpm5",
    "deepseek": "deepseek-v3 hunyuan-dense joyai-llm",
    "legacy": "default",
}
_RULE_BY_NAME = {name: rule for rule, names in NAMES_BY_RULE.items() for name in names.split()}

_CONTRACTION = "(?i:'s|'t|'re|'ve|'m|'ll|'d)"
_SPACES = r"\s*[\r\n]+|\s+(?!\S)|\s+"
_CL100K = (
    rf"{_CONTRACTION}|[^\r\n\p{{L}}\p{{N}}]?\p{{L}}+|\p{{N}}{{1,3}}"
    rf"| ?[^\s\p{{L}}\p{{N}}]+[\r\n]*|{_SPACES}"
)
_QWEN2 = _CL100K.replace("{1,3}", "")
_QWEN35 = _QWEN2.replace(r"?\p{L}+", r"?[\p{L}\p{M}]+").replace(r" ?[^\s\p{L}", r" ?[^\s\p{L}\p{M}")
_MINICPM = _CL100K.replace("{1,3}", "+")
_SEED = _QWEN2.replace(r"\p{N}]+[\r\n]*", r"\p{N}\r\n]+")
_UPPER = r"[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]"
_LOWER = r"[\p{Ll}\p{Lm}\p{Lo}\p{M}]"
_START = r"[^\r\n\p{L}\p{N}]?"
_SYMBOLS = r" ?[^\s\p{L}\p{N}]+[\r\n/]*"
_TEKKEN = rf"{_START}{_UPPER}*{_LOWER}+|{_START}{_UPPER}+{_LOWER}*|\p{{N}}|{_SYMBOLS}|{_SPACES}"
_O200K = (
    rf"{_START}{_UPPER}*{_LOWER}+{_CONTRACTION}?|{_START}{_UPPER}+{_LOWER}*{_CONTRACTION}?"
    rf"|\p{{N}}{{1,3}}|{_SYMBOLS}|{_SPACES}"
)
_DEEPSEEK = (
    r"[!\"#$%&'()*+,\-./:;<=>?@\[\\\]^_`{|}~][A-Za-z]+|[^\r\n\p{L}\p{P}\p{S}]?[\p{L}\p{M}]+"
    rf"| ?[\p{{P}}\p{{S}}]+[\r\n]*|{_SPACES}"
)
_KANJI_AND_KANA = "[\u4e00-\u9fa5\u3040-\u309f\u30a0-\u30ff]+"


@dataclass(frozen=True, slots=True)
class TextSplitter:
    """A pre-tokenization rule.

    Attributes:
        normalizer: applied to the text first, or None.
        pre_tokenizer: splits text into words and spells them in the byte alphabet.
        ignore_merges: whether a word that is a token is taken without merges.
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
        case "gpt-neox":
            return TextSplitter(NFC(), ByteLevel(add_prefix_space=False))
        case "digits":
            return TextSplitter(None, _digits())
        case "digits-nfc":
            return TextSplitter(NFC(), _digits())
        case "cl100k":
            return TextSplitter(None, _split(_CL100K))
        case "llama-3":
            return TextSplitter(None, _split(_CL100K), ignore_merges=True, adds_bos=True)
        case "glm":
            return TextSplitter(None, _split(_CL100K), ignore_merges=True)
        case "o200k":
            return TextSplitter(None, _split(_O200K))
        case "qwen2":
            return TextSplitter(NFC(), _split(_QWEN2))
        case "qwen35":
            return TextSplitter(NFC(), _split(_QWEN35))
        case "tekken":
            return TextSplitter(None, _split(_TEKKEN), ignore_merges=True, adds_bos=True)
        case "seed":
            return TextSplitter(None, _split(_SEED))
        case "minicpm":
            return TextSplitter(None, _split(r"\p{N}{1,3}", _MINICPM), ignore_merges=True)
        case "deepseek":
            return TextSplitter(None, _split(r"\p{N}{1,3}", _KANJI_AND_KANA, _DEEPSEEK))
        case "legacy":
            return TextSplitter(None, _legacy())


def _split(*patterns: str) -> PreTokenizer:
    """Cuts at the matches of one pattern after another."""
    return Sequence([*(Split(Regex(one), "isolated") for one in patterns), _spell_bytes()])


def _digits() -> PreTokenizer:
    return Sequence([Digits(individual_digits=True), ByteLevel(add_prefix_space=False)])


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
