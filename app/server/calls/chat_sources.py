"""`ChatSources`: the passages that a chat's answer is to cite, by the field `retrieval`.

The passages stand before the last question, numbered and marked as quoted data. The grammar of the answer
allows only numbers that exist; a citation that its passage does not support is replaced in the text, also
while it is streamed (`engine.retrieval.answering.verification`).
"""

import asyncio
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

from starlette.requests import Request

from app.server.calls.model import LoadedModel, off_loop
from app.server.calls.prompts import chat_size, template_messages
from app.server.calls.retrieval import retrieval_service
from app.server.calls.searching import search
from app.server.process.context import ServerContext
from app.server.retrieval.service import RetrievalService
from app.server.retrieval.store_search import Found
from app.server.wire.errors import bad_request
from app.server.wire.schemas import ChatCompletionRequest, Message, TextPart
from engine.api.grammar import Grammar
from engine.retrieval.answering.citation_grammar import citation_grammar
from engine.retrieval.answering.claims import claims_of
from engine.retrieval.answering.prompt import INSTRUCTION, passage_block
from engine.retrieval.answering.source import Source
from engine.retrieval.answering.support import SupportJudge
from engine.retrieval.answering.verification import Quote, VerifyingStream

DEFAULT_PASSAGES = 6
ANSWER_TOKENS = 256
"""Room that is kept for an answer without a limit of its own."""
NOTHING_FOUND = "(No passage was found.)"


class ChatSources:
    """The numbered passages of one call."""

    def __init__(self, query: str, found: Sequence[Found], service: RetrievalService) -> None:
        """Nothing is computed yet.

        Args:
            query: what was searched for.
            found: the passages in the order of their numbers, which begin at 1.
            service: embeds claims and passages.
        """
        self._query = query
        self.found = tuple(found)
        self.sources = [_source(n, one) for n, one in enumerate(self.found, start=1)]
        self._judge = SupportJudge(self.sources, service.embed)

    @property
    def grammar(self) -> Grammar:
        """Answers that cite existing numbers only."""
        return citation_grammar(len(self.found))

    def fields(self) -> dict[str, Any]:
        """The member `retrieval` of the response: what was searched for and what the model reads."""
        passages = [
            {**_place(n, one), "score": one.similarity, "text": one.passage.text}
            for n, one in enumerate(self.found, start=1)
        ]
        return {"retrieval": {"query": self._query, "passages": passages}}

    def choice(self, *, keeps_text: bool) -> "CitedChoice":
        """One choice of the answer; use one at a time of the same sources.

        Args:
            keeps_text: whether the text stays as it was generated, and citations are only reported.
        """
        return CitedChoice(self, VerifyingStream(self._judge), keeps_text=keeps_text)


class CitedChoice:
    """One choice of an answer, whose citations are checked while it arrives."""

    def __init__(self, sources: ChatSources, stream: VerifyingStream, *, keeps_text: bool) -> None:
        self._sources, self._stream, self._keeps_text = sources, stream, keeps_text
        self._shown: list[str] = []

    async def feed(self, piece: str) -> str:
        """The text to send after this piece; sentences are checked off the event loop."""
        checked = await asyncio.to_thread(self._stream.feed, piece) if piece else ""
        return self._send(piece if self._keeps_text else checked)

    async def finish(self) -> str:
        """The text to send at the end."""
        checked = await asyncio.to_thread(self._stream.finish)
        return self._send("" if self._keeps_text else checked)

    def annotations(self) -> list[dict[str, Any]]:
        """Every supported citation in the text that was sent, after `finish`."""
        quotes = {one.n: one.quotes for one in self._stream.answer().citations}
        return [
            {
                "type": "file_citation",
                "file_citation": {
                    "start_index": marker.start,
                    "end_index": marker.end,
                    **_place(marker.n, self._sources.found[marker.n - 1]),
                    "quotes": [
                        {"text": one.text, "start": one.start, "end": one.end} for one in said
                    ],
                },
            }
            for claim in claims_of("".join(self._shown))
            for marker in claim.markers
            if (said := self._quotes_of(claim.text, quotes.get(marker.n, ())))
        ]

    def fields(self) -> dict[str, Any]:
        """The member `retrieval` of the choice: whether it is supported, and what it cited in vain."""
        answer = self._stream.answer()
        dropped = [
            {"n": one.n, "sentence": one.sentence, "exists": one.exists} for one in answer.dropped
        ]
        return {"retrieval": {"supported": answer.is_supported, "dropped_citations": dropped}}

    def _send(self, text: str) -> str:
        self._shown.append(text)
        return text

    def _quotes_of(self, sentence: str, quotes: Sequence[Quote]) -> Sequence[Quote]:
        """The quotes that support a sentence."""
        own = [one for one in quotes if one.sentence == sentence]
        # In a text that was checked every number that is left is supported.
        return own or (() if self._keeps_text else quotes)


