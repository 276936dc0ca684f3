"""`shell_words`: the program and arguments that a command line stands for.

A simple command is executed as its words, without a shell. Anything that a shell would interpret (operators,
substitutions, patterns, assignments, built-ins) is one `sh -c` command, so no approval of a simple command,
such as `pytest *`, can match a longer one, such as `pytest x; rm -rf /`.
"""

import shlex

from agents.api.errors import InvalidTask

SHELL = ("sh", "-c")
_SPECIAL = frozenset("|&;<>()$`\\*?[]{}\n\r")
_SPECIAL_IN_QUOTES = frozenset("$`\\")
_SPECIAL_FIRST = frozenset("~#")
"""Special at the beginning of a word only."""
_INTERPRETED = frozenset(
    [
        "!", ".", ":", "alias", "bg", "bind", "break", "builtin", "case", "cd", "command", "continue",
        "declare", "do", "done", "elif", "else", "esac", "eval", "exec", "exit", "export", "fg", "fi", "for",
        "function", "getopts", "hash", "if", "in", "jobs", "let", "local", "popd", "pushd", "read",
        "readonly", "return", "select", "set", "shift", "shopt", "source", "then", "time", "times", "trap",
        "type", "typeset", "ulimit", "umask", "unalias", "unset", "until", "wait", "while",
    ]
)  # fmt: skip
"""Built-ins and reserved words that are no programs."""


def shell_words(command: str) -> tuple[str, ...]:
    """The words that are executed.

    Raises:
        InvalidTask: a quote is not closed, or the text is empty or has a null character.
    """
    if "\0" in command or not command.strip():
        raise InvalidTask("The command is empty or has a null character.")
    try:
        words = shlex.split(command)
    except ValueError as error:
        raise InvalidTask(f"The command cannot be parsed: {error}.") from error
    if not words:
        raise InvalidTask("The command is empty.")
    if _has_syntax(command) or words[0] in _INTERPRETED or "=" in words[0] or not words[0]:
        return (*SHELL, command)
    return tuple(words)


def _has_syntax(command: str) -> bool:
    """Whether a shell would do more with a text than to split it into words and remove quotes."""
    quote = ""
    begins = True
    for character in command:
        if quote:
            if character == quote:
                quote = ""
            elif quote == '"' and character in _SPECIAL_IN_QUOTES:
                return True
            begins = False
        elif character in "'\"":
            quote = character
            begins = False
        elif character in _SPECIAL or (begins and character in _SPECIAL_FIRST):
            return True
        else:
            begins = character in " \t"
    return False
