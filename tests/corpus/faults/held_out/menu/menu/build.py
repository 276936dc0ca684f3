"""Menus made of a document's abilities."""

from functools import partial

from menu.commands import Command, Document

ZOOMS = (50, 100, 200)


def zoom_commands(document: Document) -> list[Command]:
    """One command for each size, with the keys 1, 2, 3 …"""
    commands = []
    for number, percent in enumerate(ZOOMS, 1):
        commands.append(Command(str(number), f"Zoom {percent} %", partial(document.set_zoom, percent)))
    return commands


def mark_commands(document: Document, pages: list[int]) -> list[Command]:
    return [
        Command(f"m{page}", f"Mark page {page}", partial(document.toggle_mark, page))
        for page in pages
    ]


def press(commands: list[Command], key: str) -> str:
    """Run the command with a key; a sentence if there is none."""
    for command in commands:
        if command.key == key:
            return command.run()
    return f"no command has the key {key}"


def help_text(commands: list[Command]) -> str:
    width = max((len(command.key) for command in commands), default=0)
    return "\n".join(f"{command.key:<{width}}  {command.title}" for command in commands)
