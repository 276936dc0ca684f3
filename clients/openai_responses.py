# /// script
# requires-python = ">=3.11"
# dependencies = ["openai[realtime]==3.57.0"]
# ///
"""OpenAI's official client against `/v1/responses` of a server: `openai_responses.py URL [MODEL]`.

Prints a line for each check; the exit status is 1 if one failed. Checks of calls force the call, so that they
depend on the server and not on whether the model wants one.
"""

import base64
import json
import os
import sys
import time
from collections.abc import Callable
from typing import Any

import openai
from checks import Checks
from pydantic import BaseModel

URL = sys.argv[1].rstrip("/")
KEY = os.environ.get("PRAVAHA_API_KEY", "none")
client = openai.OpenAI(base_url=f"{URL}/v1", api_key=KEY, max_retries=0, timeout=600)
MODEL = sys.argv[2] if len(sys.argv) > 2 else client.models.list().data[0].id

WEATHER: Any = {
    "type": "function",
    "name": "get_weather",
    "description": "The weather in a city.",
    "parameters": {
        "type": "object",
        "properties": {"city": {"type": "string"}},
        "required": ["city"],
        "additionalProperties": False,
    },
    "strict": True,
}
RENAME: Any = {
    "type": "custom",
    "name": "rename",
    "description": "Renames a file. Write the old and the new name.",
    "format": {
        "type": "grammar",
        "syntax": "lark",
        "definition": 'start: NAME " -> " NAME\nNAME: /[a-z]{1,12}\\.py/',
    },
}


class City(BaseModel):
    """Typed output."""

    name: str
    country: str


def ask(text: Any = "Say hello.", **fields: Any) -> Any:
    """A response of a few tokens."""
    defaults = {"model": MODEL, "input": text, "max_output_tokens": 48, "temperature": 0}
    return client.responses.create(**defaults | fields)


def streamed(**fields: Any) -> tuple[list[Any], Any]:
    """The events of a stream, and the response at its end."""
    defaults = {"model": MODEL, "input": "Say hello.", "max_output_tokens": 48, "temperature": 0}
    with client.responses.stream(**defaults | fields) as stream:
        events = list(stream)
    return events, events[-1].response


def whole() -> None:
    """A text is answered by a message, with counts."""
    answer = ask()
    assert answer.output_text
    assert answer.status in ("completed", "incomplete")
    assert answer.usage.total_tokens == answer.usage.input_tokens + answer.usage.output_tokens


def stream() -> None:
    """The helper's text is that of the whole answer."""
    events, final = streamed()
    deltas = [one.delta for one in events if one.type == "response.output_text.delta"]
    assert "".join(deltas) == final.output_text == ask().output_text
    assert [one.sequence_number for one in events] == list(range(len(events)))


def typed() -> None:
    """Typed output is parsed."""
    answer = client.responses.parse(
        model=MODEL, input="Rome is in which country?", text_format=City, max_output_tokens=64
    )
    assert answer.output_parsed is not None


def call() -> None:
    """A forced call has valid arguments; its result goes back by `previous_response_id`."""
    choice = {"type": "function", "name": "get_weather"}
    events, final = streamed(input="The weather in Rome?", tools=[WEATHER], tool_choice=choice)
    (item,) = [one for one in final.output if one.type == "function_call"]
    deltas = [one.delta for one in events if one.type == "response.function_call_arguments.delta"]
    assert "".join(deltas) == item.arguments
    assert isinstance(json.loads(item.arguments)["city"], str)
    result = {"type": "function_call_output", "call_id": item.call_id, "output": "Sunny, 24 C."}
    again = ask([result], previous_response_id=final.id, tools=[WEATHER], tool_choice="none")
    assert again.output_text


def custom_call() -> None:
    """The input of a custom tool is of its grammar."""
    choice = {"type": "custom", "name": "rename"}
    events, final = streamed(input="Rename old.py to new.py.", tools=[RENAME], tool_choice=choice)
    (item,) = [one for one in final.output if one.type == "custom_tool_call"]
    deltas = [one.delta for one in events if one.type == "response.custom_tool_call_input.delta"]
    assert "".join(deltas) == item.input
    old, new = item.input.split(" -> ")
    assert old.endswith(".py")
    assert new.endswith(".py")


