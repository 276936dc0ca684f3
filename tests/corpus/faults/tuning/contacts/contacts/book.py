"""The address book: search and duplicates."""

from contacts.numbers import normalized
from contacts.person import Person


class AddressBook:
    def __init__(self, people: list[Person] | None = None) -> None:
        self.people = list(people or [])

    def by_phone(self, phone: str) -> Person | None:
        wanted = normalized(phone)
        for person in self.people:
            if normalized(person.phone) == wanted:
                return person
        return None

    def duplicates(self) -> list[tuple[Person, Person]]:
        """Pairs with the same number or the same address for mail."""
        found = []
        for at, one in enumerate(self.people):
            for other in self.people[at + 1 :]:
                same_phone = one.phone is not None and normalized(one.phone) == normalized(other.phone)
                same_mail = one.email is not None and one.email == other.email
                if same_phone or same_mail:
                    found.append((one, other))
        return found

    def initials(self) -> dict[str, int]:
        counts: dict[str, int] = {}
        for person in self.people:
            letter = person.name[0].upper()
            counts[letter] = counts.get(letter, 0) + 1
        return counts
