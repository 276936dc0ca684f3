"""Reading config/service.yaml."""

from dataclasses import dataclass

import yaml


@dataclass(frozen=True)
class Settings:
    """Values of the service file.

    Attributes:
        page_size: entries a page.
        session_minutes: minutes until a session ends.
    """

    page_size: int
    session_minutes: int


def load(path: str) -> Settings:
    with open(path, encoding="utf-8") as file:
        values = yaml.safe_load(file)
    return Settings(
        page_size=values["page_size"],
        session_minutes=values["session_timeout_minutes"],
    )


def statement_title(owner: str, month: int, year: int) -> str:
    """Build the title of a statement.

    Args:
        owner: name of the owner.
        period: month and year as text.

    Returns:
        The title.
    """
    return f"{owner}, {month:02d}/{year}"


def page_bounds(page: int, size: int) -> tuple[int, int]:
    """Return the half-open range of a page.

    Args:
        page: number of the page, from 0.
        size: entries a page.
    """
    return page * size, (page + 1) * size


TITLE = statement_title("Owner", 1)
