"""`KeepAlive`: the field `keep_alive` of a request, by which clients of Ollama say how long a model stays."""

from typing import Annotated

from pydantic import PlainValidator

from engine.api.keep_alive import keep_alive_seconds

KeepAlive = Annotated[float, PlainValidator(keep_alive_seconds, json_schema_input_type=float | str)]
"""Seconds for which the model stays loaded after its last request; infinite for ever."""
