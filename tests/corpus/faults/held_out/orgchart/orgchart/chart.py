"""Questions about the whole tree."""

from orgchart.staff import Employee, Staff


def chain(staff: Staff, name: str) -> list[str]:
    """The leaders above somebody, the nearest first; empty for the head."""
    found = []
    leader = staff.leader_of(name)
    while leader is not None:
        found.append(leader.name)
        leader = staff.leader_of(leader.name)
    return found


def level(staff: Staff, name: str) -> int:
    """0 for the head."""
    return len(chain(staff, name))


def common_leader(staff: Staff, one: str, other: str) -> str | None:
    """The nearest person who leads both, or None if nobody does."""
    above = chain(staff, one)
    for name in chain(staff, other):
        if name in above:
            return name
    return None


def cost(staff: Staff, name: str) -> int:
    """Salaries of somebody and everybody below."""
    own = staff.get(name).salary
    return own + sum(cost(staff, member.name) for member in staff.team_of(name))


def earns_more_than_leader(staff: Staff) -> list[str]:
    found = []
    for name in staff.names():
        person: Employee = staff.get(name)
        leader = staff.leader_of(name)
        if leader is not None and person.salary > leader.salary:
            found.append(name)
    return found
