"""`standalone_query`: what to search for when a question refers to an earlier one.

"How can I change it?" finds nothing by itself; searched together with the question before it, it does. A
question that names its own subject is searched alone, because words of another subject would mislead.
Rewriting by the model was measured, too: the demo model answers the question instead of rewriting it
(docs/retrieval.md). The pronouns are English; in other languages only the length decides.
"""

import re
from collections.abc import Sequence

from engine.api.chat import ChatMessage
from engine.retrieval.search.query_terms import query_terms

MIN_OWN_TERMS = 3
"""A question with fewer words of its own is taken to continue the one before."""

_REFERS = re.compile(
    r"\b(?:it|its|that|this|these|those|they|them|their|one|ones|he|she|his|her)\b"
    r"|^\W*(?:and|but|also|what about|how about)\b",
    re.IGNORECASE,
)


def standalone_query(question: str, history: Sequence[ChatMessage]) -> str:
    """The question, behind the user's last one if it refers to that.

    Args:
        question: the question.
        history: earlier turns; only the last message of the user counts.
    """
    earlier = next(
        (turn["content"] for turn in reversed(history) if turn.get("role") == "user"), None
    )
    if not isinstance(earlier, str) or not earlier.strip():
        return question
    refers = _REFERS.search(question) or len(query_terms(question)) < MIN_OWN_TERMS
    return f"{earlier.strip()} {question}" if refers else question
