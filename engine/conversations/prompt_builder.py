"""From a path of nodes to the token ids that continue it.

Invariants:

* Stored ids of answers are fed as they are. Re-tokenising text would move token boundaries and
  prefix hits would silently vanish.
* So a continued conversation's prompt starts with the previous prompt, then the previous answer's
  ids. The exception: an end token that the template does not write there is left out.
* What lies between two answers (the end of a turn, the user's words, the template's scaffolding) is
  one *turn*: tokenised once, kept with its user node, and used again while tokenizer and rendering
  stay the same.
* Contents never become control tokens; see `engine.text.chat_encoding`.
* Nothing is ever truncated.

Cost: two renderings of the template, plus tokenising what is new.
"""

import hashlib
from collections.abc import Sequence
from dataclasses import dataclass, field, replace

from engine.api.chat import ChatMessage
from engine.api.errors import InvalidRequest
from engine.clients.engine_client import EngineClient
from engine.conversations.chat_layout import Content, Piece, Scaffold, chat_layout
from engine.conversations.tree import Node, NodeKind
from engine.text.chat_encoding import ChatEncoder
from engine.text.control_tokens import ControlTokens


@dataclass(frozen=True, slots=True)
class Prompt:
    """Token ids to submit.

    Attributes:
        token_ids: special tokens in place.
        tokenized: user nodes whose turn was tokenised now; save them with `Store.set_token_ids`.
    """

    token_ids: tuple[int, ...]
    tokenized: tuple[Node, ...]


@dataclass(slots=True)
class _Turn:
    """What lies between two stored answers, and the ids of the answer that follows."""

    pieces: list[Piece] = field(default_factory=list)
    asker: Node | None = None
    answer: tuple[int, ...] = ()


