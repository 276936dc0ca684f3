"""The multipart forms of uploads; `calls.upload_form` reads them."""

from typing import Annotated, Literal, get_args

from pydantic import BaseModel, ConfigDict, Field

from app.server.wire.retrieval_schemas import MAX_LIFETIME_S, MIN_LIFETIME_S

Purpose = Literal["assistants", "user_data", "vision"]
PURPOSES: tuple[str, ...] = get_args(Purpose)


class FileForm(BaseModel):
    """Form of `POST /v1/files`; other fields are ignored and listed."""

    model_config = ConfigDict(use_attribute_docstrings=True)

    file: bytes
    """The file, with its name."""
    purpose: Purpose
    """What it is for; all of them mean the same."""
    anchor: Literal["created_at"] | None = Field(default=None, alias="expires_after[anchor]")
    """When the file expires is counted from its upload."""
    seconds: Annotated[int, Field(ge=MIN_LIFETIME_S, le=MAX_LIFETIME_S)] | None = Field(
        default=None, alias="expires_after[seconds]"
    )
    """Seconds until the file is deleted."""


class PartForm(BaseModel):
    """Form of `POST /v1/uploads/{id}/parts`."""

    model_config = ConfigDict(use_attribute_docstrings=True)

    data: bytes
    """The bytes of the part."""
