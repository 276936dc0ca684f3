"""The conversation of a Messages request as messages of a chat.

What differs between the two forms, and how it is translated:

* `system`, and messages of role `system` before all others, are the first message. The billing header of
  Anthropic's own clients is left out of it: it is no text for the model, and may change with each request.
* Later messages of role `system` stay where they are if the chat template has a place for them there
  (`engine.text.message_forms`). One with `clear_at: next_user_message` is left out once the user has
  spoken again.
* Documents are their text; files among them have been read before (`messages_documents`).
* Results of tools are messages of their own, before the other blocks of the user's message. An image in a
  result follows it in the user's message, because only the user shows images.
* Messages of one role in a row are one. Blocks of the user are paragraphs; those of the assistant, which
  citations divide, are joined as they are.

Everything depends on the message itself and on those before it, so the prompt of a turn begins with that of
the turn before (but for `clear_at`, whose purpose is another).
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from app.server.calls.thinking_signature import omitted_text
from app.server.wire.errors import bad_request
from app.server.wire.messages_schemas import (
    BlockSource,
    CompactionBlock,
    ContentBlock,
    DocumentBlock,
    ImageBlock,
    InputMessage,
    PromptFields,
    RedactedThinkingBlock,
    SearchResultBlock,
    TextBlock,
    ThinkingBlock,
    ToolChangeBlock,
    ToolReferenceBlock,
    ToolResultBlock,
    ToolUseBlock,
)

BILLING_HEADER = "x-anthropic-billing-header:"
_PARAGRAPH = "\n\n"
_IMAGE_HEAD = "data:image/any;base64,"
"""The media type is found by the contents of an image."""


@dataclass(slots=True)
class _Turn:
    """A message of the chat.

    Attributes:
        parts: images, and texts as the pieces that make them.
    """

    role: str
    parts: list[dict[str, Any] | list[str]] = field(default_factory=list)
    calls: list[dict[str, Any]] = field(default_factory=list)
    thoughts: list[str] = field(default_factory=list)
    call_id: str | None = None

    def add_text(self, text: str, *, between: str) -> None:
        """Append a text, after `between` if it follows another one."""
        if not text:
            return
        last = self.parts[-1] if self.parts else None
        if isinstance(last, list):
            last += (between, text)
        else:
            self.parts.append([text])

    def message(self) -> dict[str, Any]:
        """The message in the form of chat completions."""
        content = [
            {"type": "text", "text": "".join(one)} if isinstance(one, list) else one
            for one in self.parts
        ]
        message: dict[str, Any] = {"role": self.role, "content": content}
        if self.thoughts:
            message["reasoning_content"] = _PARAGRAPH.join(self.thoughts)
        if self.calls:
            message["tool_calls"] = self.calls
        if self.call_id is not None:
            message["tool_call_id"] = self.call_id
        return message


class ChatHistory:
    """The messages of a chat that a Messages request means.

    Attributes:
        ignored: paths of the blocks that mean nothing here, with their types.
    """

    def __init__(self, body: PromptFields, documents: Mapping[str, str] | None = None) -> None:
        """Translate the conversation.

        Args:
            body: the request.
            documents: the texts of the files in it, by the paths of their sources.

        Raises:
            ApiError: 400 that names a block whose contents cannot be read here.
        """
        self.ignored: list[str] = []
        self._documents = documents or {}
        self._turns: list[_Turn] = []
        self._image_places: dict[int, str] = {}  # the identity of a part → its path in the request
        if body.system:
            self._add_system(body.system, "system")
        last_of_user = max(
            (at for at, message in enumerate(body.messages) if message.role == "user"), default=-1
        )
        for at, message in enumerate(body.messages):
            path = f"messages[{at}].content"
            if message.role == "user":
                self._add_user(message, path)
            elif message.role == "assistant":
                self._add_assistant(message, path)
            elif message.clear_at != "next_user_message" or at > last_of_user:
                self._add_system(message.content, path)

    @property
    def messages(self) -> list[dict[str, Any]]:
        """The messages in the form of chat completions."""
        return [turn.message() for turn in self._turns]

    @property
    def places(self) -> dict[str, str]:
        """Paths of the images in the chat, and those in the request."""
        return {
            f"messages[{at}].content[{index}]": self._image_places[id(part)]
            for at, turn in enumerate(self._turns)
            for index, part in enumerate(turn.parts)
            if id(part) in self._image_places
        }

    def _turn(self, role: str) -> _Turn:
        """The last turn if it has this role, else a new one."""
        if not self._turns or self._turns[-1].role != role:
            self._turns.append(_Turn(role))
        return self._turns[-1]

    def _add_system(self, blocks: Sequence[ContentBlock], path: str) -> None:
        texts = []
        for index, block in enumerate(blocks):
            if isinstance(block, TextBlock):
                if block.text.startswith(BILLING_HEADER):
                    self._ignore(block, f"{path}[{index}]")
                else:
                    texts.append(block.text)
            elif not isinstance(block, ToolChangeBlock):
                self._ignore(block, f"{path}[{index}]")
        for text in texts:
            self._turn("system").add_text(text, between=_PARAGRAPH)

    def _add_user(self, message: InputMessage, path: str) -> None:
        shown: list[tuple[str, list[tuple[ImageBlock, str]]]] = []
        others: list[tuple[ContentBlock, str]] = []
        for index, block in enumerate(message.content):
            place = f"{path}[{index}]"
            if isinstance(block, ToolResultBlock):
                images = self._add_result(block, f"{place}.content")
                if images:
                    shown.append((block.tool_use_id, images))
            else:
                others.append((block, place))
        if message.content and not shown and not others:
            return  # only results
        turn = self._turn("user")
        for call_id, images in shown:
            turn.add_text(f"Images in the result of the call {call_id}:", between=_PARAGRAPH)
            for image, place in images:
                self._add_image(turn, image, place)
        for block, place in others:
            text = self._text_of(block, place)
            if text is not None:
                turn.add_text(text, between=_PARAGRAPH)
            elif isinstance(block, ImageBlock):
                self._add_image(turn, block, place)
            else:
                self._ignore(block, place)

    def _add_result(self, result: ToolResultBlock, path: str) -> list[tuple[ImageBlock, str]]:
        """Add the result of a call; its images with their paths."""
        content = [] if result.content is None else result.content
        blocks = [] if isinstance(content, str) else content
        texts = [content] if isinstance(content, str) else []
        images: list[tuple[ImageBlock, str]] = []
        for index, block in enumerate(blocks):
            place = f"{path}[{index}]"
            text = self._text_of(block, place)
            if text is not None:
                texts.append(text)
            elif isinstance(block, ToolReferenceBlock):
                texts.append(f"The tool {block.tool_name} is available now.")
            elif isinstance(block, ImageBlock):
                images.append((block, place))
            else:
                self._ignore(block, place)
        text = _PARAGRAPH.join(texts)
        if result.is_error:
            text = f"Error: {text}" if text else "Error"
        turn = _Turn("tool", call_id=result.tool_use_id)
        turn.add_text(text, between="")
        self._turns.append(turn)
        return images

    def _add_assistant(self, message: InputMessage, path: str) -> None:
        turn = self._turn("assistant")
        between = _PARAGRAPH if turn.parts else ""  # of another message
        for index, block in enumerate(message.content):
            match block:
                case TextBlock():
                    turn.add_text(block.text, between=between)
                    between = ""
                case CompactionBlock():
                    turn.add_text(block.content or "", between=between)
                    between = _PARAGRAPH
                case ToolUseBlock():
                    function = {"name": block.name, "arguments": block.input}
                    turn.calls.append({"id": block.id, "type": "function", "function": function})
                case ThinkingBlock():
                    text = block.thinking or omitted_text(block.signature or "")
                    if text:
                        turn.thoughts.append(text)
                case RedactedThinkingBlock():
                    pass  # nobody but its server can read it
                case _:
                    self._ignore(block, f"{path}[{index}]")

    def _add_image(self, turn: _Turn, image: ImageBlock, place: str) -> None:
        part = {"type": "image_url", "image_url": {"url": _image_url(image.source, place)}}
        self._image_places[id(part)] = place
        turn.parts.append(part)

    def _ignore(self, block: ContentBlock, path: str) -> None:
        self.ignored.append(f"{path}:{block.type}")

    def _text_of(self, block: ContentBlock, path: str) -> str | None:
        """The text of a block that the user or a tool has written; None for a block of another kind.

        Raises:
            ApiError: 400, a document cannot be read.
        """
        if isinstance(block, TextBlock):
            return block.text
        if isinstance(block, DocumentBlock | SearchResultBlock) and (
            block.citations is not None and block.citations.enabled
        ):
            self.ignored.append(f"{path}.citations")
        if isinstance(block, SearchResultBlock):
            texts = _PARAGRAPH.join(one.text for one in block.content)
            return f"{block.title}\nSource: {block.source}\n\n{texts}"
        if isinstance(block, DocumentBlock):
            head = [block.title and f"Document: {block.title}", block.context]
            return _PARAGRAPH.join(
                [*filter(None, head), self._document_text(block.source, f"{path}.source")]
            )
        return None

    def _document_text(self, source: BlockSource, path: str) -> str:
        if path in self._documents:
            return self._documents[path]
        if source.type == "text" and source.data is not None:
            return source.data
        if source.type == "content" and isinstance(source.content, str):
            return source.content
        if source.type == "content" and isinstance(source.content, list):
            blocks = enumerate(source.content)
            texts = [self._text_of(block, f"{path}.content[{index}]") for index, block in blocks]
            if None not in texts:
                return _PARAGRAPH.join(filter(None, texts))
        raise bad_request(
            f"`{path}` is not valid: a document is a source of type 'text', 'base64' or 'content', or 'file' "
            "with the `file_id` of an uploaded file; this server fetches no URLs.",
            param=path,
        )


def _image_url(source: BlockSource, path: str) -> str:
    """The URL of an image as chat completions have it."""
    if source.type == "base64" and source.data is not None:
        return _IMAGE_HEAD + source.data
    if source.type == "file" and source.file_id:
        return source.file_id
    if source.type == "url" and source.url:
        return source.url
    raise bad_request(
        f"`{path}.source` is not valid: an image is a source of type 'base64' with `data`, or 'file' "
        "with `file_id`.",
        param=f"{path}.source",
    )
