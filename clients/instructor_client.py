# /// script
# requires-python = ">=3.11"
# dependencies = ["instructor==1.17.0"]
# ///
"""instructor against a server: `python clients/instructor_client.py http://127.0.0.1:8000`. Typed answers."""

import asyncio
import sys

import instructor
from agent_task import served_model
from checks import Checks
from openai import AsyncOpenAI, OpenAI
from pydantic import BaseModel, field_validator


class Person(BaseModel):
    """A person that a sentence tells of."""

    name: str
    age: int


class Adult(Person):
    """A person whose name is in capitals, which the model is told only when it was wrong."""

    @field_validator("name")
    @classmethod
    def in_capitals(cls, name: str) -> str:
        """The name, if it is in capitals."""
        if name != name.upper():
            raise ValueError(f"write the name in capitals: {name.upper()}")
        return name


ASKED = [{"role": "user", "content": "Anna is 34 years old."}]
BOTH = [{"role": "user", "content": "Anna is 34 years old, and Bertil is 51."}]
MODES = ("TOOLS", "TOOLS_STRICT", "JSON", "MD_JSON", "JSON_SCHEMA", "RESPONSES_TOOLS")


def main(url: str) -> int:
    own = {"base_url": f"{url}/v1", "api_key": "none", "max_retries": 0, "timeout": 600}
    options = {"model": served_model(url), "temperature": 0, "max_retries": 0}
    checks = Checks("instructor 1.17.0")

    def client(mode: str) -> instructor.Instructor:
        return instructor.from_openai(OpenAI(**own), mode=instructor.Mode[mode])

    for mode in MODES:
        with checks.check(f"{mode}: a typed answer"):
            limit = {"max_output_tokens" if "RESPONSES" in mode else "max_tokens": 100}
            found = client(mode).chat.completions.create(
                messages=ASKED, response_model=Person, **options, **limit
            )
            assert (found.name, found.age) == ("Anna", 34), found
    for mode in ("TOOLS", "JSON"):
        with checks.check(f"{mode}: partial objects while the answer arrives"):
            parts = [
                *client(mode).chat.completions.create_partial(
                    messages=ASKED, response_model=Person, max_tokens=100, **options
                )
            ]
            assert len(parts) > 1
            assert (parts[-1].name, parts[-1].age) == ("Anna", 34)
        with checks.check(f"{mode}: several objects, one by one"):
            people = [
                *client(mode).chat.completions.create_iterable(
                    messages=BOTH, response_model=Person, max_tokens=200, **options
                )
            ]
            assert [one.name for one in people] == ["Anna", "Bertil"], people
    with checks.check("an answer that a validator refuses is asked for again"):
        found = client("TOOLS").chat.completions.create(
            messages=ASKED, response_model=Adult, max_tokens=100, **options | {"max_retries": 3}
        )
        assert found.name == "ANNA"
    with checks.check("asynchronous"):

        async def ask() -> Person:
            own_client = instructor.from_openai(AsyncOpenAI(**own))
            return await own_client.chat.completions.create(
                messages=ASKED, response_model=Person, max_tokens=100, **options
            )

        assert asyncio.run(ask()).age == 34
    return checks.report()


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
