"""Employees and who leads them."""

from dataclasses import dataclass


@dataclass(frozen=True)
class Employee:
    name: str
    leader: str | None
    salary: int


class Staff:
    def __init__(self, employees: list[Employee]) -> None:
        self._by_name = {one.name: one for one in employees}

    def get(self, name: str) -> Employee:
        return self._by_name[name]

    def leader_of(self, name: str) -> Employee | None:
        leader = self.get(name).leader
        return None if leader is None else self.get(leader)

    def team_of(self, name: str) -> list[Employee]:
        return [one for one in self._by_name.values() if one.leader == name]

    def names(self) -> list[str]:
        return sorted(self._by_name)