def skipped() -> None:
    """Tools that the server does not have are skipped."""
    tools: Any = [{"type": "web_search"}, {"type": "image_generation"}]
    raw = client.responses.with_raw_response.create(
        model=MODEL, input="Say hello.", tools=tools, max_output_tokens=8
    )
    assert raw.headers["x-pravaha-skipped-tools"] == "web_search,image_generation"


def kept() -> None:
    """A response is kept until it is deleted, with the items of its input."""
    made = ask([{"role": "user", "content": "a"}, {"role": "user", "content": "b"}])
    assert client.responses.retrieve(made.id).output_text == made.output_text
    assert len(list(client.responses.input_items.list(made.id, limit=1))) == 2
    client.responses.delete(made.id)
    try:
        client.responses.retrieve(made.id)
    except openai.NotFoundError:
        return
    raise AssertionError("a deleted response is still there")


def background() -> None:
    """A response in the background can be read from any event on, and be cancelled."""
    made = ask(background=True)
    while made.status in ("queued", "in_progress"):
        time.sleep(0.1)
        made = client.responses.retrieve(made.id)
    *_, last = client.responses.retrieve(made.id, stream=True, starting_after=2)
    assert last.response.output_text == made.output_text  # type: ignore[union-attr]
    long = ask("Count to a thousand.", background=True, max_output_tokens=2000)
    assert client.responses.cancel(long.id).status in ("cancelled", "completed")


def conversation() -> None:
    """Responses follow a conversation."""
    made = client.conversations.create(metadata={"a": "b"})
    ask("My name is Ada.", conversation=made.id)
    ask("What is my name?", conversation=made.id)
    assert len(list(client.conversations.items.list(made.id))) == 4
    client.conversations.delete(made.id)


def counts() -> None:
    """Counted tokens are those of the prompt."""
    counted = client.responses.input_tokens.count(model=MODEL, input="Say hello.")
    assert counted.input_tokens == ask().usage.input_tokens


def compaction() -> None:
    """A summary stands for a conversation."""
    compacted = client.responses.compact(
        model=MODEL, input=[{"role": "user", "content": "We launch on Tuesday."}]
    )
    items: Any = [one.to_dict() for one in compacted.output]
    assert ask([*items, {"role": "user", "content": "When do we launch?"}]).output_text


def file_input() -> None:
    """The text of a file is read."""
    data = base64.b64encode(b"The code word is teapot.").decode()
    part = {"type": "input_file", "filename": "note.txt", "file_data": data}
    question = {"type": "input_text", "text": "Which code word does the file have?"}
    assert "teapot" in ask([{"role": "user", "content": [part, question]}]).output_text.lower()


def shell_call() -> None:
    """A forced call of the local shell comes back in its own form."""
    answer = ask("List the files.", tools=[{"type": "shell"}], tool_choice={"type": "shell"})
    (item,) = [one for one in answer.output if one.type == "shell_call"]
    assert item.action.commands or item.status == "incomplete"


def socket() -> None:
    """Responses over one WebSocket; the second goes on from the first, which is not kept."""
    previous = None
    with client.responses.connect() as connection:
        for text in ("My name is Ada.", "What is my name?"):
            event: Any = {
                "type": "response.create", "model": MODEL, "input": text, "store": False,
                "max_output_tokens": 24, "previous_response_id": previous,
            }  # fmt: skip
            connection.send(event)
            while (received := connection.recv()).type not in (
                "response.completed",
                "response.incomplete",
            ):
                assert received.type not in ("error", "response.failed"), received
            previous = received.response.id  # type: ignore[union-attr]
    try:
        client.responses.retrieve(previous or "")
    except openai.NotFoundError:
        return
    raise AssertionError("a response was kept that was not to be")


def too_long() -> None:
    """A prompt that is too long is refused, and fails a stream, with the code that agents know."""
    text = "word " * 300_000
    try:
        ask(text)
    except openai.BadRequestError as error:
        assert error.code == "context_length_exceeded"
    else:
        raise AssertionError("it was answered")
    _, final = streamed(input=text)
    assert final.error.code == "context_length_exceeded"


CHECKS: list[Callable[[], None]] = [
    whole, stream, typed, call, custom_call, skipped, kept, background, conversation, counts,
    compaction, file_input, shell_call, socket, too_long,
]  # fmt: skip

if __name__ == "__main__":
    sys.exit(Checks("openai 3.57.0, Responses").run(CHECKS))
