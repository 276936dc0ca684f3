"""Whether a request comes from a web page: browsers say so, and a page cannot keep them from it."""

from starlette.datastructures import Headers


def is_from_page(headers: Headers) -> bool:
    """Whether a browser sent the request for a page; programs other than browsers send neither header.

    Every browser adds `Origin` to a POST, and those since 2023 `Sec-Fetch-Site` to each request.
    """
    return "origin" in headers or "sec-fetch-site" in headers
