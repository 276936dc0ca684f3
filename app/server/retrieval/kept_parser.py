"""`KeptParser`: one parser process for many index runs, because each file of a vector store is a run."""

from engine.retrieval.parsing.parser_pool import ParserPool


class KeptParser(ParserPool):
    """A pool whose process outlives the `close` of a run, up to `rest`."""

    def close(self) -> None:
        """A run is over; the next one uses the same process."""
