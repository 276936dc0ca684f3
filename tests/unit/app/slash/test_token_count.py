from app.slash.token_count import PIECE_CHARS, count_tokens
from engine.api.errors import EngineUnavailable


class Client:
    """A token for every line end and every other run of characters."""

    def __init__(self):
        self.pieces = []

    def tokenize(self, text):
        self.pieces.append(text)
        return [part for part in text.replace("\n", " \n ").split(" ") if part]


def test_a_long_text_is_counted_in_pieces_that_end_with_lines():
    client, text = Client(), "some words\n" * 10_000
    whole = len(Client().tokenize(text))
    assert count_tokens(client, text) == whole
    assert "".join(client.pieces) == text
    assert len(client.pieces) > 1
    assert max(map(len, client.pieces)) <= PIECE_CHARS


def test_a_text_without_lines_is_counted_nearly():
    client, text = Client(), "word " * 10_000
    assert abs(count_tokens(client, text) - 10_000) <= len(client.pieces)


def test_what_cannot_be_counted_has_none():
    class Changing:
        def tokenize(self, text):
            raise EngineUnavailable("The model is being changed.")

    assert count_tokens(Changing(), "x") == 0
