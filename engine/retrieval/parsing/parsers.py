"""The parsers that run in a process of their own, by the format of `detect_type`."""

import zlib
from collections.abc import Callable
from zipfile import BadZipFile

from engine.retrieval.api.errors import Unreadable
from engine.retrieval.parsing.extracted import Extracted
from engine.retrieval.parsing.text_builder import TextTooLong

_NAMES = {
    "archive": "office document or book",
    "html": "HTML",
    "page": "web page",
    "mail": "e-mail",
    "mailbox": "mailbox",
    "notebook": "notebook",
    "pdf": "PDF",
    "zip": "ZIP archive, office document or book",
    "xls": "Excel workbook",
    "gzip": "gzip file",
    "image": "image",
    "code": "source code",
}


def extract(kind: str, data: bytes, most: int) -> Extracted:
    """The text of a file, or for `code/LANGUAGE` its outline, with an empty text.

    Args:
        kind: a format of `detect_type`, except those that are text, or `page`: see `extract_web_page`.
        data: the file; of source code its text in UTF-8.
        most: characters of text.

    Raises:
        Unreadable: there is none, with the reason. Nothing else is raised, whatever the bytes.
        MemoryError: the process needs more memory than it may use.
    """
    try:
        return _clean(_parser(kind)(data, most))
    except (Unreadable, MemoryError):
        raise
    except TextTooLong as error:
        raise Unreadable(f"It has more than {most:,} characters of text.") from error
    except RecursionError as error:
        raise Unreadable("It is nested too deep.") from error
    except (BadZipFile, zlib.error, EOFError) as error:
        raise Unreadable("It is damaged: a compressed part cannot be unpacked.") from error
    except Exception as error:
        name = _NAMES.get(kind.partition("/")[0], kind)
        detail = " ".join(str(error).split())[:200].rstrip(".") or type(error).__name__
        raise Unreadable(f"It is no valid {name}: {detail}.") from error


def _parser(kind: str) -> Callable[[bytes, int], Extracted]:
    # Imported on demand: most processes see few formats, and pypdf alone takes a quarter of a second.
    match kind:
        case "html":
            return _html
        case "page":
            from engine.retrieval.parsing.web_page import extract_web_page

            return extract_web_page
        case "mail":
            from engine.retrieval.parsing.mail import extract_mail

            return extract_mail
        case "mailbox":
            from engine.retrieval.parsing.mailbox import extract_mailbox

            return extract_mailbox
        case "notebook":
            from engine.retrieval.parsing.notebook import extract_notebook

            return extract_notebook
        case "pdf":
            from engine.retrieval.parsing.pdf import extract_pdf

            return extract_pdf
        case "zip":
            from engine.retrieval.parsing.archive import extract_archive

            return extract_archive
        case "xls":
            from engine.retrieval.parsing.xls import extract_xls

            return extract_xls
        case "gzip":
            from engine.retrieval.parsing.gzip_text import extract_gzip

            return extract_gzip
        case "image":
            from engine.retrieval.parsing.ocr import extract_image

            return extract_image
    code, _, language = kind.partition("/")
    if code != "code":
        raise KeyError(kind)
    return lambda data, most: _code(data, language)


def _html(data: bytes, most: int) -> Extracted:
    from engine.retrieval.parsing.html_text import extract_html
    from engine.retrieval.parsing.text_encoding import decode_html

    return extract_html(decode_html(data), most)


def _code(data: bytes, language: str) -> Extracted:
    from engine.retrieval.parsing.code_outline import code_outline

    outline = code_outline(data.decode(), language)
    return Extracted("", outline.headings, outline.breaks)


def _clean(found: Extracted) -> Extracted:
    """The same without what UTF-8 or SQLite cannot hold; no character is removed, so that offsets stay."""
    headers = tuple(
        one._replace(text=one.text and _clean_text(one.text)) for one in found.row_headers
    )
    return found._replace(text=_clean_text(found.text), row_headers=headers)


def _clean_text(text: str) -> str:
    return text.replace("\0", " ").encode("utf-8", "replace").decode()
