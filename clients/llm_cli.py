# /// script
# requires-python = ">=3.11"
# dependencies = ["llm==0.36", "llm-ollama==0.19.1"]
# ///
"""The command `llm` against a server: `python clients/llm_cli.py http://127.0.0.1:8000`.

Its models of OpenAI's API, from `extra-openai-models.yaml`, and the ones that the plug-in for Ollama finds.
"""

import json
import os
import subprocess
import sys
from pathlib import Path
from tempfile import TemporaryDirectory

from agent_task import served_model
from checks import Checks

MODELS = """\
- model_id: pravaha
  model_name: {model}
  api_base: "{url}/v1"
  supports_schema: true
  supports_tools: true
- model_id: pravaha-text
  model_name: {model}
  api_base: "{url}/v1"
  completion: true
"""
FUNCTION = '''
def get_weather(city: str) -> str:
    """The weather in a city."""
    return "12 degrees and rain in " + city
'''
SHORT = ("-o", "temperature", "0", "-o", "max_tokens", "80")


def main(url: str) -> int:
    checks = Checks("llm 0.36")
    model = served_model(url)
    with TemporaryDirectory() as folder:
        Path(folder, "extra-openai-models.yaml").write_text(MODELS.format(model=model, url=url))
        own = {"LLM_USER_PATH": folder, "OPENAI_API_KEY": "none", "OLLAMA_HOST": url}

        def llm(*arguments: str, text: str | None = None) -> str:
            done = subprocess.run(
                [Path(sys.executable).parent / "llm", *arguments],
                env={**os.environ, **own}, input=text, capture_output=True, text=True, timeout=600,
                check=False,
            )  # fmt: skip
            assert done.returncode == 0, done.stderr
            return done.stdout.strip()

        with checks.check("an answer, streamed"):
            assert llm("-m", "pravaha", *SHORT, "Say hello.")
        with checks.check("an answer at once, with a system prompt and text from a pipe"):
            system = ("-s", "Answer with one word: which fruit is it?")
            assert (
                "apple"
                in llm("-m", "pravaha", "--no-stream", *SHORT, *system, text="A red apple.").lower()
            )
        with checks.check("a conversation goes on"):
            llm("-m", "pravaha", *SHORT, "My name is Anna.")
            assert "Anna" in llm("-c", *SHORT, "What is my name?")
        with checks.check("a schema"):
            found = llm("-m", "pravaha", *SHORT, "--schema", "name, age int", "Anna is 34.")
            assert json.loads(found) == {"name": "Anna", "age": 34}, found
        with checks.check("a tool is called and its result read"):
            found = llm(
                "-m", "pravaha", *SHORT, "--functions", FUNCTION, "What is the weather in Aarhus?"
            )
            assert "12" in found, found
        with checks.check("a completion of text"):
            assert llm("-m", "pravaha-text", "-o", "max_tokens", "8", "Once upon a")
        with checks.check("Ollama: the models, and an answer"):
            assert model in llm("ollama", "models")
            assert llm("-m", f"ollama/{model}", "-o", "num_predict", "40", "Say hello.")
        with checks.check("Ollama: a schema"):
            options = ("-o", "temperature", "0", "-o", "num_predict", "60")
            found = llm(
                "-m", f"ollama/{model}", *options, "--schema", "name, age int", "Anna is 34."
            )
            assert json.loads(found)["name"] == "Anna", found
    return checks.report()


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
