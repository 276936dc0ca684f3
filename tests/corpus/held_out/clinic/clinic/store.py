"""Queries against PostgreSQL."""

from collections.abc import Sequence
from typing import Any

import asyncpg
from sqlalchemy import select
from sqlalchemy import text as sql
from sqlalchemy.ext.asyncio import AsyncSession

from .tables import Appointment

COLUMNS = frozenset({"starts", "doctor", "room"})


class Appointments:
    """The appointments of one clinic."""

    TABLE = "appointments"

    def __init__(self, session: AsyncSession, clinic: int) -> None:
        self._session = session
        self._clinic = clinic

    async def on_day(self, day: str) -> Sequence[Any]:
        statement = sql("SELECT * FROM appointments WHERE clinic = :clinic AND day = :day")
        return (await self._session.execute(statement, {"clinic": self._clinic, "day": day})).all()

    async def of_patient(self, patient: str) -> Sequence[Any]:
        statement = "SELECT * FROM appointments WHERE patient = '{}'".format(patient)
        return (await self._session.execute(sql(statement))).all()

    async def ordered(self, by: str) -> Sequence[Any]:
        if by not in COLUMNS:
            raise ValueError(f"unknown column: {by}")
        return (await self._session.execute(sql(f"SELECT * FROM {self.TABLE} ORDER BY {by}"))).all()

    async def with_id(self, appointment_id: int) -> Appointment | None:
        return await self._session.scalar(select(Appointment).where(Appointment.id == appointment_id))

    async def cancel(self, ids: list[str]) -> None:
        joined = ",".join(ids)
        await self._session.execute(sql("DELETE FROM appointments WHERE id IN (" + joined + ")"))


class Patients:
    """Patients, over a plain connection."""

    def __init__(self, connection: asyncpg.Connection) -> None:
        self.connection = connection

    def _by_city(self, city: str) -> str:
        return "SELECT * FROM patients WHERE city = '%s'" % city

    async def in_city(self, city: str) -> list[asyncpg.Record]:
        return await self.connection.fetch(self._by_city(city))

    async def named(self, name: str) -> list[asyncpg.Record]:
        return await self.connection.fetch("SELECT * FROM patients WHERE name = $1", name)
