"""Tokenising text in which some parts must never become control tokens.

A user may write `<|im_end|>`. It must reach the model as those characters, not as the token that
ends a turn. Whole-text tokenisation is exact wherever contents hold no control token, which is
nearly always; otherwise the text is cut so that none of theirs survives.
"""

from collections.abc import Iterable, Sequence

from engine.branching.chat_layout import Content, Piece, Scaffold
from engine.client import EngineClient


class ControlTokens:
    """What the tokenizer of `client` takes for control tokens. Remembers what it asked.

    The client's tokenizer must not change during its life.
    """

    def __init__(self, client: EngineClient) -> None:
        self._client = client
        self._controls: dict[int, bool] = {}

    def is_control(self, token_id: int) -> bool:
        """Whether the token has a written form that plain detokenisation leaves out."""
        known = self._controls.get(token_id)
        if known is None:
            written = self._client.detokenize([token_id], skip_special=False)
            plain = self._client.detokenize([token_id], skip_special=True)
            known = self._controls[token_id] = bool(written) and not plain
        return known

    def occur_in(self, text: str) -> bool:
        """Whether tokenising the text with control tokens recognised would find any."""
        return self._client.tokenize(text, special=True) != self._client.tokenize(text)

    def encode(self, pieces: Sequence[Piece]) -> list[int]:
        """Ids of the pieces' joined text; control tokens are recognised in scaffolds alone.

        Equal to tokenising the joined text as a whole when no content holds a control token.
        """
        if not any(isinstance(p, Content) and self.occur_in(p.text) for p in pieces):
            return self._client.tokenize("".join(p.text for p in pieces), special=True)
        ids: list[int] = []
        run = ""  # text between two control tokens: what the tokenizer would see as one
        for part in self._parts(pieces):
            if isinstance(part, int):
                ids += (*(self._client.tokenize(run) if run else ()), part)
                run = ""
            else:
                run += part
        return ids + (self._client.tokenize(run) if run else [])

    def _parts(self, pieces: Iterable[Piece]) -> Iterable[str | int]:
        for piece in pieces:
            if isinstance(piece, Content):
                yield piece.text
            else:
                yield from self._split(piece)

    def _split(self, scaffold: Scaffold) -> Iterable[str | int]:
        """A scaffold's control token ids and the text between them."""
        text: list[int] = []
        for token_id in self._client.tokenize(scaffold.text, special=True):
            if self.is_control(token_id):
                if text:
                    yield self._client.detokenize(text)
                yield token_id
                text = []
            else:
                text.append(token_id)
        if text:
            yield self._client.detokenize(text)

    def split_in(self, text: str) -> list[str]:
        """The text cut inside each control token it holds, so that no part holds one."""
        if not self.occur_in(text):
            return [text]
        for token_id in self._client.tokenize(text, special=True):
            written = self._client.detokenize([token_id], skip_special=False)
            if len(written) > 1 and self.is_control(token_id) and written in text:
                before, _, after = text.partition(written)
                head = self.split_in(before + written[:1])
                tail = self.split_in(written[1:] + after)
                return head + tail
        return list(text)  # the tokenizer rewrites what it finds: every character apart
