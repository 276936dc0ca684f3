"""Tables."""

from sqlalchemy.orm import DeclarativeBase, Mapped, mapped_column


class Base(DeclarativeBase):
    """Base of the tables."""


class Appointment(Base):
    """One appointment."""

    __tablename__ = "appointments"

    id: Mapped[int] = mapped_column(primary_key=True)
    patient: Mapped[str]
    doctor: Mapped[str]
    room: Mapped[str]
