# /// script
# requires-python = ">=3.11"
# dependencies = ["smolagents[openai]==1.26.0"]
# ///
"""smolagents against a server: `python clients/smolagents_client.py http://127.0.0.1:8000`."""

import sys

from agent_task import served_model
from checks import Checks
from smolagents import CodeAgent, OpenAIModel, ToolCallingAgent, tool


@tool
def get_weather(city: str) -> str:
    """The weather in a city.

    Args:
        city: its name.
    """
    return f"12 degrees and rain in {city}"


def main(url: str) -> int:
    checks = Checks("smolagents 1.26.0")
    model = OpenAIModel(
        served_model(url), api_base=f"{url}/v1", api_key="none", temperature=0, max_tokens=300
    )
    hello = [{"role": "user", "content": [{"type": "text", "text": "Say hello."}]}]
    with checks.check("an answer and its usage"):
        answer = model.generate(hello)
        assert answer.content
        assert answer.token_usage.output_tokens > 0
    with checks.check("an answer, streamed"):
        assert "".join(one.content or "" for one in model.generate_stream(hello))
    with checks.check("an agent calls a tool and ends with an answer"):
        agent = ToolCallingAgent(tools=[get_weather], model=model, max_steps=6)
        answer = agent.run("What is the weather in Aarhus?")
        assert "12" in str(answer), answer
    with checks.check("an agent writes code, held to a schema"):
        agent = CodeAgent(
            tools=[], model=model, max_steps=4, use_structured_outputs_internally=True
        )
        answer = agent.run("What is 21 * 2?")
        assert "42" in str(answer), answer
    return checks.report()


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
