"""`check_domain`: entries of the setting `http_domains`."""

import re

_DOMAIN = re.compile(
    r"(\*\.)?(?!-)[a-z0-9-]{1,63}(\.(?!-)[a-z0-9-]{1,63})*(:[1-9][0-9]{0,4})?|\[[0-9a-f:.]+\](:[1-9][0-9]{0,4})?"
)


def check_domain(domain: str) -> str:
    """An entry of the list of domains, in its canonical form.

    `docs.python.org` allows that host, `*.python.org` all hosts below it, `docs.python.org:8443` another
    port.

    Raises:
        ValueError: it is no such entry.
    """
    entry = domain.strip().lower().rstrip(".")
    if not _DOMAIN.fullmatch(entry):
        raise ValueError(
            f"{domain!r:.80} is not a domain such as docs.python.org, *.python.org or example.org:8443"
        )
    return entry
