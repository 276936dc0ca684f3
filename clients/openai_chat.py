# /// script
# requires-python = ">=3.11"
# dependencies = ["openai==3.57.0"]
# ///
"""The `openai` client's chats with tools: `python clients/openai_chat.py http://127.0.0.1:8000`."""

import json
import sys

from checks import Checks
from openai import OpenAI
from weather_tool import WEATHER

ASKED = {"role": "user", "content": "What is the weather in Aarhus?"}


def main(url: str) -> int:
    client = OpenAI(base_url=f"{url}/v1", api_key="none")
    model = client.models.list().data[0].id
    checks = Checks("openai 3.57.0, chats")
    options = {"model": model, "temperature": 0, "max_tokens": 80}

    def asked(**more):
        return client.chat.completions.create(messages=[ASKED], tools=[WEATHER], **options, **more)

    with checks.check("a call, and an answer from its result"):
        choice = asked().choices[0]
        assert choice.finish_reason == "tool_calls"
        (call,) = choice.message.tool_calls
        assert call.function.name == "get_weather"
        assert "Aarhus" in json.loads(call.function.arguments)["city"]
        result = {"role": "tool", "tool_call_id": call.id, "content": "12 degrees, rain"}
        turns = [ASKED, choice.message.model_dump(exclude_none=True), result]
        answer = client.chat.completions.create(messages=turns, tools=[WEATHER], **options)
        assert "12" in answer.choices[0].message.content
    with checks.check("a streamed call, by the client's helper"):
        with client.chat.completions.stream(messages=[ASKED], tools=[WEATHER], **options) as stream:
            for _ in stream:
                pass
        (call,) = stream.get_final_completion().choices[0].message.tool_calls
        assert "Aarhus" in json.loads(call.function.arguments)["city"]
    with checks.check("a named call"):
        named = {"type": "function", "function": {"name": "get_weather"}}
        (call,) = asked(tool_choice=named).choices[0].message.tool_calls
        assert json.loads(call.function.arguments).keys() == {"city"}
    with checks.check("no call for a greeting"):
        greeting = [{"role": "user", "content": "Hi, who are you?"}]
        answer = client.chat.completions.create(messages=greeting, tools=[WEATHER], **options)
        assert not answer.choices[0].message.tool_calls
        assert answer.choices[0].message.content
    with checks.check("no call with tool_choice none"):
        assert not asked(tool_choice="none").choices[0].message.tool_calls
    return checks.report()


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
