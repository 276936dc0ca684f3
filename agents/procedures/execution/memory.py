"""`memory`: the memory operations that a task asks for, done with the tool `memory` where the run has one.

Secrets are refused. An entry that is stored twice has one key: the hash of its normalised text.
"""

import hashlib
import re
from collections.abc import Mapping, Sequence
from typing import Any, Literal

from agents.api.errors import BudgetExhausted, PermissionDenied
from agents.guardrails.detection import Kind as Detected
from agents.memory.write_filter import filter_text
from agents.outputs.memory_ops import MemoryOp, MemoryOps
from agents.procedures.procedure import AgentTask, ProcedureContext
from agents.procedures.task_text import bounded
from agents.text.sentences import sentences

Scope = Literal["user", "project", "agent"]
Kind = Literal["store", "recall", "forget"]

_FORGET = (
    r"(?:forget|delete|erase|remove)(?:\s+(?:from memory|the memory of))?"
    r"(?:\s+(?:that|about|what you know about|everything about))?"
)
_RECALL = (
    r"(?:recall|what do you (?:know|remember)|what did (?:i|we) (?:say|decide|tell you)|do you remember|"
    r"look up|remind me(?: of)?)(?:\s+(?:about|of|that|what))?"
)
_STORE = r"(?:remember|store|note|save|memori[sz]e|keep in mind|don't forget)(?:\s+that)?"
_VERBS: tuple[tuple[Kind, str], ...] = (
    ("forget", _FORGET),
    ("recall", _RECALL),
    ("store", _STORE),
)
_PATTERNS = [
    (kind, re.compile(rf"^\s*(?:please\s+)?{pattern}[:\s]+(.+)$", re.I | re.S))
    for kind, pattern in _VERBS
]
_SCOPE = re.compile(
    r"\s*\b(?:for|in|as)\s+(?:this|the|my)\s+(user|project|agent)(?:'s)?(?:\s+(?:memory|scope))?\b",
    re.I,
)
_PREFERENCE = re.compile(r"^(?:I|my|we|our)\b", re.I)
_IMPORTANT = re.compile(r"\b(?:always|never|must|important|critical|essential)\b", re.I)
_NAMED_SECRET = re.compile(
    r"(?:passwor[dt]|passwd|passphrase|secret|api[_ -]?key|token|credential)s?\b[^\n]{0,20}?(?:\bis\b|[:=])"
    r"\s*[^\s,.]{4,}",
    re.I,
)
_HIDDEN = Detected.HIDDEN_TEXT.value
_MAX_OPS = 100
_MAX_QUERY = 1_000


async def run(task: AgentTask, context: ProcedureContext) -> MemoryOps:
    """The operations of the task's sentences."""
    if not task.text.strip():
        return MemoryOps(cannot_do="Say what to remember, recall or forget.")
    result = parse_operations(task.text, task.document)
    done = []
    for operation in result.operations:
        context.check_cancelled()
        done.append(operation.model_copy(update={"result": await _performed(operation, context)}))
    return result.model_copy(update={"operations": done})


async def _performed(operation: MemoryOp, context: ProcedureContext) -> str:
    """What came of an operation; why it was not done goes to the notes."""
    if "memory" not in context.available_tools:
        return ""
    text = operation.text
    try:
        if operation.op == "store":
            stored = await context.tool(
                "memory",
                action="store",
                text=text,
                path=f"notes/{operation.key}",
                scope=operation.scope,
                importance=operation.importance,
            )
            return _said(stored, context)
        found = await context.tool("memory", action="recall", query=text[:_MAX_QUERY])
        if operation.op == "recall" or found["failed"]:
            return _said(found, context)
        return await _forgotten(text, found["entries"], context)
    except (PermissionDenied, BudgetExhausted) as error:
        context.note(f"The memory was not changed: {error}")
        return ""


async def _forgotten(
    text: str, entries: Sequence[Mapping[str, Any]], context: ProcedureContext
) -> str:
    """Forget the entries that hold a text; each needs an approval."""
    named = [one for one in entries if _normal(text) in _normal(one["text"])]
    for entry in named:
        output = await context.tool("memory", action="forget", id=entry["id"])
        if output["failed"]:
            return _said(output, context)
    return f"Forgot {len(named)} entries." if named else "No memory says that."


def _said(output: Mapping[str, Any], context: ProcedureContext) -> str:
    """The text of a call; a failure becomes a note."""
    if output["failed"]:
        context.note(f"The memory was not used: {output['text']}")
        return ""
    return bounded(str(output["text"]), 4_000)


def _normal(text: str) -> str:
    return " ".join(text.casefold().split()).strip(" .!?")


def parse_operations(text: str, document: str = "") -> MemoryOps:
    """The operations that a text asks for, without duplicates; `document` is what `remember this` means."""
    operations: dict[tuple[str, str], MemoryOp] = {}
    refused: list[str] = []
    for sentence in sentences(text):
        found = _operation(sentence.text)
        if found is None:
            continue
        kind, body = found
        if re.fullmatch(r"(?:this|the following|it|the document)\W*", body, re.I) and document:
            body = document
        scope, body = _scope(body)
        secret = find_secret(body) if kind == "store" else ""
        if secret:
            refused.append(f"What looks like a {secret} is not stored.")
            continue
        key = memory_key(body)
        operations.setdefault(
            (kind, key),
            MemoryOp(
                op=kind,
                text=bounded(body, 4_000),
                key=key,
                scope=scope,
                importance=_importance(body),
            ),
        )
    if not operations and not refused:
        return MemoryOps(
            cannot_do="Nothing in the task asks to remember, recall or forget something."
        )
    return MemoryOps(operations=list(operations.values())[:_MAX_OPS], refused=refused[:_MAX_OPS])


def memory_key(text: str) -> str:
    """A hash of the text without case, blanks and final marks; the same in every process."""
    return hashlib.blake2b(_normal(text).encode("utf-8", "replace"), digest_size=12).hexdigest()


def find_secret(text: str) -> str:
    """The kind of secret or personal number that a text holds, or empty."""
    if _NAMED_SECRET.search(text):
        return "secret"
    removed = [kind for kind in filter_text(text).removed if kind != _HIDDEN]
    if not removed or removed[0] == Detected.SECRET.value:
        return "secret" if removed else ""
    return f"{removed[0].replace('_', ' ')} number"


def _operation(sentence: str) -> tuple[Kind, str] | None:
    for kind, pattern in _PATTERNS:
        match = pattern.match(sentence)
        if match:
            body = match[1].strip().rstrip("?").strip()
            return (kind, body) if body else None
    return None


def _scope(body: str) -> tuple[Scope, str]:
    match = _SCOPE.search(body)
    if match:
        name = match[1].lower()
        rest = (body[: match.start()] + body[match.end() :]).strip()
        scope: Scope = "user" if name == "user" else "agent" if name == "agent" else "project"
        return scope, rest or body
    return ("user" if _PREFERENCE.match(body) else "project"), body


def _importance(body: str) -> float:
    return 0.8 if _IMPORTANT.search(body) else 0.5
