"""`history_updates`: what was said in a conversation, as a client is told of it when it loads the session."""

from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

from acp.helpers import text_block
from acp.schema import AgentMessageChunk, AgentThoughtChunk, ToolCallStart, UserMessageChunk

from app.acp.tool_updates import (
    arguments_of,
    kind_of,
    locations_of,
    text_content,
    title_of,
)
from app.slash.attachments import split_attached
from engine.conversations.made_calls import read_calls
from engine.conversations.tree import NodeKind, NodeView


def history_updates(path: Sequence[NodeView], folder: Path) -> Iterator[Any]:
    """The updates that show the messages of a path, in their order.

    Args:
        path: the messages, root first.
        folder: of the session, for the places of calls.
    """
    for node in path:
        match node.kind:
            case NodeKind.USER:
                yield UserMessageChunk(
                    session_update="user_message_chunk",
                    content=text_block(split_attached(node.text)[0]),
                    message_id=node.id,
                )
            case NodeKind.ASSISTANT:
                yield from _answer(node)
            case NodeKind.TOOL:
                yield from _calls(node, folder)
            case _:  # system prompts, and what is about the context alone
                pass


def _answer(node: NodeView) -> Iterator[Any]:
    if node.reasoning:
        yield AgentThoughtChunk(
            session_update="agent_thought_chunk",
            content=text_block(node.reasoning),
            message_id=node.id,
        )
    text = node.text or (f"(failed: {node.error})" if node.error else "")
    if text:
        yield AgentMessageChunk(
            session_update="agent_message_chunk", content=text_block(text), message_id=node.id
        )


def _calls(node: NodeView, folder: Path) -> Iterator[Any]:
    calls = read_calls(node.calls)
    for number, call in enumerate(calls):
        arguments = arguments_of(call.arguments)
        yield ToolCallStart(
            session_update="tool_call",
            tool_call_id=f"{node.id}-{number}",
            title=title_of(call.name, arguments),
            kind=kind_of(call.name),
            status="completed" if call.state == "ok" else "failed",
            locations=locations_of(arguments, folder),
            raw_input=arguments,
            content=text_content(node.text if number == len(calls) - 1 else ""),
        )
