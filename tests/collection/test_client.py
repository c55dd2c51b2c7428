"""The client: draws once, stores first, sends the same bytes again, and remembers what it sent."""

from __future__ import annotations

import contextlib
import http.server
import json
import socket
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import ClassVar

import pytest

from shuffledp.collection.batch import Outer, Verdict, open_outer, split_inners
from shuffledp.collection.client import (
    Client,
    Device,
    DeviceState,
    Link,
    TaskClosed,
    answer_code,
    fetch_task,
    level_named,
)
from shuffledp.collection.sealing import Opener
from shuffledp.collection.task import PostedTask
from shuffledp.errors import InvalidInput
from tests.collection.tasks import ANALYZER, SHUFFLER, bits, choice, number, posted, posted_second, several

TASK = posted()
OPEN = posted(choice(5, 700), admission="open")
CODE, OTHER = bytes(range(16)), bytes(16)


def opened(sealed: bytes, task: PostedTask = TASK) -> Outer:
    found = open_outer(task, sealed, Opener(SHUFFLER))
    assert isinstance(found, Outer)
    return found


def test_a_report_opens_at_shuffler_and_analyzer():
    outer = opened(Client(TASK).seal([3], 1, CODE))
    assert (outer.level, outer.code) == (1, CODE)
    report = Opener(ANALYZER).open(split_inners(TASK, outer.inners)[0][0], TASK.inner_info(0))
    assert report is not None
    assert report[0] < 5


def test_a_client_draws_once():
    client = Client(TASK)
    client.seal([3], 1, CODE)
    with pytest.raises(InvalidInput, match="drawn once"):
        client.seal([3], 1, CODE)


def test_a_client_refuses_a_task_whose_promise_is_not_kept():
    with pytest.raises(InvalidInput, match="promises"):
        Client(posted(choice(5, 100)))


@pytest.mark.parametrize(("answers", "level", "code"), [([5], 0, CODE), ([-1], 0, CODE), ([0], 3, CODE), ([0], -1, CODE), ([], 0, CODE), ([0, 0], 0, CODE), ([0], 0, None), ([0], 0, b"short")])  # fmt: skip  # noqa: E501
def test_what_cannot_be_answered_is_refused(answers, level, code):
    with pytest.raises(InvalidInput):
        Client(TASK).seal(answers, level, code)


def test_open_admission_takes_no_code():
    with pytest.raises(InvalidInput, match="no one-time code"):
        Client(OPEN).seal([0], 0, CODE)
    assert opened(Client(OPEN).seal([0], 0), OPEN).code is None


def test_answers_in_words():
    asked = posted(choice(), number(0, 10, 0.5)).draft.questions
    assert answer_code(asked[0], " Choice  3 ") == 2
    assert answer_code(asked[1], "2.5") == 5
    for question, answer in ((asked[0], "6"), (asked[1], "2.6"), (asked[1], "11"), (asked[1], "nan"), (asked[1], "x"), (asked[1], "1e999")):  # fmt: skip  # noqa: E501
        with pytest.raises(InvalidInput):
            answer_code(question, answer)
    assert level_named(TASK, "MIDDLE") == 1
    with pytest.raises(InvalidInput, match="careful"):
        level_named(TASK, "none")


class Stub(http.server.BaseHTTPRequestHandler):
    """A server that answers as it is told and keeps what it got."""

    answers: ClassVar[list[tuple[int, bytes]]] = []
    got: ClassVar[list[bytes]] = []
    elsewhere: ClassVar[bool] = False

    def do_GET(self) -> None:
        if Stub.elsewhere:
            return self.reply(308, b"")
        known = {f"/v1/{TASK.id}": TASK.data, f"/v1/{OPEN.id}": TASK.data}
        return self.reply(200 if self.path in known else 404, known.get(self.path, b""))

    def do_POST(self) -> None:
        Stub.got.append(self.rfile.read(int(self.headers["Content-Length"])))
        self.reply(*Stub.answers.pop(0))

    def reply(self, status: int, body: bytes) -> None:
        if status == 0:  # the connection breaks without an answer
            self.close_connection = True
            return
        self.send_response(status)
        if status in (409, 503):
            self.send_header("Retry-After", "0")
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, format: str, *args: object) -> None:
        pass


