"""`target`: the node that a key of navigate mode acts on."""

from typing import TYPE_CHECKING

from engine.api.errors import InvalidRequest

if TYPE_CHECKING:
    from app.tui.app import PravahaApp

EMPTY = "The conversation is empty: send a message first."


def target(app: "PravahaApp") -> str:
    """The selected node (see `PravahaApp.selected_node`), else the end of the open path.

    Raises:
        InvalidRequest: the conversation is empty.
    """
    node_id = app.selected_node or app.session.head
    if node_id is None:
        raise InvalidRequest(EMPTY)
    return node_id
