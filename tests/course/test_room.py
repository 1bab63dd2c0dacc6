"""A question to the room: what phones can do, what nobody else can, and how it ends."""

import asyncio
import os
import re
import signal
import socket
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from email.message import Message
from http import HTTPStatus

import pytest

from course.chapters import FOLDER
from course.notes import NOTES
from course.pack.paper import right
from course.questions import CHAPTERS, QUESTIONS
from course.questions.question import Choose
from course.teach.room import room, server
from course.teach.room.room import Room
from widgets.question import rich

OWN = "192.168.1.7:8080"
PHONE = "A" * 22


@pytest.fixture
def site():
    """Of chapter 5; it asks what a ring sends on 64 ranks."""
    return server.Site(Room(CHAPTERS["all_reduce"].QUESTIONS, NOTES["all_reduce"].room), [OWN, "127.0.0.1:8080"])


def ask(site, method, path, form=None, peer="192.168.1.9", **headers):
    message = Message()
    for name, value in ({"Host": OWN, "Cookie": f"phone={PHONE}"} | headers).items():
        if value is not None:
            message[name] = value
    if method == "POST" and "Origin" not in headers:
        message["Origin"] = f"http://{OWN}"
    return site.reply(server.Request(method, path, message, form or {}, peer))


def answered(site, text, phone=PHONE):
    return ask(site, "POST", "/", {"round": str(site.room.round), "answer": text}, Cookie=f"phone={phone}")


def test_answers_become_bars_and_then_what_is_right(site):
    for number, text in enumerate(["3/2", "1.5", "1,50", "63"]):
        answered(site, text, f"{number:022}")
    assert site.room.bars() == [("1.5", 3), ("63", 1)]
    assert "<progress" not in site.room.result()
    site.room.go_on()
    shown, why = site.room.result(), right(site.room.asked)[1].split("`")[0]
    assert '<progress max="3" value="1">' in shown and why not in shown
    site.room.go_on()
    assert why in site.room.result()


def test_a_phone_answers_once_and_can_change_it_until_the_answers_are_shown(site):
    assert answered(site, "1.5").status == answered(site, "2").status == HTTPStatus.SEE_OTHER
    assert site.room.said == {PHONE: "2"}
    site.room.go_on()
    assert "has answered" in answered(site, "3").text and site.room.said == {PHONE: "2"}


@pytest.mark.parametrize(
    ("name", "text", "kept"),
    [
        ("ring_many_ranks", "4,032", "4032"),
        ("ring_many_ranks", "2*(p-1)/p", "1.875"),
        ("long_message", "2.02 ms", "0.00202"),
    ],
)
def test_numbers_are_read_as_in_the_chapter(name, text, kept):
    asked = Room([QUESTIONS[name]])
    assert (asked.answer(PHONE, text), asked.said[PHONE]) == ("", kept)


def test_a_choice_counts_however_it_is_written():
    asked = Room([QUESTIONS["choose_nan"]])
    assert not asked.answer(PHONE, "01") and asked.bars()[1][1] == 1


def test_lines_have_the_numbers_that_the_answer_names_and_blank_ones_are_not_offered():
    question = QUESTIONS["dp_no_handle"]
    choices, lines = Room([question]).choices, question.source.strip("\n").splitlines()
    assert [(int(choice.split()[0]), choice[4:]) for choice in choices] == [
        (number, line) for number, line in enumerate(lines, start=1) if line
    ]
    assert len(choices) < len(lines)


def test_a_number_without_a_unit_is_asked_without_one():
    assert "in :" not in Room([QUESTIONS["groups_rank_5"]]).phone(PHONE)


@pytest.mark.parametrize("name", QUESTIONS)
def test_no_phone_is_told_what_is_right_before_the_wall(name):
    if not room.can_be_asked(QUESTIONS[name]):
        pytest.skip("phones are too small for it")
    asked = Room([QUESTIONS[name]])
    page = asked.phone(PHONE)
    assert rich(right(QUESTIONS[name])[1]) not in page and asked.result()
    assert page.count('name="answer"') == max(len(asked.choices), 1)


def test_every_chapter_has_questions_for_phones_and_begins_with_the_rooms_if_it_can():
    for name, module in CHAPTERS.items():
        first = Room(module.QUESTIONS, NOTES[name].room).asked
        assert first.name == NOTES[name].room or not room.can_be_asked(QUESTIONS[NOTES[name].room])


@pytest.mark.parametrize(
    "origin", [None, "null", "http://evil.example", f"https://{OWN}", f"http://{OWN}.evil.example"]
)
def test_no_other_site_can_post(site, origin):
    reply = ask(site, "POST", "/", {"round": "1", "answer": "1"}, Origin=origin)
    assert reply.status == HTTPStatus.FORBIDDEN and not site.room.said
    reply = ask(site, "POST", f"/{site.secret}/next", peer="127.0.0.1", Origin=origin)
    assert reply.status == HTTPStatus.FORBIDDEN and not site.room.stage


