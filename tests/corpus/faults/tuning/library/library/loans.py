"""Who has borrowed what, and until when."""

from dataclasses import dataclass
from datetime import date, timedelta

from library.books import Catalogue

LOAN_DAYS = 28
FEE_PER_DAY = 20
MAX_FEE = 1000


@dataclass
class Loan:
    isbn: str
    member: str
    due: date
    renewed: int = 0


class Desk:
    def __init__(self, catalogue: Catalogue) -> None:
        self.catalogue = catalogue
        self.loans: list[Loan] = []

    def lend(self, isbn: str, member: str, today: date) -> Loan:
        book = self.catalogue.books[isbn]
        if book.available <= 0:
            raise LookupError(f"{book.title} is lent out")
        book.lent += 1
        loan = Loan(isbn, member, today + timedelta(days=LOAN_DAYS))
        self.loans.append(loan)
        return loan

    def renew(self, loan: Loan, today: date) -> None:
        if loan.renewed >= 2:
            raise ValueError("a loan is renewed twice at most")
        loan.renewed += 1
        loan.due = max(loan.due, today + timedelta(days=LOAN_DAYS))

    def give_back(self, loan: Loan, today: date) -> int:
        """Take a book back; the fee in cents."""
        self.loans.remove(loan)
        self.catalogue.books[loan.isbn].lent -= 1
        late = (today - loan.due).days
        if late <= 0:
            return 0
        return min(late * FEE_PER_DAY, MAX_FEE)

    def overdue(self, today: date) -> list[Loan]:
        """The loans whose last day has passed, the oldest first. On the last day itself a loan is fine."""
        late = [loan for loan in self.loans if loan.due < today]
        return sorted(late, key=lambda loan: loan.due)

    def reminders(self, today: date) -> dict[str, list[str]]:
        """Titles to remind of, by member."""
        found: dict[str, list[str]] = {}
        for loan in self.overdue(today):
            title = self.catalogue.books[loan.isbn].title
            found.setdefault(loan.member, []).append(title)
        return found
