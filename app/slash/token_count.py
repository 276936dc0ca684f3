"""`count_tokens`: the number of tokens of a text, counted piece by piece, so that no call takes long."""

from engine.api.errors import PravahaError
from engine.clients.engine_client import EngineClient

PIECE_CHARS = 16_384
"""Characters of a piece: about 4 ms of the tokenizer, which holds Python's lock meanwhile."""


def count_tokens(client: EngineClient, text: str) -> int:
    """The number of tokens of a text, for any thread; 0 if they cannot be counted now.

    Only while a model is loaded: otherwise it waits for one. Pieces end with lines where that is possible;
    where one does not, a token may be counted twice.
    """
    total, start = 0, 0
    try:
        while start < len(text):
            end = start + PIECE_CHARS
            if end < len(text):
                line = text.rfind("\n", start + PIECE_CHARS // 2, end)
                end = line if line > 0 else end
            total += len(client.tokenize(text[start:end]))
            start = end
    except PravahaError:  # the model is being changed, or a replay has not counted this text
        return 0
    return total
