# /// script
# requires-python = ">=3.11"
# dependencies = ["ollama==0.6.3"]
# ///
"""The `ollama` client against a running server: `python clients/ollama_sdk.py http://127.0.0.1:8000`."""

import sys

from checks import Checks
from ollama import Client, ResponseError
from weather_tool import WEATHER

SHORT = {"num_predict": 24, "temperature": 0}


def main(url: str) -> int:
    client = Client(host=url)
    checks = Checks("ollama 0.6.3")
    model = client.list().models[0].model
    user = [{"role": "user", "content": "Say hello."}]

    with checks.check("list, show, ps"):
        assert client.show(model).modelinfo
        assert client.ps().models[0].model == model
    with checks.check("chat"):
        assert client.chat(model, user, options=SHORT).message.content
    with checks.check("chat, streamed"):
        pieces = [*client.chat(model, user, options=SHORT, stream=True)]
        assert pieces[-1].done
        assert pieces[-1].eval_count > 0
        assert "".join(piece.message.content or "" for piece in pieces)
    with checks.check("generate, and its context"):
        first = client.generate(model, "Say hello.", options=SHORT)
        assert first.response
        assert client.generate(model, "Again.", context=first.context, options=SHORT).response
    with checks.check("generate, raw"):
        assert client.generate(model, "Once upon a", raw=True, options=SHORT).response
    with checks.check("format: a schema"):
        schema = {
            "type": "object",
            "properties": {"n": {"type": "integer", "minimum": 0, "maximum": 99}},
            "required": ["n"],
            "additionalProperties": False,
        }
        answer = client.chat(model, user, format=schema, options=SHORT).message.content
        assert answer.startswith("{")
    with checks.check("tools: a call comes as an object, and its result is read"):
        asked = [{"role": "user", "content": "What is the weather in Aarhus?"}]
        message = client.chat(
            model, asked, tools=[WEATHER], options=SHORT | {"num_predict": 60}
        ).message
        (call,) = message.tool_calls
        assert call.function.name == "get_weather"
        assert call.function.arguments["city"].startswith("Aarhus")
        result = {"role": "tool", "tool_name": "get_weather", "content": "12 degrees, rain"}
        assert client.chat(model, [*asked, message, result], options=SHORT).message.content
    with checks.check("an unknown model is a ResponseError with a sentence"):
        try:
            client.chat("no-such-model", user)
            raise AssertionError("no error")
        except ResponseError as error:
            assert "not found" in error.error
    return checks.report()


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
