"""`file_fields`: an uploaded file as OpenAI's `file` object."""

from typing import Any

from app.server.retrieval.records import UploadedFile


def file_fields(file: UploadedFile) -> dict[str, Any]:
    """The members of the object."""
    return {
        "id": file.id,
        "object": "file",
        "bytes": file.size,
        "created_at": file.created_at,
        "expires_at": file.expires_at,
        "filename": file.filename,
        "purpose": file.purpose,
        "status": "processed",
        "status_details": None,
    }
