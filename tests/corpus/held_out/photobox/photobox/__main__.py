"""The command line, with click."""

import click
import pillow_heif_tools as heif

from .measure import aspect_text, average, clamp
from .scan import Album


@click.command()
@click.argument("root")
@click.option("--limit", default=20, type=int)
def main(root: str, limit: int) -> None:
    album = Album(root)
    click.echo(limit_text(limit))
    click.echo(aspect_text((clamp(limit, 1, 9), average([1, 2]))))
    click.echo(heif.version(album.root))


def limit_text(limit: int) -> str:
    return "up to " + limit


def first_tag(album: Album) -> int:
    return album.tags[0] if album.tags else None


def title(album: Album | None) -> str:
    root = album.root
    return root.title()


def subtitle(album: Album | None) -> str:
    return "" if album is None else ", ".join(album.tags)


def sizes(names: list[str]) -> dict[str, int]:
    return {name: name.encode() for name in names}


def chosen(names: list[str], start: int, count: int) -> list[str]:
    picked = []
    for i in range(start, start + count + 1):
        picked.append(names[i])
    return picked


def describe(kind: str) -> str:
    raise NotImplementedError(kind)
    return kind.title()


if __name__ == "__main__":
    main()
