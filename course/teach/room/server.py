"""The HTTP server of a room: `ringside room CHAPTER` on the lecturer's machine, until Ctrl-C.

Everybody in the network can reach it, so it is small: it knows five addresses, takes requests of at most 8,392 bytes,
waits seconds for each, and holds a bounded number of them. It answers only for its own names (Host) and takes an answer
only from its own page (Origin): no other web site can ask or post through a browser in the room. The lecturer's page
has a secret address, and only that machine is served it. Nothing is written to a disk or sent elsewhere.

Left out: encryption. Anyone on the same network can read the answers; no names are sent with them.
"""

import asyncio
import ipaddress
import re
import secrets
import socket
import sys
from collections import Counter
from dataclasses import dataclass, field
from http import HTTPStatus
from http.client import HTTPException, HTTPMessage, parse_headers
from io import BytesIO
from urllib.parse import parse_qs

from course.teach.room.room import Room

MOST_CONNECTIONS = 200  # from other machines, and as many from this one, which shows the wall
HEAD, BODY = 8192, 200  # bytes of a request
SECONDS = 5.0  # for a request and its answer

PHONE = re.compile(r"(?:^|; ?)phone=([\w-]{22})(?:;|$)")


@dataclass
class Request:
    method: str
    path: str
    headers: HTTPMessage
    form: dict[str, str]
    peer: str


@dataclass
class Reply:
    status: HTTPStatus
    text: str = ""
    headers: dict[str, str] = field(default_factory=dict)

    def __bytes__(self) -> bytes:
        nonce = secrets.token_urlsafe(16)
        body = self.text.replace('nonce="NONCE"', f'nonce="{nonce}"').encode()
        policy = f"default-src 'none'; style-src 'unsafe-inline'; script-src 'nonce-{nonce}'; connect-src 'self'; "
        headers = {
            "Content-Type": "text/html; charset=utf-8",
            "Content-Length": str(len(body)),
            "Content-Security-Policy": policy + "form-action 'self'; frame-ancestors 'none'; base-uri 'none'",
            "Cache-Control": "no-store",
            "Referrer-Policy": "same-origin",  # with no-referrer a browser posts without its Origin
            "X-Content-Type-Options": "nosniff",
            "Connection": "close",
        } | self.headers
        lines = [f"HTTP/1.1 {self.status.value} {self.status.phrase}", *(f"{key}: {headers[key]}" for key in headers)]
        return "\r\n".join([*lines, "", ""]).encode() + body


class Site:
    """The room under its addresses (`own`: host and port as a browser says them)."""

    def __init__(self, room: Room, own: list[str]):
        self.room, self.own, self.secret = room, own, secrets.token_urlsafe(16)
        self.connections: Counter[bool] = Counter()  # from this machine or not

    def reply(self, request: Request) -> Reply:
        """What a request gets."""
        hosts = request.headers.get_all("Host", [])
        if len(hosts) != 1 or hosts[0] not in self.own:
            return Reply(HTTPStatus.FORBIDDEN, f"This is http://{self.own[0]}/")
        if request.method == "POST" and request.headers.get_all("Origin", []) != [f"http://{hosts[0]}"]:
            return Reply(HTTPStatus.FORBIDDEN, "Answer on the page itself.")
        match request.method, *request.path.split("/")[1:]:
            case "GET", "":
                return self._phone(request)
            case "GET", "now":
                return Reply(HTTPStatus.OK, f"{self.room.round} {self.room.stage}")
            case "POST", "":
                return self._answer(request)
            case method, secret, *rest if self._is_lecturer(secret, request.peer):
                return self._lecturer(method, rest, request.form)
        return Reply(HTTPStatus.NOT_FOUND, "There is nothing here.")

    def _phone(self, request: Request, why: str = "") -> Reply:
        known = PHONE.search(request.headers.get("Cookie", ""))
        phone = known[1] if known else secrets.token_urlsafe(16)
        cookie = {} if known else {"Set-Cookie": f"phone={phone}; HttpOnly; SameSite=Strict; Path=/"}
        return Reply(HTTPStatus.OK, self.room.phone(phone, why), cookie)

    def _answer(self, request: Request) -> Reply:
        known = PHONE.search(request.headers.get("Cookie", ""))
        if known is None:
            return self._phone(request, "Allow this page its cookie, which tells phones apart, and answer again.")
        if request.form.get("round") != str(self.room.round):
            return self._phone(request, "This is the next question.")
        if why := self.room.answer(known[1], request.form.get("answer", "")):
            return self._phone(request, why)
        return Reply(HTTPStatus.SEE_OTHER, headers={"Location": "/"})

    def _is_lecturer(self, secret: str, peer: str) -> bool:
        return secrets.compare_digest(secret.encode(), self.secret.encode()) and ipaddress.ip_address(peer).is_loopback

    def _lecturer(self, method: str, rest: list[str], form: dict[str, str]) -> Reply:
        match method, *rest:
            case ("GET",):
                return Reply(HTTPStatus.OK, self.room.wall(self.secret, self.own[0]))
            case "GET", "result":
                return Reply(HTTPStatus.OK, self.room.result())
            case "POST", "next":
                self.room.go_on()
            case "POST", "ask" if form.get("name") in self.room.questions:
                self.room.ask(form["name"])
            case _:
                return Reply(HTTPStatus.NOT_FOUND, "There is nothing here.")
        return Reply(HTTPStatus.SEE_OTHER, headers={"Location": f"/{self.secret}"})

    async def serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        """One connection, one request."""
        peer = writer.get_extra_info("peername")[0]
        here = ipaddress.ip_address(peer).is_loopback
        if self.connections[here] >= MOST_CONNECTIONS:
            writer.transport.abort()
            return
        self.connections[here] += 1
        try:
            writer.transport.set_write_buffer_limits(0)  # so that drain waits until all is sent
            async with asyncio.timeout(SECONDS):
                try:
                    reply = self.reply(await read(reader, peer))
                except (ValueError, HTTPException, asyncio.LimitOverrunError):
                    reply = Reply(HTTPStatus.BAD_REQUEST, "This is no request of the page.")
                writer.write(bytes(reply))
                await writer.drain()
            writer.close()
        except (OSError, EOFError, asyncio.CancelledError):  # too slow, or gone, or the room ends
            writer.transport.abort()
        finally:
            self.connections[here] -= 1


