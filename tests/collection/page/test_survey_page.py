"""The page as one file: what it may load and run, and that its words are whole."""

from __future__ import annotations

import base64
import hashlib
import json
import re
from html.parser import HTMLParser
from importlib.resources import files

import pytest

from shuffledp.collection.fields import to_base64
from shuffledp.collection.survey_page import (
    LANGUAGES,
    content_security_policy,
    in_scope,
    modules,
    page_for,
    survey_page,
)
from shuffledp.errors import InvalidInput
from tests.collection.page.samples import task

FOLDER = files("shuffledp.collection") / "page"


class Elements(HTMLParser):
    """Names and attributes of all elements, and the text of scripts and styles."""

    def __init__(self, document: str) -> None:
        super().__init__()
        self.found: list[tuple[str, dict[str, str | None]]] = []
        self.texts: dict[str, list[str]] = {"script": [], "style": []}
        self.feed(document)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.found.append((tag, dict(attrs)))

    def handle_data(self, data: str) -> None:
        if self.lasttag in self.texts and data.strip():
            self.texts[self.lasttag].append(data)


def hash_of(text: str) -> str:
    return f"'sha256-{base64.b64encode(hashlib.sha256(text.encode()).digest()).decode()}'"


def test_the_policy_allows_the_one_script_and_the_one_style_and_nothing_else():
    texts = Elements(survey_page().decode()).texts
    script, style = texts["script"][0], texts["style"][0]
    assert content_security_policy() == (
        f"default-src 'none'; script-src {hash_of(script)}; style-src {hash_of(style)}; connect-src 'self'; "
        "base-uri 'none'; form-action 'none'; frame-ancestors 'none'"
    )


def test_the_page_names_no_other_place():
    document = survey_page().decode()
    assert "://" not in document
    for tag, attributes in Elements(document).found:
        assert not {"src", "href", "action", "style"} & set(attributes), tag
        assert not any(name.startswith("on") for name in attributes), tag
    assert not re.search(
        r"innerHTML|outerHTML|insertAdjacentHTML|document\.write|\beval\b|new Function|Math\.random", document
    )
    assert survey_page() == survey_page()


def test_what_can_be_chosen_is_listed_and_no_button():
    """A pill looks like a button; what is asked is a list until it can be answered."""
    rule = re.search(r"ul\.choices \{([^}]*)\}", survey_page().decode())
    assert rule
    assert not re.search(r"flex|border|list-style: none", rule[1])


def test_a_page_for_another_host_holds_its_task_and_its_policy():
    posted = task()
    document = page_for(posted, "https://collect.example.org").decode()
    parsed = Elements(document)
    held = json.loads(next(text for text in parsed.texts["script"] if text.startswith("{")))
    assert held == {"server": "https://collect.example.org", "id": posted.id, "posted": to_base64(posted.data)}
    policy = next(a["content"] for tag, a in parsed.found if tag == "meta" and a.get("http-equiv"))
    own = content_security_policy().removesuffix("; frame-ancestors 'none'")
    assert policy == own.replace("'self'", "https://collect.example.org")
    assert document.index("Content-Security-Policy") < document.index("<style>")


@pytest.mark.parametrize(
    "server", ["", "collect.example.org", "https://a.org/x", 'https://a"', "https://a.org; *", "ftp://a"]
)
def test_a_server_that_is_no_origin_is_refused(server):
    with pytest.raises(InvalidInput, match="must be an origin"):
        page_for(task(), server)


def test_every_language_has_the_same_words_with_the_same_places():
    words = {name: json.loads((FOLDER / f"{name}.json").read_text(encoding="utf-8")) for name in LANGUAGES}
    places = {
        name: {key: sorted(re.findall(r"\{(\w+)\}", text)) for key, text in told.items()}
        for name, told in words.items()
    }
    assert places["en"] == places["de"] == places["fr"]
    assert [key for name in LANGUAGES for key, text in words[name].items() if not text.strip()] == []


def test_people_read_of_surveys_alone():
    """The page called a survey a collection, too, and its front page a survey."""
    for name in ("en.json", "front.json"):
        words = re.sub(r"\{\w+\}", "", (FOLDER / name).read_text(encoding="utf-8"))
        assert "ollection" not in words


def test_every_word_is_used_and_every_used_word_is_there():
    source = "".join(text for name, text in modules().items() if name != "words")
    words = set(json.loads((FOLDER / "en.json").read_text(encoding="utf-8")))
    made = {f"state.{end}" for end in ("waiting", "held", "refused", "unclear")}  # by `state.${...}` and the like
    made |= {f"refused.{reason}" for reason in ("unreadable", "level", "code", "closed")}
    made |= {f"error.{what}{more}" for what in ("browser", "network", "unknown") for more in ("", "Title")}
    made |= {f"error.{what}" for what in ("taskTitle", "name", "newer", "promise", "signature", "release", "format")}
    made |= {f"{phase}Title" for phase in ("closed", "notYet", "destroyed", "deleted")}
    named = set(re.findall(r'"([\w.]+)"', source))
    assert words - named - made == {"name"} - named
    assert set(re.findall(r'say\("([\w.]+)"', source)) | made <= words


def test_a_module_that_the_page_cannot_hold_is_noticed():
    for source in (
        'import x from "./hpke.js";\n',
        "export default 1;\n",
        "export { seal };\n",
        'import { a as b } from "./x.js";\n',
    ):
        with pytest.raises(AssertionError, match="imports or exports"):
            in_scope("sample", source)


@pytest.mark.parametrize("name", sorted(path.name for path in FOLDER.iterdir()))
def test_no_file_of_the_page_is_too_long(name):
    text = (FOLDER / name).read_text(encoding="utf-8")
    assert text.count("\n") <= 400
    assert text.endswith("\n")
    assert "\t" not in text