@pytest.mark.parametrize("host", [None, "evil.example", "evil.example:8080", "192.168.1.7"])
def test_it_answers_for_no_other_name(site, host):
    """A site whose name is made to lead to this machine (DNS rebinding) has its own name as Host."""
    for method, path in ("GET", "/"), ("POST", "/"), ("GET", f"/{site.secret}"):
        reply = ask(site, method, path, peer="127.0.0.1", Host=host, Origin=f"http://{host}")
        assert reply.status == HTTPStatus.FORBIDDEN and "<form" not in reply.text


def test_the_wall_is_for_that_machine_and_for_who_knows_the_address(site):
    assert ask(site, "GET", f"/{site.secret}", peer="127.0.0.1").status == HTTPStatus.OK
    for path, peer in (f"/{site.secret}", "192.168.1.9"), ("/wrong", "127.0.0.1"), ("/", "127.0.0.1"):
        assert site.secret not in ask(site, "GET", path, peer=peer).text
    assert ask(site, "POST", f"/{site.secret}/ask", {"name": "drift"}, "127.0.0.1").status == HTTPStatus.NOT_FOUND


def test_what_is_kept_has_a_bound(site, monkeypatch):
    monkeypatch.setattr(room, "MOST_ANSWERS", 3)
    for number in range(5):
        answered(site, str(number), f"{number:022}")
    assert len(site.room.said) == 3 and "3 answers already" in answered(site, "1", "B" * 22).text
    site.room.ask("naive_messages")
    assert not site.room.said


def test_what_is_no_answer_is_said(site):
    assert "Write a number" in answered(site, "nan").text and "Write a number" in answered(site, "<b>").text
    assert "next question" in ask(site, "POST", "/", {"round": "0", "answer": "1"}).text
    assert "cookie" in ask(site, "POST", "/", {"round": "1", "answer": "1"}, Cookie="phone=short").text
    choose = next(name for name, each in site.room.questions.items() if isinstance(each, Choose))
    site.room.ask(choose)
    assert all("Choose one" in answered(site, text).text for text in ("9", "-1", "", "²"))
    assert not site.room.said


@pytest.mark.parametrize(
    "sent",
    [
        b"nonsense\r\n\r\n",
        b"GET / HTTP/1.1\r\n" + b"X: y\r\n" * 200 + b"\r\n",
        b"GET / HTTP/1.1\r\nX: " + b"y" * 2 * server.HEAD,
        b"POST / HTTP/1.1\r\nContent-Length: 201\r\n\r\n",
        b"POST / HTTP/1.1\r\nContent-Length: -1\r\n\r\n",
        b"POST / HTTP/1.1\r\nTransfer-Encoding: chunked\r\n\r\n",
        b"POST / HTTP/1.1\r\nContent-Length: 12\r\n\r\na&b&c&d&e&f&",
        b"POST / HTTP/1.1\r\nContent-Length: 2\r\n\r\n\xff\xfe",
    ],
)
def test_what_is_too_long_or_no_request_is_refused_and_the_next_is_served(site, sent):
    async def both():
        async with _served(site) as port:
            refused = await _said(port, sent)
            return refused, await _said(port, b"GET / HTTP/1.1\r\nHost: 127.0.0.1:8080\r\n\r\n")

    refused, served = _in_a_thread(asyncio.run, both())
    unread = len(sent) > server.HEAD and not refused  # then the system may drop the answer
    assert unread or refused.startswith(b"HTTP/1.1 400")
    assert served.startswith(b"HTTP/1.1 200 OK") and not site.connections.total()


def test_who_sends_slowly_or_opens_many_connections_is_cut_off(site, monkeypatch):
    monkeypatch.setattr(server, "MOST_CONNECTIONS", 2)

    async def all_of_them():
        async with _served(site) as port:
            slow = [await asyncio.open_connection("127.0.0.1", port) for _ in range(2)]
            for _, writer in slow:
                writer.write(b"GET / HTTP/1.1\r\nX: ")
                await writer.drain()
            while site.connections.total() < 2:
                await asyncio.sleep(0)
            one_more = await _said(port, b"GET / HTTP/1.1\r\nHost: 127.0.0.1:8080\r\n\r\n")
            monkeypatch.setattr(server, "SECONDS", 0.1)  # those that are open keep the seconds they began with
            for _, writer in slow:
                writer.close()
            while site.connections.total():
                await asyncio.sleep(0.01)
            reader, writer = await asyncio.open_connection("127.0.0.1", port)
            writer.write(b"GET /")
            return one_more, await _until_its_end(reader)

    assert _in_a_thread(asyncio.run, all_of_them()) == (b"", b"")


def test_phones_that_take_every_connection_leave_the_wall_its_own(site):
    site.connections[False] = server.MOST_CONNECTIONS

    async def wall():
        async with _served(site) as port:
            return await _said(port, f"GET /{site.secret} HTTP/1.1\r\nHost: 127.0.0.1:8080\r\n\r\n".encode())

    assert _in_a_thread(asyncio.run, wall()).startswith(b"HTTP/1.1 200 OK")


