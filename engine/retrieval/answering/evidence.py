"""Whether the found passages can answer a question at all.

The evidence is the highest cosine between the question and a found passage. Models, above all small ones,
answer from whatever they are given, so too little evidence ends in "not in the documents" without asking one.
"""

from collections.abc import Sequence

from engine.retrieval.api.passage import Passage

MIN_EVIDENCE = 0.44
"""Below it the documents are taken not to answer (docs/retrieval.md has the error rates). The scale is that
of all-MiniLM-L6-v2; questions in scripts that it was not trained on score high whatever is asked."""


def evidence(passages: Sequence[Passage]) -> float:
    """The highest cosine to the question, -1 without passages; 1 if none was computed (lexical search)."""
    cosines = [passage.dense for passage in passages if passage.dense is not None]
    if cosines:
        return max(cosines)
    return 1.0 if passages else -1.0