@pytest.fixture
def link() -> Iterator[Link]:
    Stub.answers, Stub.got, Stub.elsewhere = [], [], False
    server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Stub)
    thread = threading.Thread(target=server.serve_forever, args=(0.01,))
    thread.start()
    yield Link.parse(f"http://127.0.0.1:{server.server_address[1]}/t/{TASK.id}#{'A' * 22}")
    server.shutdown()
    thread.join()
    server.server_close()


@pytest.fixture
def device(tmp_path) -> Device:  # type: ignore[no-untyped-def]
    return Device(DeviceState(tmp_path / "deep" / "answers.json"))


@pytest.fixture(autouse=True)
def no_waiting(monkeypatch) -> None:  # type: ignore[no-untyped-def]
    monkeypatch.setattr("shuffledp.collection.client.time.sleep", lambda _: None)


def test_a_task_is_the_one_the_link_names(link):
    assert fetch_task(link) == TASK
    with pytest.raises(InvalidInput, match="another task"):
        fetch_task(Link(link.server, OPEN.id))
    with pytest.raises(InvalidInput, match="no such task"):
        fetch_task(Link(link.server, "A" * 43))


def test_the_same_bytes_are_sent_until_there_is_a_clear_answer(link, device):
    Stub.answers = [(0, b""), (503, b""), (500, b"oops"), (409, b""), (200, b"xx"), (200, b"\0")]
    assert device.answer(link, TASK, [2], 1, patience=60) is Verdict.HELD
    assert len(Stub.got) == 6
    assert len(set(Stub.got)) == 1
    assert opened(Stub.got[0]).code == OTHER
    assert device.state.waiting(TASK.id) is None
    assert device.spent("The kitchen") == {"organizer": "The kitchen", "answers": 1, "epsilon0": 1.0, "promise": 0.25, "delta": 1e-6}  # fmt: skip  # noqa: E501
    with pytest.raises(InvalidInput, match="already answered"):
        device.answer(link, TASK, [2], 1, patience=60)


ALONE = {"analyzer": "The kitchen", "shuffler": "the Kitchen.", "page": "The kitchen"}
SMALL = ((0.05, 9, 0.1), (0.5, 9, 0.3))
SPENT = [
    # operated by, level, its promise; of one question
    (ALONE, 0, 0.05),
    (ALONE, 1, 0.5),
    (None, 0, 0.05),  # a promise above the local budget says nothing more
    (None, 1, 0.3),
]


@pytest.mark.parametrize(("hands", "level", "promise"), SPENT)
def test_the_ledger_holds_what_was_promised(tmp_path, hands, level, promise):
    """One hand for everything promises the local budget alone; 0.2.0 entered the level's promise."""
    task = posted(levels=SMALL, **({} if hands is None else {"operated_by": hands}))
    device = Device(DeviceState(tmp_path / "answers.json"))
    device.prepare(task, [2], level, CODE)
    spent = device.spent("The kitchen")
    assert (spent["epsilon0"], spent["promise"]) == (SMALL[level][0], promise)


def test_what_was_not_confirmed_counts_as_sent_and_is_sent_again(link, device):
    Stub.answers = [(503, b"")]
    with pytest.raises(InvalidInput, match="same report"):
        device.answer(link, TASK, [2], 1, patience=0)
    assert device.waits(TASK)
    assert device.spent("The kitchen")["answers"] == 1
    again = Device(DeviceState(device.state.path))  # the command is started anew
    Stub.answers = [(200, b"\0")]
    again.answer(link, TASK, [4], 2, patience=0)  # another answer has no effect
    assert Stub.got[0] == Stub.got[1]
    assert again.spent("The kitchen")["answers"] == 1
    assert not again.waits(TASK)


def test_a_refused_code_never_leads_to_a_second_draw(link, device):
    Stub.answers = [(200, b"\3"), (200, b"\0")]
    assert device.answer(link, TASK, [2], 1, patience=0) is Verdict.CODE_REFUSED
    with pytest.warns(UserWarning, match="sealed again"):
        assert device.answer(Link(link.server, link.name, CODE), TASK, [4], 2, patience=0) is Verdict.HELD
    first, second = (opened(sealed) for sealed in Stub.got)
    assert (first.code, second.code) == (OTHER, CODE)
    assert first.inners == second.inners
    assert first.level == second.level == 1
    assert device.spent("The kitchen")["answers"] == 1


