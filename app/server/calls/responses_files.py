"""Files in the input of a response (`input_file`): the model reads their text where they stand."""

from collections.abc import Mapping, Sequence
from typing import Any

from starlette.requests import Request

from app.server.calls.documents import GivenFile, read_files
from app.server.calls.responses_kept import KeptInput
from app.server.process.context import ServerContext
from app.server.wire.errors import bad_request
from engine.retrieval.parsing.attached_text import attached_text

_WITH_PARTS = ("content", "output")
"""Members of items that may be lists of parts."""


async def with_files(request: Request, context: ServerContext, kept: KeptInput) -> KeptInput:
    """What the model reads, with the texts of files in place of the files.

    Raises:
        ApiError: 400 that names the file.
        ClientDisconnected: the client left meanwhile.
    """
    history = await _with_texts(request, context, kept.history, None)
    return KeptInput(history, await _with_texts(request, context, kept.new, "input"))


async def _with_texts(
    request: Request, context: ServerContext, items: Sequence[Mapping[str, Any]], where: str | None
) -> Sequence[Mapping[str, Any]]:
    """Items with the texts of their files; `where` is their path in the request, None for kept ones."""
    places = [
        (at, member, index)
        for at, item in enumerate(items)
        for member in _WITH_PARTS
        if isinstance(item.get(member), list)
        for index, part in enumerate(item[member])
        if isinstance(part, dict) and part.get("type") == "input_file"
    ]
    if not places:
        return items
    files = [
        _given_file(
            items[at][member][index],
            "input" if where is None else f"{where}[{at}].{member}[{index}]",
            number,
        )
        for number, (at, member, index) in enumerate(places, start=1)
    ]
    texts = await read_files(request, context, files)
    changed = [dict(item) for item in items]
    for (at, member, index), text in zip(places, texts, strict=True):
        parts = list(changed[at][member])
        before, after = "\n\n" if index else "", "\n\n" if index + 1 < len(parts) else ""
        parts[index] = {"type": "input_text", "text": f"{before}{attached_text(text)}{after}"}
        changed[at][member] = parts
    return changed


def _given_file(part: Mapping[str, Any], path: str, number: int) -> GivenFile:
    data, file_id, name = (part.get(member) for member in ("file_data", "file_id", "filename"))
    if isinstance(data, str) and data:
        shown = name if isinstance(name, str) and name else f"file {number}"
        return GivenFile(f"{path}.file_data", shown, data)
    if isinstance(file_id, str) and file_id:
        return GivenFile(f"{path}.file_id", "", file_id=file_id)
    if part.get("file_url") is not None:
        raise bad_request(
            f"`{path}.file_url` is not supported: this server fetches nothing that a request names. Send the "
            "file as `file_data`, or upload it and send its `file_id`.",
            param=f"{path}.file_url",
            code="unsupported_parameter",
        )
    raise bad_request(f"`{path}` has neither `file_data` nor `file_id`.", param=path)
