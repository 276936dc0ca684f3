"""The served model as Codex describes models: the member `models` of `GET /v1/models?client_version=…`.

Codex takes from here what it would else guess of a model that it does not know: the length of the context, by
which it compacts, which tools to offer, and the instructions that begin every session. All members are there
that its parser demands; one that is missing would make it refuse the whole list.
"""

from typing import Any

INSTRUCTIONS = """\
You are a coding agent in a terminal. You work on the files of the current folder with the tools you have.

- Look before you change anything: read the files that matter, and search with `rg`.
- Make the smallest change that does what was asked, in the style of the code around it. Do not commit, and \
do not touch what the task does not concern.
- Run the tests or the program where there are any, and mend what your change has broken.
- Give a tool exactly the arguments it declares. After its result go on with the task; do not repeat a call \
whose result you have.
- When the work is done, say briefly what you changed and how you checked it. If you cannot do it, say why.
"""
"""In place of Codex's own, which have some 4,000 tokens: a small model follows few rules better than many."""

TRUNCATED_TOKENS = 10_000
"""To how many tokens Codex cuts the output of a tool, if the context is long enough."""
_SHARE_OF_CONTEXT = 8


def codex_model(name: str, context_length: int, *, sees_images: bool) -> dict[str, Any]:
    """A model's entry.

    Args:
        name: the name that requests use.
        context_length: in tokens.
        sees_images: whether it takes images.
    """
    limit = min(TRUNCATED_TOKENS, context_length // _SHARE_OF_CONTEXT)
    return {
        "slug": name,
        "display_name": name,
        "description": "Served by Pravāha on this machine.",
        "supported_reasoning_levels": [],
        "shell_type": "shell_command",
        "visibility": "list",
        "supported_in_api": True,
        "priority": 0,
        "upgrade": None,
        "base_instructions": INSTRUCTIONS,
        "supports_reasoning_summaries": False,
        "support_verbosity": False,
        "default_verbosity": None,
        "apply_patch_tool_type": "freeform",
        "truncation_policy": {"mode": "tokens", "limit": limit},
        "supports_parallel_tool_calls": True,
        "supports_search_tool": False,
        "context_window": context_length,
        "max_context_window": context_length,
        "effective_context_window_percent": 95,
        "experimental_supported_tools": [],
        "input_modalities": ["text", "image"] if sees_images else ["text"],
    }