async def read(reader: asyncio.StreamReader, peer: str) -> Request:
    """The request that comes; ValueError, HTTPException or LimitOverrunError (more than HEAD bytes) if it is none."""
    line, _, rest = (await reader.readuntil(b"\r\n\r\n")).partition(b"\r\n")
    method, path, _ = line.decode("ascii").split(" ")
    headers = parse_headers(BytesIO(rest))
    length = headers.get("Content-Length", "0")
    if "Transfer-Encoding" in headers or not re.fullmatch(r"\d{1,9}", length) or int(length) > BODY:
        raise ValueError(f"more than {BODY} bytes")
    form = parse_qs((await reader.readexactly(int(length))).decode(), max_num_fields=5)
    return Request(method, path, headers, {name: values[0] for name, values in form.items()}, peer)


def address_here() -> str:
    """This machine's address in the room's network, "" without one. Nothing is sent to find it."""
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as any_socket:
        try:
            any_socket.connect(("192.0.2.1", 9))
        except OSError:
            return ""
        return any_socket.getsockname()[0]


async def run(room: Room, address: str, port: int) -> None:
    """Serve the room until it is cancelled. OSError if that address and port cannot be had."""
    hosts = list(dict.fromkeys([address, "127.0.0.1"]))
    site = Site(room, [])
    servers = []
    for host in hosts:
        servers.append(await asyncio.start_server(site.serve, host, port, limit=HEAD, start_serving=False))
        port = servers[0].sockets[0].getsockname()[1]  # of port 0: the same for both
    site.own += [f"{host}:{port}".removesuffix(":80") for host in [*hosts, "localhost"]]
    for each in servers:
        await each.start_serving()
    print(f"on the wall:  http://{site.own[-2]}/{site.secret}")
    print(f"for phones:   http://{site.own[0]}/")
    print("Ctrl-C ends it; nothing is kept.", flush=True)
    try:
        await asyncio.Event().wait()
    finally:
        for each in servers:
            each.close()


def main(room: Room, address: str | None, port: int) -> int:
    """Serve it at `address`, or at this machine's own if that is not on the internet."""
    own = address or address_here() or "127.0.0.1"
    try:
        found = ipaddress.IPv4Address(own)
    except ValueError:
        print(f"{own} is no address such as 192.168.1.7: name this machine's with --address", file=sys.stderr)
        return 1
    if found.is_unspecified or not (address or found.is_private):
        print(f"{own} may be reached from outside: name an address of this room with --address", file=sys.stderr)
        return 1
    if found.is_loopback:
        print("no network is found: phones cannot reach this machine", file=sys.stderr)
    try:
        asyncio.run(run(room, own, port))
    except KeyboardInterrupt:
        print("\nended")
    except (OSError, OverflowError) as error:
        print(f"{own}:{port} cannot be had ({error}): name another --port or --address", file=sys.stderr)
        return 1
    return 0
