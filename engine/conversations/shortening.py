"""A message that the context has no room for: sent after earlier messages were left out or summarised."""

from collections.abc import Sequence

from engine.api.errors import InvalidRequest
from engine.api.image import Image
from engine.conversations.context_window import KEPT_MESSAGES
from engine.conversations.errors import ContextFull
from engine.conversations.session import TreeSession
from engine.conversations.summaries import summary_tokens
from engine.conversations.tree import NodeKind, NodeView

TOO_LONG = "The message alone is too long for the context: shorten it."


def send_shortened(
    session: TreeSession,
    text: str,
    *,
    summarised: bool,
    length: int,
    images: Sequence[Image] = (),
) -> str | None:
    """Shorten the context of the open conversation as little as is enough, then send a message.

    Returns the id of the summary that was begun, if any.

    With `summarised` the message is queued until the summary is written.

    Args:
        session: its open conversation has no running answer.
        text: the message.
        summarised: whether a summary takes the place of the messages that are left out.
        length: the context length in tokens.
        images: its images, which cannot wait for a summary.

    Raises:
        InvalidRequest: shortening does not help, or the message cannot wait; the conversation is as
            before.
        PravahaError: as `UserMessages.send`.
    """
    if summarised and images:
        raise InvalidRequest(
            "A message with images cannot wait for a summary: leave earlier messages out."
        )
    if summarised:
        return _send_summarised(session, text, length)
    # Tried before anything is added: undo moves HEAD back, but the note would stay in the tree.
    keep = kept_when_left_out(session, text, images)
    if keep is None:
        raise InvalidRequest(TOO_LONG)
    session.context.shorten(summarised=False, keep=keep)
    try:
        session.messages.send(text, images=images)
    except BaseException:
        session.operations.undo()
        raise
    return None


def kept_when_left_out(session: TreeSession, text: str, images: Sequence[Image] = ()) -> int | None:
    """How many of the user's messages stay before this one when earlier ones are left out.

    None if it does not even fit alone.
    """
    users = sum(node.kind is NodeKind.USER for node in session.path())
    fitting = (
        keep
        for keep in range(min(KEPT_MESSAGES, users - 1), -1, -1)
        if session.context.fits(text, keep=keep, images=images)
    )
    return next(fitting, None)


def kept_when_summarised(session: TreeSession, text: str, length: int) -> int | None:
    """How many of the user's messages stay before this one beside a summary; None if there is no room."""
    path = session.path()
    starts = [at for at, node in enumerate(path) if node.kind is NodeKind.USER]
    fitting = (
        keep
        for keep in range(KEPT_MESSAGES, 0, -1)
        if len(starts) > keep and _fits(path, starts[-keep], text, session, length)
    )
    return next(fitting, None)


def _send_summarised(session: TreeSession, text: str, length: int) -> str:
    keep = kept_when_summarised(session, text, length)
    if keep is None:
        raise InvalidRequest("A summary would not make enough room: leave earlier messages out.")
    try:
        summary = session.context.shorten(summarised=True, keep=keep)
    except ContextFull as error:
        raise InvalidRequest(
            "The earlier messages are too long to be summarised: leave them out."
        ) from error
    session.messages.send(text)
    return summary


def _fits(path: list[NodeView], kept: int, text: str, session: TreeSession, length: int) -> bool:
    """Whether summary, kept messages and the new one leave room, estimated from their characters."""
    characters = sum(len(node.text) for node in path) or 1
    wanted = sum(len(node.text) for node in path[kept:]) + len(text)
    used = session.context.used() or length
    return wanted * used / characters + 2 * summary_tokens(length) < length
