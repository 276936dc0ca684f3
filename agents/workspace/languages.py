"""The language of a file, by its name."""

from collections.abc import Mapping

_BY_SUFFIX: Mapping[str, str] = {
    ".py": "python", ".pyi": "python",
    ".js": "javascript", ".mjs": "javascript", ".cjs": "javascript", ".jsx": "javascript",
    ".ts": "typescript", ".mts": "typescript", ".cts": "typescript", ".tsx": "tsx",
    ".go": "go", ".rs": "rust", ".java": "java", ".c": "c", ".h": "c",
    ".html": "html", ".htm": "html", ".css": "css", ".tcss": "tcss",
    ".sh": "bash", ".bash": "bash",
    ".json": "json", ".yaml": "yaml", ".yml": "yaml", ".toml": "toml",
    ".md": "markdown", ".rst": "rst", ".txt": "text", ".csv": "csv",
    ".ini": "ini", ".cfg": "ini", ".env": "dotenv", ".xml": "xml", ".sql": "sql",
    ".service": "systemd", ".socket": "systemd", ".timer": "systemd",
    ".tf": "terraform", ".properties": "properties", ".ipynb": "notebook",
    ".rb": "ruby", ".php": "php", ".kt": "kotlin", ".cs": "csharp",
}  # fmt: skip
_BY_NAME: Mapping[str, str] = {
    "Dockerfile": "dockerfile",
    "Containerfile": "dockerfile",
    "Makefile": "make",
    "go.mod": "gomod",
    "Cargo.lock": "toml",
    "Pipfile": "toml",
    "poetry.lock": "toml",
    "package-lock.json": "json",
    ".bashrc": "bash",
    ".env": "dotenv",
}


def language_of(path: str, first_line: str = "") -> str | None:
    """The language's name, or None if it is unknown.

    Args:
        path: path with `/`.
        first_line: its first line, whose `#!` tells the language of scripts without a suffix.
    """
    name = path.rsplit("/", 1)[-1]
    if name in _BY_NAME:
        return _BY_NAME[name]
    if name.startswith(("Dockerfile.", "Containerfile.")) or name.endswith(".dockerfile"):
        return "dockerfile"
    if name.startswith(".env."):
        return "dotenv"
    dot = name.rfind(".")
    if dot >= 0 and name[dot:].lower() in _BY_SUFFIX:
        return _BY_SUFFIX[name[dot:].lower()]
    if first_line.startswith("#!"):
        for word, language in (("python", "python"), ("node", "javascript"), ("sh", "bash")):
            if word in first_line:
                return language
    return None
