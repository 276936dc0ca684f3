"""The files in a Messages request: documents in base64 or uploaded, of which the model reads the text."""

from collections.abc import Iterator, Sequence

from starlette.requests import Request

from app.server.calls.documents import GivenFile, read_files
from app.server.process.context import ServerContext
from app.server.wire.errors import ApiError
from app.server.wire.messages_schemas import (
    ContentBlock,
    DocumentBlock,
    PromptFields,
    ToolResultBlock,
)


async def read_documents(
    request: Request, context: ServerContext, body: PromptFields
) -> dict[str, str]:
    """The texts of the files in a request, by the paths of their sources.

    Raises:
        ApiError: 400 that names the source.
        ClientDisconnected: the client left meanwhile.
    """
    files = [
        file
        for at, message in enumerate(body.messages)
        for file in _files(message.content, f"messages[{at}].content")
    ]
    try:
        texts = await read_files(request, context, files)
    except ApiError as error:
        if error.param is None:
            raise
        raise error.of_field(error.param, f"{error.param}: {error.detail}") from error
    return {file.path: text.text for file, text in zip(files, texts, strict=True)}


def _files(blocks: Sequence[ContentBlock], path: str) -> Iterator[GivenFile]:
    for index, block in enumerate(blocks):
        place = f"{path}[{index}]"
        if isinstance(block, ToolResultBlock) and isinstance(block.content, list):
            yield from _files(block.content, f"{place}.content")
        elif isinstance(block, DocumentBlock):
            source = block.source
            where = f"{place}.source"
            if source.type == "base64" and source.data is not None:
                yield GivenFile(where, block.title or f"document {index + 1}", source.data)
            elif source.type == "file" and source.file_id:
                yield GivenFile(where, "", file_id=source.file_id)
