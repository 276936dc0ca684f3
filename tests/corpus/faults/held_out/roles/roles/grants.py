"""Which roles users have."""

RIGHTS = {
    "reader": {"read"},
    "writer": {"read", "write"},
    "admin": {"read", "write", "delete", "invite"},
}


class Grants:
    def __init__(self) -> None:
        self._roles: dict[str, set[str]] = {}

    def roles_of(self, user: str) -> set[str]:
        return self._roles.get(user, set())

    def grant(self, user: str, role: str) -> None:
        if role not in RIGHTS:
            raise KeyError(role)
        self._roles.setdefault(user, set()).add(role)

    def revoke(self, user: str, role: str) -> None:
        self._roles.get(user, set()).discard(role)

    def users(self) -> list[str]:
        return sorted(user for user, roles in self._roles.items() if roles)
