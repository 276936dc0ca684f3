"""Log-probabilities in the API's formats: chat objects, legacy arrays, and vLLM's prompt logprobs.

There is one entry for each generated token, the stop token included, so their number is
`completion_tokens`. With `echo` the legacy arrays begin with the prompt's tokens, of which the first
has no logprob.
"""

import codecs
from collections.abc import Sequence
from collections.abc import Set as AbstractSet
from typing import Any

from engine.api.request import PromptLogprobs, TopLogprob
from engine.text.tokenizer import Tokenizer

Tops = Sequence[Sequence[TopLogprob]]


def chat_logprobs(
    tokenizer: Tokenizer,
    token_ids: Sequence[int],
    logprobs: Sequence[float],
    tops: Tops,
    *,
    alternatives: int,
) -> dict[str, Any]:
    """The `logprobs` object of a chat choice, or of one of its chunks."""
    return {
        "content": [
            {
                **_chat_token(tokenizer, token_id, logprob),
                "top_logprobs": [
                    _chat_token(tokenizer, top.token_id, top.logprob)
                    for top in top_row[:alternatives]
                ],
            }
            for token_id, logprob, top_row in zip(
                token_ids, logprobs, tops or [()] * len(token_ids), strict=True
            )
        ],
        "refusal": None,
    }


def _chat_token(tokenizer: Tokenizer, token_id: int, logprob: float) -> dict[str, Any]:
    raw = tokenizer.token_bytes(token_id)
    return {"token": raw.decode(errors="replace"), "logprob": logprob, "bytes": list(raw)}


def vllm_prompt_logprobs(
    tokenizer: Tokenizer, prompt: Sequence[int], scores: PromptLogprobs, *, alternatives: int
) -> list[dict[str, dict[str, Any]] | None]:
    """VLLM's `prompt_logprobs`: an object by token id for each token, its own entry first."""
    entries: list[dict[str, dict[str, Any]] | None] = [None]
    for token_id, logprob, rank, top_row in zip(
        prompt[1:], scores.logprobs, scores.ranks, scores.top, strict=True
    ):
        ranked = [(token_id, logprob, rank)]
        ranked += [
            (top.token_id, top.logprob, top_rank)
            for top_rank, top in enumerate(top_row[:alternatives], start=1)
            if top_rank != rank
        ]
        entries.append(
            {
                str(one): {
                    "logprob": value,
                    "rank": value_rank,
                    "decoded_token": tokenizer.token_bytes(one).decode(errors="replace"),
                }
                for one, value, value_rank in ranked
            }
        )
    return entries


class LegacyLogprobs:
    """The four arrays of a plain completion; one object for each choice, since offsets span chunks.

    `top_logprobs` maps token texts to logprobs: of two tokens with equal text the likelier one is
    kept, unless tokens are named by id.
    """

    def __init__(self, tokenizer: Tokenizer, *, alternatives: int, by_id: bool) -> None:
        """Name tokens `token_id:N` with `by_id`, else by their text."""
        self._tokenizer = tokenizer
        self._alternatives = alternatives
        self._by_id = by_id
        self._decoder = codecs.getincrementaldecoder("utf-8")("replace")
        self._offset = 0

    def arrays(
        self, token_ids: Sequence[int], logprobs: Sequence[float], tops: Tops
    ) -> dict[str, Any]:
        """The arrays of the next tokens of the choice."""
        return {
            "tokens": [self._name(token_id) for token_id in token_ids],
            "token_logprobs": list(logprobs),
            "top_logprobs": [self._top(row) for row in tops] if self._alternatives else None,
            "text_offset": self._offsets(token_ids, frozenset()),
        }

    def continued(self) -> "LegacyLogprobs":
        """A copy for another choice that continues the same echoed prompt."""
        copy = LegacyLogprobs(self._tokenizer, alternatives=self._alternatives, by_id=self._by_id)
        copy._decoder.setstate(self._decoder.getstate())
        copy._offset = self._offset
        return copy

    def prompt_arrays(
        self, prompt: Sequence[int], scores: PromptLogprobs, *, hidden: AbstractSet[int]
    ) -> dict[str, Any]:
        """The arrays of the echoed prompt; call it before `arrays`.

        Args:
            prompt: its tokens.
            scores: their logprobs.
            hidden: tokens that the echoed text omits.
        """
        tops = [None, *(self._top(row) for row in scores.top)]
        return {
            "tokens": [self._name(token_id) for token_id in prompt],
            "token_logprobs": [None, *scores.logprobs],
            "top_logprobs": tops if self._alternatives else None,
            "text_offset": self._offsets(prompt, hidden),
        }

    def _offsets(self, token_ids: Sequence[int], hidden: AbstractSet[int]) -> list[int]:
        offsets = []
        for token_id in token_ids:
            offsets.append(self._offset)
            if token_id not in hidden:
                text = self._decoder.decode(self._tokenizer.token_bytes(token_id))
                self._offset += len(text)
        return offsets

    def _top(self, row: Sequence[TopLogprob]) -> dict[str, float]:
        named: dict[str, float] = {}
        for top in row[: self._alternatives]:
            named.setdefault(self._name(top.token_id), top.logprob)
        return named

    def _name(self, token_id: int) -> str:
        if self._by_id:
            return f"token_id:{token_id}"
        raw = self._tokenizer.token_bytes(token_id)
        try:
            return raw.decode()
        except UnicodeDecodeError:
            return "bytes:" + "".join(f"\\x{byte:02x}" for byte in raw)
