"""`Answer`: base of the classes of answers; objects that several faces of the API share."""

from typing import Generic, Literal, TypeVar

from pydantic import BaseModel, ConfigDict

Item = TypeVar("Item")


class Answer(BaseModel):
    """An object of an answer. The members without a default are always there; there may be others."""

    model_config = ConfigDict(extra="allow", use_attribute_docstrings=True)


class ListAnswer(Answer, Generic[Item]):
    """All items of a kind."""

    object: Literal["list"]
    data: list[Item]


class PageAnswer(ListAnswer[Item], Generic[Item]):
    """Items of a kind, in pages."""

    first_id: str | None
    last_id: str | None
    has_more: bool


class Deleted(Answer):
    """Says that an object is gone."""

    id: str
    object: str
    deleted: Literal[True]


class StatusAnswer(Answer):
    """One word."""

    status: str
