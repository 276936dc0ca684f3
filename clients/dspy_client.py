# /// script
# requires-python = ">=3.11"
# dependencies = ["dspy==3.4.1"]
# ///
"""DSPy against a server: `python clients/dspy_client.py http://127.0.0.1:8000`. Chats and Responses."""

import sys
from typing import Literal

import dspy
from agent_task import served_model
from checks import Checks


class Mood(dspy.Signature):
    """Tell the mood of a sentence."""

    sentence: str = dspy.InputField()
    mood: Literal["happy", "sad"] = dspy.OutputField()


def get_weather(city: str) -> str:
    """The weather in a city."""
    return f"12 degrees and rain in {city}"


def main(url: str) -> int:
    checks = Checks("dspy 3.4.1")
    for face in ("chat", "responses"):
        model = dspy.LM(
            f"openai/{served_model(url)}", api_base=f"{url}/v1", api_key="none", model_type=face,
            temperature=0, max_tokens=300, cache=False, num_retries=0,
        )  # fmt: skip
        with dspy.context(lm=model):
            with checks.check(f"{face}: an answer"):
                assert model("Say hello.")[0]
            with checks.check(f"{face}: a signature with a choice, by text"):
                found = dspy.Predict(Mood)(sentence="I have won, what a wonderful day!")
                assert found.mood == "happy", found
            with (
                checks.check(f"{face}: a signature with a choice, by a schema"),
                dspy.context(adapter=dspy.JSONAdapter()),
            ):
                found = dspy.Predict(Mood)(sentence="My cat has died, I cry all day.")
                assert found.mood == "sad", found
            with checks.check(f"{face}: thought before the answer"):
                found = dspy.ChainOfThought("question -> answer: int")(question="What is 6 * 7?")
                assert found.answer == 42, found
            with checks.check(f"{face}: a tool is called"):
                react = dspy.ReAct("question -> answer", tools=[get_weather], max_iters=3)
                found = react(question="What is the weather in Aarhus?")
                assert "12" in found.answer, found
    return checks.report()


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
