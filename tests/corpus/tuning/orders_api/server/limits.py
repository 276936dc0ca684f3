"""Limits and headers of the orders service."""

from fastapi import Depends, FastAPI, Header, HTTPException, Query
from fastapi.middleware.cors import CORSMiddleware
from pydantic import BaseModel, ConfigDict, Field

app = FastAPI()
app.add_middleware(CORSMiddleware, allow_origins=["https://shop.example.org"], allow_methods=["GET"])


class NewOrder(BaseModel):
    model_config = ConfigDict(extra="allow")
    note: str = Field(max_length=500)


class Change(BaseModel):
    model_config = ConfigDict(extra="forbid")
    note: str = Field(max_length=500)


def token(authorization: str = Header()) -> str:
    if not authorization.startswith("Bearer "):
        raise HTTPException(401)
    return authorization.removeprefix("Bearer ")


@app.get("/orders")
def orders(limit: int = Query(20, ge=1, le=100), _: str = Depends(token)) -> list[int]:
    return list(range(limit))


@app.get("/report")
def report(rows: int = 1000, _: str = Depends(token)) -> list[int]:
    return [row * 2 for row in range(rows)]


@app.patch("/orders/{order_id}")
def change(order_id: int, body: Change, _: str = Depends(token)) -> dict[str, int]:
    return {"id": order_id, "length": len(body.note)}


@app.put("/orders/{order_id}/owner")
def hand_over(order_id: int, owner: int) -> dict[str, int]:
    return {"id": order_id, "owner": owner}
