"""`PromptBuilder`: the prompt token ids for a path of conversation nodes.

Invariants:

* Stored token ids of answers are used unchanged. Tokenizing their text again could change the token
  boundaries and lose prefix cache hits.
* Therefore the prompt of a continued conversation starts with the previous prompt and the previous
  answer's ids, except for an end token that the template does not write.
* The text between two answers (the end of a turn, the user's message, the template's scaffolding) is a
  *turn*. It is tokenized once, stored with its user node, and reused while the tokenizer and the
  rendering are unchanged.
* Contents never become control tokens; see `engine.text.chat_encoding`.
* Prompts are not truncated.
* The reasoning of an answer is given to the template apart from its text; the template keeps or drops it. A
  conversation with reasoning is tokenized as a whole, because the ids of an answer hold the reasoning, too.
* The images of a message precede its text. A turn is stored with one placeholder per image, which is
  replaced by the image's tokens whenever a prompt is built: their number depends on the image processor.

Cost: two renderings of the template, plus tokenization of the new turns.
"""

import hashlib
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from typing import Any

from engine.api.chat import ChatMessage, content_with_images
from engine.api.errors import InvalidRequest
from engine.api.image import Image, PlacedImage
from engine.clients.engine_client import EngineClient
from engine.conversations.chat_layout import Content, Piece, Scaffold, chat_layout
from engine.conversations.made_calls import STOPPED
from engine.conversations.tree import Node, NodeKind
from engine.text.chat_encoding import ChatEncoder
from engine.text.control_tokens import ControlTokens
from engine.text.message_forms import has_system_role
from engine.text.tool_messages import TemplateTool


@dataclass(frozen=True, slots=True)
class Prompt:
    """A prompt.

    Attributes:
        token_ids: including special tokens.
        tokenized: user nodes whose turn was newly tokenized; save them with `StoredNodes.set_token_ids`.
        images: the images with their places.
    """

    token_ids: tuple[int, ...]
    tokenized: tuple[Node, ...]
    images: tuple[PlacedImage, ...] = ()


@dataclass(slots=True)
class _Turn:
    """The pieces between two stored answers, their images, and the ids of the following answer."""

    pieces: list[Piece] = field(default_factory=list)
    user_node: Node | None = None
    answer: tuple[int, ...] = ()
    images: list[Image] = field(default_factory=list)


class PromptBuilder:
    """Builds prompts for the model of `client`. Use one per client.

    Args:
        client: the engine.
        contexts: the nodes of a prompt with what stands before their messages in it; None takes that of each
            message as it is stored.
    """

    def __init__(
        self,
        client: EngineClient,
        contexts: Callable[[Sequence[Node]], Sequence[Node]] | None = None,
    ) -> None:
        self._client = client
        self._contexts = contexts
        self._fingerprint: str | None = None
        self._takes_system_prompt: bool | None = None
        self._asked_fingerprint: str | None = None
        self._encoder = ChatEncoder(client.tokenize, client.render_chat, ControlTokens({}))

    def build(
        self,
        path: Sequence[Node],
        *,
        tools: Sequence[TemplateTool] = (),
        variables: Mapping[str, Any] | None = None,
    ) -> Prompt:
        """The prompt for the answer after `path`, root first, by a model that may call tools.

        `variables` are those of the chat template.

        Raises:
            InvalidRequest: the template rejects the messages, or the model their images.
            EngineUnavailable: the model is not loaded.
        """
        self._check_sight(path)
        fingerprint = self._client.tokenizer_fingerprint()
        if fingerprint != self._fingerprint:  # the first model, or another one
            self._encoder = replace(self._encoder, controls=self._client.control_tokens())
            self._fingerprint = fingerprint
        # Templates that require alternating roles need the empty answers too; some take no result of a tool
        # without a call in their own form, and read it as a message of the user.
        plain = _turns(path, keep_empty=False)
        variants = [plain, _turns(path, keep_empty=True), _with_results_of_user(plain)]
        for later, nodes in enumerate(variants, start=1):
            try:
                return self._build(nodes, tools, variables or {})
            except InvalidRequest:
                if all(variant == nodes for variant in variants[later:]):
                    raise
        raise AssertionError("the last variant is returned or raises")

    def takes_system_prompt(self) -> bool:
        """Whether the chat template has a system message; the first ones of Mistral do not.

        Raises:
            EngineUnavailable: the model is not loaded.
        """
        fingerprint = self._client.tokenizer_fingerprint()
        if self._takes_system_prompt is None or fingerprint != self._asked_fingerprint:
            self._takes_system_prompt = has_system_role(self._client.render_chat)
            self._asked_fingerprint = fingerprint
        return self._takes_system_prompt

    def _build(
        self, nodes: Sequence[Node], tools: Sequence[TemplateTool], variables: Mapping[str, Any]
    ) -> Prompt:
        given: dict[str, Any] = {"tools": tools} if tools else {}
        if variables:
            given["variables"] = variables
        render = partial(self._client.render_chat, **given) if given else self._client.render_chat
        encoder = replace(self._encoder, render=render)
        if self._contexts is not None:
            nodes = self._contexts(nodes)
        messages = [_message(node) for node in nodes]
        # The layout of contents does not tell whether a template keeps or drops earlier reasoning.
        reasoned = any(node.reasoning for node in nodes)
        layout = None if reasoned else chat_layout(messages, render)
        if layout is None:
            images = [image for node in nodes for image in node.images]
            whole, places = self._place(encoder.encode_chat(messages), images)
            return Prompt(tuple(whole), (), tuple(places))
        ids: list[int] = []
        tokenized: list[Node] = []
        placed: list[PlacedImage] = []
        for turn in self._cut_at_answers(layout, nodes):
            turn_ids, updated = self._turn_ids(turn)
            if updated is not None:
                tokenized.append(updated)
            if ids:
                turn_ids = self._without_repeated_end(ids, turn_ids)
            turn_ids, places = self._place(turn_ids, turn.images)
            placed += [replace(one, start=one.start + len(ids)) for one in places]
            ids += turn_ids
            ids += turn.answer
        return Prompt(tuple(ids), tuple(tokenized), tuple(placed))

    def _place(
        self, ids: list[int], images: Sequence[Image]
    ) -> tuple[list[int], Sequence[PlacedImage]]:
        """Ids with the tokens of their images. An answer may have sampled a placeholder: it is none."""
        if not images:
            return ids, ()
        expanded, placed = self._client.place_images(ids, images)
        return list(expanded), placed

    def _check_sight(self, path: Sequence[Node]) -> None:
        """Raise if the prompt would have images and the model sees none."""
        model = self._client.snapshot().model
        if model is None or model.sees_images:
            return
        if any(node.images for node in in_context(path)):
            raise InvalidRequest(
                f"The conversation has images, and {model.name} sees none: load a model that does, or "
                "go on from before the first image."
            )

    def _cut_at_answers(self, layout: Sequence[Piece], nodes: Sequence[Node]) -> list[_Turn]:
        """The layout split at every answer with stored ids of this tokenizer."""
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
                turns[-1].user_node = node
                turns[-1].images += node.images
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
        """Ids of a turn, and the updated user node if they are new."""
        user_node = turn.user_node
        if user_node is None:
            return self._encode(turn.pieces), None
        digest = _digest(turn.pieces)
        if (
            user_node.tokenizer == self._fingerprint
            and user_node.template == digest
            and user_node.token_ids
        ):
            return list(user_node.token_ids), None
        ids = self._encode(turn.pieces)
        updated = replace(
            user_node, token_ids=tuple(ids), tokenizer=self._fingerprint, template=digest
        )
        return ids, updated

    def _without_repeated_end(self, ids: list[int], turn_ids: list[int]) -> list[int]:
        """The next turn without the end token that the preceding answer already contains.

        Args:
            ids: the prompt up to the answer's last id. Modified: an end token that the template does
                not write is removed.
            turn_ids: the next turn, which starts with the template's end of an answer.
        """
        end = ids[-1]
        controls = self._encoder.controls.ids
        if end not in controls:
            return turn_ids  # aborted or at a stop string: the template ends the turn
        for index, token_id in enumerate(turn_ids):
            if token_id == end:
                # Whitespace before it (Llama 2 writes ` </s>`) is dropped.
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