async def find_sources(
    request: Request, context: ServerContext, body: ChatCompletionRequest, model: LoadedModel
) -> ChatSources | None:
    """Search for the passages that a chat asks for, as many as its context has room for.

    Returns:
        None for a chat without the field `retrieval`.

    Raises:
        ApiError: 400 for a chat that does not end with a question, or has no room for a passage; else as
            `search`.
        RetrievalError: as `search`.
    """
    wanted = body.retrieval
    if wanted is None:
        return None
    service = retrieval_service(context)
    question = body.messages[-1]
    if question.role != "user" or not question.text.strip():
        raise bad_request(
            "With `retrieval` the last message must be a text of the user.", param="messages"
        )
    query = wanted.query or await asyncio.to_thread(service.shortened, question.text)
    found = await search(
        request,
        context,
        wanted.vector_store_ids,
        [query],
        wanted,
        default_results=DEFAULT_PASSAGES,
    )
    fitting = await _fitting(body, model, found)
    if found and not fitting:
        raise bad_request(
            "The context has no room for a passage beside the messages.",
            param="messages",
            code="context_length_exceeded",
        )
    return ChatSources(query, fitting, service)


def with_sources(messages: Sequence[Message], sources: Sequence[Source]) -> list[Message]:
    """A conversation with the instruction to cite, and the passages before the last question."""
    block = passage_block(sources) if sources else NOTHING_FOUND
    *earlier, question = messages
    asked = _with_text(question, f"{block}\n\nQuestion: {question.text.strip()}")
    first = earlier[0] if earlier else None
    if first is not None and first.role in ("system", "developer"):
        instructed = _with_text(first, f"{first.text}\n\n{INSTRUCTION}")
        return [instructed, *earlier[1:], asked]
    instruction = Message(role="system", content=[TextPart(type="text", text=INSTRUCTION)])
    return [instruction, *earlier, asked]


async def _fitting(
    body: ChatCompletionRequest, model: LoadedModel, found: Sequence[Found]
) -> list[Found]:
    """The best passages, as many as there is room for."""
    messages = with_sources(body.messages, ())
    limit = body.max_completion_tokens or body.max_tokens or ANSWER_TOKENS
    answer = min(limit, model.info.context_length // 4)
    size = chat_size(messages) + sum(len(one.passage.text) for one in found)

    def choose() -> list[Found]:
        tokenizer = model.tokenizer
        chat = tokenizer.encode_chat(template_messages(messages), add_generation_prompt=True)
        room = model.info.context_length - answer - len(chat)
        fitting = []
        for n, one in enumerate(found, start=1):
            # Joined texts have at most as many tokens as their parts, but for the line end between.
            room -= len(tokenizer.encode(passage_block([_source(n, one)]) + "\n"))
            if room < 0:
                break
            fitting.append(one)
        return fitting

    return await off_loop(size, choose)


def _source(n: int, found: Found) -> Source:
    """A passage under the name that its file has for clients."""
    return Source.of(n, replace(found.passage, file=found.file.filename))


def _with_text(message: Message, text: str) -> Message:
    return message.model_copy(update={"content": [TextPart(type="text", text=text)]})


def _place(n: int, found: Found) -> dict[str, Any]:
    """Where a passage is from."""
    passage = found.passage
    return {
        "n": n,
        "file_id": found.file.id,
        "filename": found.file.filename,
        "vector_store_id": found.store_id,
        "chunk_id": passage.chunk_id,
        "start": passage.start,
        "end": passage.end,
        "spans_of": passage.spans_of,
        "page": passage.page,
        "line": passage.line,
        "heading_path": list(passage.heading_path),
    }