@pytest.mark.parametrize("status", [400, 404, 413])
def test_a_final_refusal_is_told_at_once(link, device, status):
    Stub.answers = [(status, b"")]
    with pytest.raises(InvalidInput):
        device.answer(link, TASK, [2], 1, patience=60)
    assert len(Stub.got) == 1


def test_a_closed_task_ends_the_matter(link, device):
    Stub.answers = [(410, b"")]
    with pytest.raises(TaskClosed):
        device.answer(link, TASK, [2], 1, patience=60)
    assert not device.waits(TASK)
    assert device.spent("The kitchen")["answers"] == 1


def test_another_person_on_the_device_draws_and_counts_for_themselves(link, device):
    Stub.answers = [(200, b"\0"), (200, b"\0")]
    device.answer(link, TASK, [2], 1, patience=0)
    other = Device(device.state, "Ada")
    assert other.spent("The kitchen")["answers"] == 0
    other.answer(link, TASK, [2], 0, patience=0)
    assert (other.spent("The kitchen")["epsilon0"], device.spent("The kitchen")["epsilon0"]) == (0.5, 1.0)
    assert opened(Stub.got[0]).inners != opened(Stub.got[1]).inners


@pytest.mark.parametrize("person", ["a\nb", "x" * 101, "\x1b[2J", "\udcff", " "])
def test_a_person_whose_name_the_state_file_could_not_be_read_with_is_refused(tmp_path, person):
    with pytest.raises(InvalidInput, match="one line"):
        Device(DeviceState(tmp_path / "answers.json"), person)


@pytest.mark.parametrize("person", ["a/b", "x" * 100, "[/]", "Zoë 🙂"])
def test_the_state_file_stays_readable_whoever_answers(link, tmp_path, person):
    Stub.answers = [(200, b"\0")]
    device = Device(DeviceState(tmp_path / "answers.json"), person)
    device.answer(link, TASK, [2], 1, patience=0)
    again = Device(DeviceState(tmp_path / "answers.json"), person)
    assert again.spent("The kitchen")["answers"] == 1
    assert Device(again.state, "other").spent("The kitchen")["answers"] == 0


@pytest.mark.parametrize("questions", [(bits(20), bits(20)), (several(32), choice(3))])
def test_a_report_of_more_than_32_messages_is_read_again(tmp_path, questions):
    """Numbers are sent as single bits, and options fill a column each; 32 is the most questions, not messages."""
    task, state = posted_second(*questions, levels=((8.0, 9, 999.0),), admission="open"), tmp_path / "answers.json"
    sealed = Device(DeviceState(state)).prepare(task, [1, 1], 0, None)
    assert Device(DeviceState(state)).prepare(task, [1, 1], 0, None) == sealed


def test_the_report_is_on_disk_before_it_is_sent(link, device, monkeypatch):
    def broken(*_: object, **__: object) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr("shuffledp.collection.client.send", broken)
    with pytest.raises(KeyboardInterrupt):
        device.answer(link, TASK, [2], 1, patience=0)
    assert device.waits(TASK)
    assert (device.state.path.stat().st_mode & 0o777) == 0o600


def test_sums_in_the_ledger_are_decimal(tmp_path):
    device = Device(DeviceState(tmp_path / "answers.json"))
    line = {"organizer": "o", "epsilon0": 0.1, "promise": 0.1, "delta": 1e-6, "date": "2030-01-01", "state": "held"}
    report = {"level": 0, "inners": ["AAAA"]}
    for place in range(3):
        device.state.keep(f"task{place}", report, line | {"id": f"task{place}", "slot": f"task{place}"})
    assert device.spent("o") == {"organizer": "o", "answers": 3, "epsilon0": 0.3, "promise": 0.3, "delta": 3e-6}


@pytest.mark.parametrize("content", ["", "[]", '{"version": 1}', '{"version": 1, "waiting": [], "used": [], "ledger": []}', '{"version": 1, "waiting": {}, "used": [], "ledger": [{}]}'])  # fmt: skip  # noqa: E501
def test_a_damaged_file_of_answers_is_refused(tmp_path, content):
    path = tmp_path / "answers.json"
    path.write_text(content)
    with pytest.raises(InvalidInput):
        DeviceState(path)


