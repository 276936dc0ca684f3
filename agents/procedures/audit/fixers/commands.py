"""Fixers of commands: a list of arguments in the place of a text that a shell reads (CWE-78)."""

import ast
import re

from agents.procedures.audit.fixers.edits import Edit, Fix, Target
from agents.procedures.audit.fixers.text_template import assigned, template_of

_REASON = "Without a shell, arguments cannot become commands."
_SHELL_MARKS = frozenset("|&;<>$`*?\"'\\\n(){}~#[]!")


def fix_shell(target: Target) -> Fix | None:
    """`shell=True` becomes a list of arguments, where the words of the command are known."""
    for call in target.calls():
        if not target.module.call_name(call).startswith("subprocess."):
            continue
        shell = next((k for k in call.keywords if k.arg == "shell"), None)
        on = shell is not None and isinstance(shell.value, ast.Constant) and shell.value.value
        if shell is None or not on or not call.args:
            continue
        edits: list[Edit] = [target.replace(shell.value, "False")]
        if isinstance(call.args[0], ast.List | ast.Tuple):
            return target.fix(_REASON, *edits)
        place, words = _command(target, call)
        if place is None or words is None:
            return None
        return target.fix(_REASON, *edits, target.replace(place, f"[{', '.join(words)}]"))
    return None


def fix_os_system(target: Target) -> Fix | None:
    """`os.system(text)` becomes `subprocess.run([...], check=False).returncode`."""
    for call in target.calls():
        if target.module.call_name(call) != "os.system" or len(call.args) != 1:
            continue
        place, words = _command(target, call)
        if place is not call.args[0] or words is None:
            return None
        text = f"subprocess.run([{', '.join(words)}], check=False).returncode"
        return target.fix(_REASON, target.replace(call, text), imports=["subprocess"])
    return None


def _command(target: Target, call: ast.Call) -> tuple[ast.expr | None, list[str] | None]:
    """The expression of the command's text, and its words as source; None if a shell is needed."""
    command = call.args[0]
    if isinstance(command, ast.Name):
        value = assigned(target, call, command.id)
        function = target.module.function_of(call)
        uses = [
            node
            for node in ast.walk(function or target.module.tree)
            if isinstance(node, ast.Name) and node.id == command.id
        ]
        if value is None or len(uses) != 2:
            return None, None  # something else reads the text, too
        command = value
    return command, _words(target, command)


def _words(target: Target, command: ast.expr) -> list[str] | None:
    """The words of a command as source, or None if a shell is needed to find them."""
    if isinstance(command, ast.Constant) and isinstance(command.value, str):
        text = command.value
        values: list[str] = []
    else:
        found = template_of(target, command)
        if found is None:
            return None
        text, values = found
    text = re.sub(r"'\0'|\"\0\"", "\0", text)
    if set(text) & _SHELL_MARKS or text.strip().startswith("\0") or not text.strip():
        return None
    if re.search(r"(^|\s)\w+=", text.split(" ")[0]):
        return None  # a variable for the program
    words, used = [], 0
    for word in text.split():
        count = word.count("\0")
        given = values[used : used + count]
        used += count
        words.append(_word(word, given))
    return words


def _word(word: str, values: list[str]) -> str:
    """One word as source."""
    if not values:
        return f'"{word}"'
    if word == "\0":
        plain = re.fullmatch(r"[\w.]+|[\w.]+\[[\w'\"]+\]", values[0])
        return values[0] if plain else f"str({values[0]})"
    for value in values:
        word = word.replace("\0", "{" + value.replace('"', "'") + "}", 1)
    return f'f"{word}"'
