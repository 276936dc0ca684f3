"""Edits from a model's answer: which files its code changes, and how, found by program.

```
answer ──▶ read_fences ──▶ propose_edits(answer, files) ──▶ FileEdit ──▶ apply_edits ──▶ take_back
                            diff, SEARCH/REPLACE, Python by name,
                            other languages by their unique first line
```

Nothing is guessed: code whose place is not unique is refused with one sentence. What an edit does not touch
stays as it is, byte by byte. A definition that the answer does not mention stays.
"""

from agents.edits.answer_edits import Proposal, propose_edits
from agents.edits.file_edit import FileEdit, apply_edits, take_back

__all__ = ["FileEdit", "Proposal", "apply_edits", "propose_edits", "take_back"]
