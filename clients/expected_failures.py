"""`EXPECTED_FAILURES`: by script, the checks that fail with the trained model, and why.

It only ever gets shorter.
"""

EXPECTED_FAILURES: dict[str, dict[str, str]] = {
    "claude_code": {
        "it answers": "a model of 1.5B goes on calling tools until its turns are used up",
    },
    "vibe": {"it does the task": "a model of 1.5B writes a call of `add` into its text"},
}


def expected(script: str, model: str) -> frozenset[str]:
    """The checks of a script that are expected to fail; the scripted model passes all."""
    return frozenset() if model == "scripted" else frozenset(EXPECTED_FAILURES.get(script, {}))
