"""`WebAddress`: a direct link to a GGUF file on any server."""

from dataclasses import dataclass, replace
from urllib.parse import quote, unquote, urlsplit, urlunsplit

from engine.api.errors import ModelError
from engine.models.gguf_parts import model_stem, part_names
from engine.models.hub_path import path_problem, printable


@dataclass(frozen=True, slots=True)
class WebAddress:
    """A link to a file, or to one part of a split model, which stands for all.

    Attributes:
        url: what is requested; it may have a password, or a signature in its query.
        name: the name of the file.
    """

    url: str
    name: str

    def __str__(self) -> str:
        """The address as it is printed and stored: without password, query and fragment."""
        parts = urlsplit(self.url)
        host = parts.netloc.rpartition("@")[2]
        return urlunsplit((parts.scheme, host, parts.path, "", ""))

    @property
    def parts(self) -> tuple["WebAddress", ...]:
        """The addresses of all files of the model, in order."""
        return tuple(self._with_name(name) for name in part_names(self.name))

    @property
    def default_name(self) -> str:
        """The model's default name in the store."""
        return model_stem(self.name)

    def _with_name(self, name: str) -> "WebAddress":
        if name == self.name:
            return self
        parts = urlsplit(self.url)
        folder = parts.path.rpartition("/")[0]
        return replace(
            self, url=urlunsplit(parts._replace(path=f"{folder}/{quote(name)}")), name=name
        )


def parse_web_address(text: str) -> WebAddress | None:
    """A link to a GGUF file; None for what is no web address.

    Raises:
        ModelError: it is a web address of something else.
    """
    text = text.strip()
    if "://" not in text:
        return None
    try:
        parts = urlsplit(text)
        host, _ = parts.hostname, parts.port  # which raise ValueError for an invalid one
    except ValueError as error:
        raise ModelError(f"{printable(text)} is not a web address: {error}.") from error
    if parts.scheme.lower() not in ("http", "https") or not host:
        raise ModelError(f"{printable(text)} is not an address that begins with https://.")
    name = unquote(parts.path.rpartition("/")[2])
    if not name.lower().endswith(".gguf"):
        raise ModelError(
            f"{printable(str(WebAddress(text, name)))} is no link to a GGUF file: give an address that "
            "ends in .gguf, or a model's Hugging Face id (org/name or org/name:FILE)."
        )
    problem = path_problem(name)
    if problem or "/" in name:
        raise ModelError(f"{printable(name)} cannot be stored: it {problem or 'has a slash'}.")
    return WebAddress(urlunsplit(parts._replace(fragment="")), name)
