"""Minutes of meetings: who said what."""

from dataclasses import dataclass


@dataclass(frozen=True)
class Remark:
    speaker: str
    text: str

    @property
    def words(self) -> int:
        return len(self.text.split())


def parse(text: str) -> list[Remark]:
    """Remarks from lines `Ann: words`; a line without a name goes on with the remark before it."""
    remarks: list[Remark] = []
    for line in text.splitlines():
        if not line.strip():
            continue
        name, sign, rest = line.partition(": ")
        if sign and name.isalpha():
            remarks.append(Remark(name, rest.strip()))
        elif remarks:
            before = remarks.pop()
            remarks.append(Remark(before.speaker, f"{before.text} {line.strip()}"))
    return remarks