class PromptBuilder:
    """Builds prompts for the model behind `client`. Keep one for each client."""

    def __init__(self, client: EngineClient) -> None:
        self._client = client
        self._fingerprint: str | None = None
        self._encoder = ChatEncoder(client.tokenize, client.render_chat, ControlTokens({}))

    def build(self, path: Sequence[Node]) -> Prompt:
        """The prompt that asks for the answer after `path`, root first.

        Raises:
            InvalidRequest: the template refuses the messages.
            EngineUnavailable: there is no tokenizer yet.
        """
        fingerprint = self._client.tokenizer_fingerprint()
        if fingerprint != self._fingerprint:  # the first model, or another one
            self._encoder = replace(self._encoder, controls=self._client.control_tokens())
            self._fingerprint = fingerprint
        try:
            return self._build(_turns(path, keep_empty=False))
        except InvalidRequest:
            # Templates that insist on user and assistant alternating need the empty answers too.
            nodes = _turns(path, keep_empty=True)
            if nodes == _turns(path, keep_empty=False):
                raise
            return self._build(nodes)

    def takes_system_prompt(self) -> bool:
        """Whether the model's template accepts a system message (Mistral's first ones refuse it).

        Raises:
            EngineUnavailable: there is no tokenizer yet.
        """
        try:
            self._client.render_chat(
                [{"role": "system", "content": "x"}, {"role": "user", "content": "x"}]
            )
        except InvalidRequest:
            return False
        return True

    def _build(self, nodes: list[Node]) -> Prompt:
        messages: list[ChatMessage] = [
            {"role": node.kind.value, "content": node.text} for node in nodes
        ]
        layout = chat_layout(messages, self._client.render_chat)
        if layout is None:
            return Prompt(tuple(self._encoder.encode_chat(messages)), ())
        ids: list[int] = []
        tokenized: list[Node] = []
        for turn in self._cut_at_answers(layout, nodes):
            turn_ids, fresh = self._turn_ids(turn)
            if fresh is not None:
                tokenized.append(fresh)
            if ids:
                turn_ids = self._close_answer(ids, turn_ids)
            ids += turn_ids
            ids += turn.answer
        return Prompt(tuple(ids), tuple(tokenized))

    def _cut_at_answers(self, layout: Sequence[Piece], nodes: Sequence[Node]) -> list[_Turn]:
        """The layout cut at every answer whose stored ids this tokenizer made."""
        turns = [_Turn()]
        for piece in layout:
            node = nodes[piece.index] if isinstance(piece, Content) else None
            stored = self._stored_ids(node)
            if stored:
                turns[-1].answer = stored
                turns.append(_Turn())
                continue
            turns[-1].pieces.append(piece)
            if node is not None and node.kind is NodeKind.USER:
                turns[-1].asker = node
        return turns

    def _stored_ids(self, node: Node | None) -> tuple[int, ...]:
        if (
            node is None
            or node.kind is not NodeKind.ASSISTANT
            or node.tokenizer != self._fingerprint
        ):
            return ()
        return node.token_ids or ()

    def _turn_ids(self, turn: _Turn) -> tuple[list[int], Node | None]:
        """Ids of a turn, and its user node with them if they are new."""
        asker = turn.asker
        if asker is None:
            return self._encode(turn.pieces), None
        digest = _digest(turn.pieces)
        if asker.tokenizer == self._fingerprint and asker.template == digest and asker.token_ids:
            return list(asker.token_ids), None
        ids = self._encode(turn.pieces)
        fresh = replace(asker, token_ids=tuple(ids), tokenizer=self._fingerprint, template=digest)
        return ids, fresh

    def _close_answer(self, ids: list[int], turn_ids: list[int]) -> list[int]:
        """What follows an answer, so that its end token stands once, as the template writes it.

        Args:
            ids: everything up to the answer's last id. Loses an end token that the template does
                not write.
            turn_ids: the next turn, beginning with how the template ends an answer.
        """
        end = ids[-1]
        controls = self._encoder.controls.ids
        if end not in controls:
            return turn_ids  # stopped early, or at a stop string: the template closes the turn
        for index, token_id in enumerate(turn_ids):
            if token_id == end:
                # White space before it (Llama 2 writes ` </s>`) is not worth another token.
                if self._client.detokenize(turn_ids[:index]).strip():
                    break
                return turn_ids[index + 1 :]
            if token_id in controls:
                break
        ids.pop()
        return turn_ids

    def _encode(self, pieces: Sequence[Piece]) -> list[int]:
        def render(contents: Sequence[str]) -> str:
            texts = iter(contents)
            return "".join(p.text if isinstance(p, Scaffold) else next(texts) for p in pieces)

        return self._encoder.encode_contents(
            [piece.text for piece in pieces if isinstance(piece, Content)], render
        )


def _turns(path: Sequence[Node], *, keep_empty: bool) -> list[Node]:
    """The nodes that the template sees: the last system prompt first, then questions and answers.

    Answers without a word (stopped or failed before the first token) teach a model to say nothing:
    they are left out unless `keep_empty`.
    """
    systems = [node for node in path if node.kind is NodeKind.SYSTEM]
    turns = [
        node
        for node in path
        if node.kind is NodeKind.USER
        or (node.kind is NodeKind.ASSISTANT and (keep_empty or node.text))
    ]
    return [node for node in systems[-1:] if node.text] + turns


def _digest(turn: Sequence[Piece]) -> str:
    """Identifies a turn's text and which parts of it are content.

    White space at its end does not count: before an answer that exists some templates write a space
    (Llama 2) that they did not write when they asked for it.
    """
    hasher = hashlib.blake2b(digest_size=16)
    for piece in turn:
        is_last = piece is turn[-1]
        text = piece.text.rstrip() if is_last and isinstance(piece, Scaffold) else piece.text
        encoded = text.encode("utf-8", "surrogatepass")
        hasher.update(b"s" if isinstance(piece, Scaffold) else b"c")
        hasher.update(len(encoded).to_bytes(8, "little"))
        hasher.update(encoded)
    return hasher.hexdigest()
