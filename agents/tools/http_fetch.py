"""`http_fetch`: a page of an allowed domain as text. Off until domains are listed.

What it returns is untrusted, and a URL can carry data away, so each call needs an approval in the mode `ask`.
"""

import asyncio
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from pydantic import Field

from agents.api.errors import InvalidTask
from agents.text.plain import plain
from agents.tools.address_guard import AddressGuard
from agents.tools.arguments import Arguments
from agents.tools.bounded_text import bounded
from agents.tools.html_text import html_text
from agents.tools.sensitive import taint_of
from agents.tools.tool import MAX_OUTPUT_CHARS, Effect, Taint, Tool, ToolContext, ToolOutput
from agents.tools.web_address import MAX_URL_CHARS, parse_web_address
from agents.tools.web_domains import check_domain
from engine.retrieval.api.errors import Unreadable

if TYPE_CHECKING:
    from agents.tools.web_client import Page

FETCH_S = 20.0
"""Seconds for a page, redirects included."""
OFF = (
    "http_fetch is off: list the domains it may ask in the setting http_domains, such as "
    'http_domains = ["docs.python.org", "pypi.org"] in your own pravaha.toml, PRAVAHA_HTTP_DOMAINS or '
    "--http-domains."
)
_HEADER_CHARS = 500


class HttpFetchArguments(Arguments):
    """A page, and from which character of its text on."""

    url: str = Field(min_length=8, max_length=MAX_URL_CHARS)
    start: int = Field(default=0, ge=0, le=2_000_000)


def http_fetch_tool(domains: Sequence[str] = (), *, guard: AddressGuard | None = None) -> Tool:
    """The tool for some domains; without any it is unavailable and says how to turn it on.

    Raises:
        ValueError: an entry is no domain (`check_domain`).
    """
    allowed = tuple(check_domain(domain) for domain in domains)
    checked = AddressGuard() if guard is None else guard

    async def call(arguments: Any, context: ToolContext) -> ToolOutput:
        from agents.tools.web_client import fetch_page  # 0.1 s, needed by few starts

        page = await fetch_page(arguments.url, allowed, checked, seconds=FETCH_S)
        return await asyncio.to_thread(_output, page, arguments.start)

    return Tool(
        name="http_fetch",
        description="Get the text of a web page by its URL.",
        arguments=HttpFetchArguments,
        effects=frozenset({Effect.EGRESS}),
        call=call,
        timeout_s=FETCH_S + 20,
        target=lambda arguments: str(parse_web_address(arguments.url, allowed)),
        unavailable="" if allowed else OFF,
        refusal=lambda arguments: _refusal(arguments.url, allowed),
    )


def _refusal(url: str, domains: Sequence[str]) -> str:
    try:
        parse_web_address(url, domains)
    except InvalidTask as error:
        return str(error)
    return ""


def _output(page: "Page", start: int) -> ToolOutput:
    title, text = "", plain(page.text)
    if "html" in page.content_type:
        try:
            reduced = html_text(page.text, page.url)
            title, text = reduced.title, reduced.text
        except Unreadable as error:
            text = f"The page cannot be read. {error}"
    rest = text[start:]
    head = "\n".join(
        filter(None, [f"{page.status} {page.url}"[:_HEADER_CHARS], title[:_HEADER_CHARS]])
    )
    room = MAX_OUTPUT_CHARS - len(head) - 100
    shown = rest[:room]
    more = (
        f"\n[{len(rest) - room:,} more characters: start={start + room}]"
        if len(rest) > room
        else ""
    )
    return ToolOutput(
        bounded(f"{head}\n\n{shown}{more}".rstrip()),
        data={
            "url": page.url,
            "status": page.status,
            "content_type": page.content_type,
            "title": title,
            "content": text,
        },
        failed=page.status >= 400,
        taint=frozenset({Taint.UNTRUSTED}) | (taint_of(text) - {Taint.TRUSTED}),
    )
