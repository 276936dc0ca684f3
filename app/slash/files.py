"""Files that slash commands read and write; every failure is an error with one sentence."""

from pathlib import Path

from app.slash.mentions import near_files
from app.slash.names import did_you_mean
from engine.api.errors import InvalidRequest
from engine.conversations.export import export_json, export_markdown, export_messages
from engine.conversations.importing import MAX_CHARACTERS
from engine.conversations.session import TreeSession


def export_to_file(session: TreeSession, name: str) -> Path:
    """Write the open conversation to a new file, in the format that its name ends in; the path.

    Raises:
        InvalidRequest: the conversation is empty, the name ends in no known format, or the file exists or
            cannot be written.
        StoreError: messages cannot be saved at present.
    """
    path = Path(name).expanduser()
    text = _exported(session, path.name.lower())
    try:
        # "x": an export never overwrites a file.
        with path.open("x", encoding="utf-8", errors="replace") as file:
            file.write(text)
    except (OSError, ValueError) as error:
        raise InvalidRequest(f"{path} can't be written: {_reason(error)}.") from error
    return path


def import_from_file(session: TreeSession, name: str) -> Path:
    """Read a conversation from a file and open it; the path.

    Raises:
        InvalidRequest: the file cannot be read, or holds no conversation.
    """
    path = Path(name).expanduser()
    try:
        if path.stat().st_size > MAX_CHARACTERS:
            raise InvalidRequest(f"{path} is larger than {MAX_CHARACTERS // 1024**2} MiB.")
        text = path.read_text(encoding="utf-8")
    except UnicodeDecodeError as error:
        raise InvalidRequest(f"{path} is not a text in UTF-8.") from error
    except FileNotFoundError as error:
        hint = did_you_mean(near_files(name))
        raise InvalidRequest(f"There is no file {path}. {hint}".rstrip()) from error
    except (OSError, ValueError) as error:
        raise InvalidRequest(f"{path} can't be read: {_reason(error)}.") from error
    session.conversations.add(text)
    return path


def _exported(session: TreeSession, name: str) -> str:
    contents = session.contents()
    if contents is None or not contents.nodes:
        raise InvalidRequest("The conversation is empty: send a message first.")
    if name.endswith(".messages.json"):
        return export_messages(session.path(), session.nodes.images_of)
    if name.endswith(".md"):
        return export_markdown(session.title, session.path())
    if name.endswith(".jsonl"):
        return "".join(f"{line}\n" for line in session.export())
    if name.endswith(".json"):
        return export_json(contents)
    raise InvalidRequest("The name must end in .json, .jsonl, .md or .messages.json.")


def _reason(error: Exception) -> str:
    return (error.strerror if isinstance(error, OSError) else None) or str(error)
