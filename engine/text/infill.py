"""`InfillTokens`: the control tokens by which a model fills the gap between two texts (fill-in-the-middle).

A prompt is `prefix-token, prefix, suffix-token, suffix, middle-token`, or has the suffix first; the answer is
the middle. Names are those of the models' own papers and cards; a GGUF file may name the tokens itself.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

TokenIdOf = Callable[[str], int | None]
"""The id of a token by its text; None if the vocabulary lacks it."""


@dataclass(frozen=True, slots=True)
class InfillTokens:
    """The tokens of one model.

    Attributes:
        prefix: precedes the text before the gap.
        suffix: precedes the text after the gap.
        middle: ends the prompt; None if the model has no such token.
        suffix_first: whether the text after the gap comes first.
        end_ids: tokens that end the middle beside the model's own end tokens.
    """

    prefix: int
    suffix: int
    middle: int | None
    suffix_first: bool
    end_ids: frozenset[int]

    def prompt(self, before: Sequence[int], after: Sequence[int]) -> list[int]:
        """The prompt for the gap between two texts."""
        parts = [[self.prefix, *before], [self.suffix, *after]]
        if self.suffix_first:
            parts.reverse()
        return [*parts[0], *parts[1], *([] if self.middle is None else [self.middle])]


@dataclass(frozen=True, slots=True)
class _Names:
    prefix: str
    suffix: str
    middle: str | None
    suffix_first: bool = False


_FAMILIES = (
    # Qwen2.5-Coder, Qwen3-Coder, CodeGemma, Granite 4, Yi-Coder
    _Names("<|fim_prefix|>", "<|fim_suffix|>", "<|fim_middle|>"),
    # StarCoder, Granite 3, Refact, StableCode
    _Names("<fim_prefix>", "<fim_suffix>", "<fim_middle>"),
    _Names("<fim-prefix>", "<fim-suffix>", "<fim-middle>"),  # SantaCoder
    _Names("<｜fim▁begin｜>", "<｜fim▁hole｜>", "<｜fim▁end｜>"),  # DeepSeek-Coder
    _Names("\u2581<PRE>", "\u2581<SUF>", "\u2581<MID>"),  # CodeLlama
    _Names("<PRE>", "<SUF>", "<MID>"),
    _Names("<|code_prefix|>", "<|code_suffix|>", "<|code_middle|>"),  # GLM-4.5
    _Names("<[fim-prefix]>", "<[fim-suffix]>", "<[fim-middle]>", suffix_first=True),  # Seed-Coder
    _Names("[PREFIX]", "[SUFFIX]", None, suffix_first=True),  # Codestral
)

_ENDS = (
    "<|fim_pad|>", "<fim_pad>", "<fim-pad>", "<[fim-pad]>",
    "<|file_sep|>", "<file_sep>", "<|file_separator|>",
    "<|repo_name|>", "<repo_name>", "<reponame>", "<filename>", "<gh_stars>",
    "\u2581<EOT>", "<EOT>", "<|EOT|>",
)  # fmt: skip
"""Tokens that follow a middle in training: padding, the next file, the end of the text."""

_DECLARED = {
    "prefix": ("fim_pre_token_id", "prefix_token_id"),
    "suffix": ("fim_suf_token_id", "suffix_token_id"),
    "middle": ("fim_mid_token_id", "middle_token_id"),
}
_DECLARED_ENDS = ("fim_pad_token_id", "fim_rep_token_id", "fim_sep_token_id", "eot_token_id")
DECLARED_KEYS = (*(key for keys in _DECLARED.values() for key in keys), *_DECLARED_ENDS)
"""Keys of GGUF metadata, below `tokenizer.ggml.`, that name tokens of infills; the newer name first."""


def find_infill_tokens(
    token_id: TokenIdOf, declared: Mapping[str, int] | None = None
) -> InfillTokens | None:
    """The tokens of a model; None if its vocabulary has none.

    Args:
        token_id: looks a token up.
        declared: ids by `DECLARED_KEYS`, as far as the model's file names them.
    """
    given = declared or {}
    named = {
        role: next((given[key] for key in keys if key in given), None)
        for role, keys in _DECLARED.items()
    }
    for names in _FAMILIES:
        prefix, suffix = token_id(names.prefix), token_id(names.suffix)
        middle = None if names.middle is None else token_id(names.middle)
        if prefix is None or suffix is None or (middle is None) != (names.middle is None):
            continue
        if named["prefix"] not in (None, prefix) or named["suffix"] not in (None, suffix):
            continue  # the file names other tokens
        return _with_ends(prefix, suffix, middle, names.suffix_first, token_id, given)
    prefix, suffix, middle = named["prefix"], named["suffix"], named["middle"]
    if prefix is None or suffix is None or middle is None:
        return None
    return _with_ends(prefix, suffix, middle, False, token_id, given)


def _with_ends(
    prefix: int,
    suffix: int,
    middle: int | None,
    suffix_first: bool,
    token_id: TokenIdOf,
    declared: Mapping[str, int],
) -> InfillTokens:
    found = {
        prefix,
        suffix,
        middle,
        *map(token_id, _ENDS),
        *(declared.get(key) for key in _DECLARED_ENDS),
    }
    ends = frozenset(one for one in found if one is not None)
    return InfillTokens(prefix, suffix, middle, suffix_first, ends)
