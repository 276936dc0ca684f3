"""The booking interface, with aiohttp."""

from dataclasses import dataclass, fields

from aiohttp import web

routes = web.RouteTableDef()
PAGE = 50


@dataclass
class Booking:
    room: int
    guests: int
    paid: bool = False


def user_of(request: web.Request) -> str:
    user = request.get("user")
    if user is None:
        raise web.HTTPUnauthorized
    return user


@routes.get("/rooms")
async def rooms(request: web.Request) -> web.Response:
    page = max(0, min(int(request.query.get("page", "0")), 1000))
    return web.json_response(list(range(page * PAGE, (page + 1) * PAGE)))


@routes.get("/calendar")
async def calendar(request: web.Request) -> web.Response:
    days = int(request.query.get("days", 30))
    return web.json_response([{"day": day} for day in range(days)])


@routes.post("/bookings")
async def book(request: web.Request) -> web.Response:
    user = user_of(request)
    booking = Booking(**await request.json())
    return web.json_response({"user": user, "room": booking.room})


@routes.patch("/bookings/{number}")
async def change(request: web.Request) -> web.Response:
    user_of(request)
    body = await request.json()
    names = {field.name for field in fields(Booking)} - {"paid"}
    return web.json_response({name: body[name] for name in names & body.keys()})


@routes.delete("/bookings/{number}")
async def cancel(request: web.Request) -> web.Response:
    return web.json_response({"cancelled": request.match_info["number"]})


def make() -> web.Application:
    app = web.Application(client_max_size=64_000)
    app.add_routes(routes)
    return app
