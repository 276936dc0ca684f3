"""Valid modern syntax."""

import asyncio


def kind(value: object) -> str:
    match value:
        case {"kind": str(name), **rest}:
            return f"{name} {len(rest)}"
        case [first, *_]:
            return f"list of {first!r}"
        case _:
            return "unknown"


async def main() -> None:
    async with asyncio.TaskGroup() as group:
        group.create_task(asyncio.sleep(0))
