# /// script
# requires-python = ">=3.11"
# dependencies = ["outlines[openai,ollama]==1.3.3"]
# ///
"""Outlines against a server: `python clients/outlines_client.py http://127.0.0.1:8000`.

By OpenAI's API a schema is enforced; by the fields of vLLM, choices, regular expressions and grammars too.
"""

import re
import sys
from typing import Literal

import ollama
import outlines
from agent_task import served_model
from checks import Checks
from openai import OpenAI
from outlines.types import CFG, Regex
from pydantic import BaseModel


class City(BaseModel):
    """A city and its country."""

    city: str
    country: str


CAPITAL = "Which city is the capital of Italy?"
GRAMMAR = 'start: "yes" | "no"\n'


def main(url: str) -> int:
    checks = Checks("outlines 1.3.3")
    name = served_model(url)
    client = OpenAI(base_url=f"{url}/v1", api_key="none", timeout=600, max_retries=0)
    short = {"max_tokens": 60, "temperature": 0}
    model = outlines.from_openai(client, name)
    vllm = outlines.from_vllm(client, name)
    with checks.check("OpenAI: an answer, streamed"):
        assert "".join(model.stream("Say hello.", **short))
    with checks.check("OpenAI: a typed answer"):
        assert City.model_validate_json(model(CAPITAL, City, **short)).city == "Rome"
    with checks.check("vLLM: a typed answer"):
        assert City.model_validate_json(vllm(CAPITAL, City, **short)).city == "Rome"
    with checks.check("vLLM: one of several texts"):
        asked = "Is 'What a wonderful day!' a happy or a sad sentence?"
        assert vllm(asked, Literal["happy", "sad"], **short) == "happy"
    with checks.check("vLLM: a regular expression"):
        found = vllm("When did the Second World War end? The year.", Regex(r"19[0-9]{2}"), **short)
        assert re.fullmatch(r"19\d\d", found), found
    with checks.check("vLLM: a grammar"):
        assert vllm("Is Rome in Italy?", CFG(GRAMMAR), **short) in ("yes", "no")
    with checks.check("Ollama: a typed answer"):
        local = outlines.from_ollama(ollama.Client(host=url), name)
        found = local(CAPITAL, City, options={"num_predict": 60, "temperature": 0})
        assert City.model_validate_json(found).city == "Rome"
    return checks.report()


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
