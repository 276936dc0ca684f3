"""A message that the context has no room for: sent after earlier messages were left out or summarised."""

from collections.abc import Sequence

from engine.api.errors import InvalidRequest
from engine.api.image import Image
from engine.conversations.context_window import KEPT_MESSAGES
from engine.conversations.errors import ContextFull
from engine.conversations.session import TreeSession
from engine.conversations.summaries import SUMMARY_TOKENS
from engine.conversations.tree import NodeKind, NodeView

TOO_LONG = "The message alone is too long for the context: shorten it."


def send_shortened(
    session: TreeSession,
    text: str,
    *,
    summarised: bool,
    length: int,
    images: Sequence[Image] = (),
) -> None:
    """Shorten the context of the open conversation as little as is enough, then send a message.

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
        _send_summarised(session, text, length)
        return
    users = sum(node.kind is NodeKind.USER for node in session.path())
    # Tried before anything is added: undo moves HEAD back, but the note would stay in the tree.
    fitting = (
        keep
        for keep in range(min(KEPT_MESSAGES, users - 1), -1, -1)
        if session.context.fits(text, keep=keep, images=images)
    )
    keep = next(fitting, None)
    if keep is None:
        raise InvalidRequest(TOO_LONG)
    session.context.shorten(summarised=False, keep=keep)
    try:
        session.messages.send(text, images=images)
    except BaseException:
        session.operations.undo()
        raise


def _send_summarised(session: TreeSession, text: str, length: int) -> None:
    path = session.path()
    starts = [at for at, node in enumerate(path) if node.kind is NodeKind.USER]
    keep = next(
        (
            keep
            for keep in range(KEPT_MESSAGES, 0, -1)
            if len(starts) > keep and _fits(path, starts[-keep], text, session, length)
        ),
        None,
    )
    if keep is None:
        raise InvalidRequest("A summary would not make enough room: leave earlier messages out.")
    try:
        session.context.shorten(summarised=True, keep=keep)
    except ContextFull as error:
        raise InvalidRequest(
            "The earlier messages are too long to be summarised: leave them out."
        ) from error
    session.messages.send(text)


def _fits(path: list[NodeView], kept: int, text: str, session: TreeSession, length: int) -> bool:
    """Whether summary, kept messages and the new one leave room, estimated from their characters."""
    characters = sum(len(node.text) for node in path) or 1
    wanted = sum(len(node.text) for node in path[kept:]) + len(text)
    used = session.context.used() or length
    return wanted * used / characters + 2 * SUMMARY_TOKENS < length