def _message(node: Node) -> ChatMessage:
    message: ChatMessage = {
        "role": node.kind.value,
        "content": content_with_images(node.prompt_text, len(node.images)),
    }
    if node.kind is NodeKind.TOOL:
        message["tool_call_id"] = node.id
    if node.reasoning:
        message["reasoning_content"] = node.reasoning
    return message


def _with_results_of_user(nodes: Sequence[Node]) -> list[Node]:
    """The nodes with the results of tools as messages of the user."""
    return [
        replace(node, kind=NodeKind.USER) if node.kind is NodeKind.TOOL else node for node in nodes
    ]


def _turns(path: Sequence[Node], *, keep_empty: bool) -> list[Node]:
    """The nodes to render: the last system prompt, then user messages and answers in the context.

    A user message after a summary is preceded by it, because templates may demand alternating roles.
    Empty answers (stopped or failed before the first token) make models more likely to answer nothing;
    they are omitted unless `keep_empty`.
    """
    systems = [node for node in path if node.kind is NodeKind.SYSTEM]
    turns: list[Node] = []
    summaries: list[str] = []
    for node in in_context(path):
        if node.kind is NodeKind.SUMMARY and (summary := node.prompt_text.strip()):
            summaries.append(f"(Summary of an earlier conversation: {summary})")
        elif node.kind is NodeKind.USER:
            if summaries:
                node = replace(node, text="\n\n".join([*summaries, node.text]))
                summaries = []
            turns.append(node)
        elif node.kind is NodeKind.ASSISTANT and (keep_empty or node.prompt_text):
            turns.append(node)
        elif node.kind is NodeKind.TOOL:
            turns.append(node if node.text else replace(node, text=STOPPED))
    return [node for node in systems[-1:] if node.text] + turns


def in_context(path: Sequence[Node]) -> Sequence[Node]:
    """The nodes of a path without those that a note or a summary took out of the context.

    A summary without a text, which failed or was stopped, takes nothing out.
    """
    ids = [node.id for node in path]
    for index in range(len(path) - 1, -1, -1):
        limit = path[index]
        if (
            limit.kind is NodeKind.NOTE
            or (limit.kind is NodeKind.SUMMARY and limit.prompt_text.strip())
        ) and limit.forked_from in ids[: index + 1]:
            first_kept = ids.index(limit.forked_from)
            return [limit, *path[first_kept:index], *path[index + 1 :]]
    return path


def _digest(turn: Sequence[Piece]) -> str:
    """Hash of a turn's text and of which parts of it are contents.

    Trailing whitespace is ignored: before an existing answer some templates (Llama 2) write a space that
    they do not write in the generation prompt.
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
