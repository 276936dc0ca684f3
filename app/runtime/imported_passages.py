"""What a person is told who imports a conversation whose answers were taken from documents."""

from app.runtime.stored_passages import load_passages
from engine.conversations.session import TreeSession


def build_imported(session: TreeSession) -> str:
    """One sentence about the collections of the open conversation, which was imported; empty without any.

    Attachments are not imported: collections are of the machine where the conversation was exported.
    """
    names: dict[str, None] = {}
    for node in session.path():
        found = session.sources.passages_of(node.id) if node.n_passages else None
        if found is not None:
            names |= dict.fromkeys(one.collection for one in load_passages(found.passages))
    if not names:
        return ""
    return (
        f"Its answers were taken from {', '.join(names)}, which is not attached here: citations show the "
        "passages that are stored with it, and @NAME in a message attaches a collection of yours."
    )