@pytest.mark.parametrize("report", ["5", "{}", '{"level": 0}', '{"level": 0, "inners": [5]}', '{"level": 256, "inners": ["AAAA"]}', '{"level": 0, "inners": ["AAAA"], "sealed": 5}'])  # fmt: skip  # noqa: E501
def test_a_damaged_report_on_its_way_is_refused(tmp_path, report):
    path = tmp_path / "answers.json"
    path.write_text(f'{{"version": 1, "waiting": {{"a": {report}}}, "used": [], "ledger": []}}')
    with pytest.raises(InvalidInput, match="the file of answers"):
        DeviceState(path)


def test_a_file_of_answers_without_end_is_not_read_to_the_end():
    with pytest.raises(InvalidInput, match="at most"):
        DeviceState(Path("/dev/zero"))


@pytest.mark.parametrize("place", ["/proc/none/answers.json", "dangling/answers.json"])
def test_a_file_of_answers_that_cannot_be_made_is_one_line_and_nothing_is_sent(link, tmp_path, monkeypatch, place):
    monkeypatch.chdir(tmp_path)
    Path("dangling").symlink_to("nowhere")
    with pytest.raises(InvalidInput, match=r"file of answers .* cannot be written .*--state"):
        Device(DeviceState(Path(place))).answer(link, TASK, [2], 1, patience=0)
    assert not Stub.got


def test_a_full_disk_is_told_before_anything_is_sent(link, device, monkeypatch):
    def full(_: int) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr("os.fsync", full)
    with pytest.raises(InvalidInput, match="No space left on device"):
        device.answer(link, TASK, [2], 1, patience=0)
    assert not Stub.got
    assert [path.name for path in device.state.path.parent.iterdir()] == ["answers.json.lock"]


@pytest.mark.parametrize("text", [
    "", "lunch", "ftp://example.org/t/" + "A" * 43, "https://example.org/" + "A" * 43, "https://example.org/t/AAA",
    f"https://example.org/t/{TASK.id}?x=1", f"https://example.org/t/{TASK.id}#short", f"https://u:p@example.org/t/{TASK.id}",
    f"https://example.org:port/t/{TASK.id}", "https://[::1/t/" + TASK.id, f"https:///t/{TASK.id}",
])  # fmt: skip
def test_what_is_no_link_is_refused(text):
    with pytest.raises(InvalidInput):
        Link.parse(text)


def test_links_keep_server_path_and_port():
    link = Link.parse(f"https://example.org:8443/surveys/t/{TASK.id}#{'A' * 22}")
    assert link == Link("https://example.org:8443/surveys", TASK.id, OTHER)
    assert link.without_code == f"https://example.org:8443/surveys/t/{TASK.id}"
    assert Link.parse(f"http://[::1]:8000/t/{TASK.id}").server == "http://[::1]:8000"


def test_an_unreachable_server_is_one_clear_line():
    with pytest.raises(InvalidInput, match="cannot be reached"):
        fetch_task(Link("http://127.0.0.1:9", TASK.id))


@pytest.mark.parametrize("part", [b"HTTP/1.1 100 Continue\r\n\r\n" * 99, b"HTTP/1.1 200 OK\r\nX: ", b"H"], ids=len)
def test_a_server_that_answers_without_end_is_given_up(monkeypatch, part):
    monkeypatch.setattr("shuffledp.collection.client.WHOLE", 0.2)
    ended = threading.Event()

    def speak(listening: socket.socket) -> None:
        with listening.accept()[0] as connection, contextlib.suppress(OSError):
            while not ended.is_set():
                connection.sendall(part)
                ended.wait(0.01)

    with socket.create_server(("127.0.0.1", 0)) as listening:
        thread = threading.Thread(target=speak, args=(listening,))
        thread.start()
        with pytest.raises(InvalidInput, match="no whole answer"):
            fetch_task(Link(f"http://127.0.0.1:{listening.getsockname()[1]}", TASK.id))
        ended.set()
        thread.join()


def test_a_server_that_sends_elsewhere_is_not_followed(link):
    Stub.elsewhere = True
    with pytest.raises(InvalidInput, match="as you received it"):
        fetch_task(link)


def test_the_state_file_is_json_for_people(link, device):
    Stub.answers = [(200, b"\0")]
    device.answer(link, TASK, [2], 1, patience=0)
    state = json.loads(device.state.path.read_text(encoding="utf-8"))
    assert state["waiting"] == {}
    assert state["ledger"][0]["state"] == "held"