def test_it_takes_no_request_before_it_knows_its_addresses(site, monkeypatch):
    start, serving = asyncio.start_server, []

    async def start_and_stop(*arguments, **named):
        started = await start(*arguments, **named)
        serving.append(started.is_serving())
        started.close()
        raise OSError("seen")

    monkeypatch.setattr(asyncio, "start_server", start_and_stop)
    assert _in_a_thread(server.main, site.room, "127.0.0.1", 0) == 1 and serving == [False]


def _in_a_thread(function, *arguments):
    """The browser of the tests has a loop of its own in the main one."""
    with ThreadPoolExecutor(1) as threads:
        return threads.submit(function, *arguments).result()


class _served:
    def __init__(self, site):
        self.site = site

    async def __aenter__(self):
        self.server = await asyncio.start_server(self.site.serve, "127.0.0.1", 0, limit=server.HEAD)
        return self.server.sockets[0].getsockname()[1]

    async def __aexit__(self, *_):
        self.server.close()


async def _said(port, sent: bytes) -> bytes:
    reader, writer = await asyncio.open_connection("127.0.0.1", port)
    writer.write(sent)
    said = await _until_its_end(reader)
    writer.close()
    return said


async def _until_its_end(reader) -> bytes:
    try:
        return await reader.read(-1)
    except ConnectionError:
        return b""


@pytest.fixture
def command(tmp_path):
    """`ringside room 05` in an empty folder: the process, and the addresses of the wall and of the phones."""
    command = [sys.executable, "-m", "course.ringside", "room", "05", "--address", "127.0.0.1", "--port", "0"]
    environ = os.environ | {"PYTHONPATH": str(FOLDER.parent), "HOME": str(tmp_path)}
    process = subprocess.Popen(
        command,
        cwd=tmp_path,
        env=environ,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        preexec_fn=lambda: signal.signal(signal.SIGINT, signal.SIG_DFL),  # a shell's background jobs ignore it
    )
    wall, phones = (process.stdout.readline().split()[-1] for _ in range(2))
    process.stdout.readline()
    yield process, wall, phones
    process.kill()
    process.communicate()


def test_ctrl_c_ends_it_and_nothing_is_kept(command, tmp_path):
    process, _, phones = command
    host, port = phones.strip("/").removeprefix("http://").split(":")
    with socket.create_connection((host, int(port))):  # also while somebody is connected
        process.send_signal(signal.SIGINT)
        out, err = process.communicate(timeout=60)
    assert (process.returncode, out.strip()) == (0, "ended") and "Traceback" not in err
    assert not [*tmp_path.rglob("*")]


def test_a_phone_answers_and_the_wall_shows_it(command, browser):
    _, wall, phones = command
    lecturer, phone = (browser.new_context().new_page() for _ in range(2))
    lecturer.goto(wall)
    phone.goto(phones)
    phone.fill("input[name=answer]", "126")
    phone.click("button")
    phone.wait_for_selector("text=Your answer is in")
    lecturer.wait_for_selector("#result >> text=1 answer")
    lecturer.click("#next")
    assert lecturer.wait_for_selector("progress").get_attribute("value") == "1"
    phone.wait_for_selector("text=look at the wall")
    lecturer.click("#next")
    assert lecturer.wait_for_selector(".right")
    lecturer.click("aside button:not([aria-current]) >> nth=0")
    lecturer.wait_for_selector("#result >> text=0 answers")
    phone.wait_for_selector("button")
    lecturer.context.close()
    phone.context.close()


def test_the_qr_code_is_the_short_address(site):
    segno = pytest.importorskip("segno")
    drawn = re.findall(r'\bd="([^"]+)"', segno.make(f"http://{OWN}/").svg_inline(border=2))
    assert drawn and drawn[0] in room.qr(f"http://{OWN}/")


def test_without_segno_the_wall_says_what_to_install(site, monkeypatch):
    monkeypatch.setattr(room, "find_spec", lambda name: None)
    assert "ringside[room]" in site.room.wall(site.secret, OWN) and OWN in site.room.wall(site.secret, OWN)


@pytest.mark.parametrize("address", ["0.0.0.0", "here", "::1"])
def test_an_address_that_is_none_is_said(address, site, capsys):
    assert server.main(site.room, address, 8080) == 1 and "--address" in capsys.readouterr().err


def test_an_address_on_the_internet_is_not_taken_by_itself(site, monkeypatch, capsys):
    monkeypatch.setattr(server, "address_here", lambda: "8.8.8.8")
    assert server.main(site.room, None, 8080) == 1 and "from outside" in capsys.readouterr().err


def test_a_port_that_is_taken_is_said(site, capsys):
    with socket.create_server(("127.0.0.1", 0)) as taken:
        assert _in_a_thread(server.main, site.room, "127.0.0.1", taken.getsockname()[1]) == 1
    assert "--port" in capsys.readouterr().err
