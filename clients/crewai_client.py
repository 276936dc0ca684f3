# /// script
# requires-python = ">=3.11"
# dependencies = ["crewai==1.15.30"]
# ///
"""CrewAI against a server: `python clients/crewai_client.py http://127.0.0.1:8000`."""

import os
import sys

os.environ |= {
    "CREWAI_DISABLE_TELEMETRY": "true",
    "OTEL_SDK_DISABLED": "true",
    "CREWAI_TRACING_ENABLED": "false",
}

from agent_task import served_model
from checks import Checks
from crewai import LLM, Agent, Crew, Task
from crewai.tools import tool
from pydantic import BaseModel


class City(BaseModel):
    """A city and its country."""

    city: str
    country: str


ASKED: list[str] = []


@tool("get_weather")
def get_weather(city: str) -> str:
    """The weather in a city."""
    ASKED.append(city)
    return f"12 degrees and rain in {city}"


def main(url: str) -> int:
    checks = Checks("crewai 1.15.30")
    name = served_model(url)
    model = LLM(
        model=f"openai/{name}", base_url=f"{url}/v1", api_key="none", temperature=0, max_tokens=150
    )

    def crew(text: str, expected: str, **more):
        agent = Agent(
            role="assistant", goal="answer briefly", backstory="You are brief.", llm=model,
            tools=more.pop("tools", []), max_iter=4, verbose=False,
        )  # fmt: skip
        task = Task(description=text, expected_output=expected, agent=agent, **more)
        return Crew(agents=[agent], tasks=[task], verbose=False).kickoff()

    with checks.check("an answer"):
        assert model.call("Say hello.")
    with checks.check("an agent's task"):
        assert "Rome" in crew("Which city is the capital of Italy?", "one word").raw
    with checks.check("an agent's task with a typed answer"):
        found = crew("Which city is the capital of Italy?", "the city", output_pydantic=City)
        assert found.pydantic.city == "Rome", found
    with checks.check("an agent calls a tool and reads its result"):
        found = crew("What is the weather in Aarhus?", "a sentence", tools=[get_weather])
        assert ASKED[0] == "Aarhus", ASKED
        assert "12" in found.raw, found.raw
    return checks.report()


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
