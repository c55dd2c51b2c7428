"""Check the built documentation: nothing loaded from elsewhere, no broken link, no page of 15,000 pixels or more.

    python -m tools.check_docs_site FOLDER

`make docs` runs it on what the builder wrote. Chromium measures the height of the long pages where it is installed;
elsewhere their height is estimated from their lines.
"""

from __future__ import annotations

import math
import sys
from collections.abc import Iterator
from dataclasses import dataclass, field
from html.parser import HTMLParser
from pathlib import Path
from urllib.parse import unquote, urlsplit

from shuffledp.cli.demo.clients import Chromium, chromium_path

LOADED = {"script": "src", "img": "src", "iframe": "src", "source": "src", "link": "href", "object": "data"}
"""Tags whose attribute the browser fetches without being asked."""
MOST, WIDTH = 15_000, 1200
"""Height that a page stays below, and the width of the window that it is shown in, in CSS pixels."""
NARROW, WIDE = 80, 115
"""Letters of a line of text beside a list of pages, and without one."""
LINE, BLOCK, ROW, CODE, PICTURE, FRAME = 28, 14, 28, 30, 280, 600
"""Pixels of a line of text, of the space around a block, a table's row and a picture, and of what frames a page."""
BLOCKS = {
    "p", "li", "dt", "dd", "tr", "h1", "h2", "h3", "h4", "div", "section", "table", "dl", "ul", "ol", "blockquote",
    "figure", "figcaption", "aside", "details", "pre",
}  # fmt: skip
"""Tags that begin a line of their own."""
HEIGHT = """
new Promise((loaded) => (document.readyState === "complete" ? loaded() : addEventListener("load", loaded)))
  .then(() => window.MathJax?.startup?.promise)
  .then(() => document.documentElement.scrollHeight)
"""
"""What a browser evaluates: a page's height once its formulas are set."""


@dataclass
class Seen:
    """What a page refers to."""

    loaded: list[str] = field(default_factory=list)
    linked: list[str] = field(default_factory=list)
    names: set[str] = field(default_factory=set)


class Reader(HTMLParser):
    """Collects what a page loads, what it links to, and what it names."""

    def __init__(self) -> None:
        super().__init__()
        self.seen = Seen()

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        """One tag."""
        given = {name: value or "" for name, value in attrs}
        self.seen.names.update(given[name] for name in ("id", "name") if name in given)
        where = LOADED.get(tag)
        if where and given.get(where) and given.get("rel") not in ("canonical", "next", "prev", "index", "search"):
            self.seen.loaded.append(given[where])
        if tag == "a" and given.get("href"):
            self.seen.linked.append(given["href"])


def read(page: Path) -> Seen:
    """Read one page."""
    reader = Reader()
    reader.feed(page.read_text(encoding="utf-8"))
    return reader.seen


class Ruler(HTMLParser):
    """Estimates the height of a page from its lines: within a sixth on most pages here, a third below on formulas.

    Parameters
    ----------
    letters : int
        Letters of a line of text.
    """

    def __init__(self, letters: int) -> None:
        super().__init__()
        self.height = float(FRAME)
        self._letters, self._article, self._code, self._cells, self._text = letters, 0, 0, 0, 0

    def _end_block(self) -> None:
        if self._text:
            self.height += LINE * math.ceil(self._text / self._letters) + BLOCK
        self._text = 0

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        """Count pictures and rows, and end the block before."""
        self._article += tag == "article"
        if not self._article:
            return
        self.height += PICTURE * (tag == "img") + ROW * (tag == "tr")
        self._code += tag == "pre"
        if tag in BLOCKS and not self._cells:
            self._end_block()
        self._cells += tag in ("td", "th")

    def handle_endtag(self, tag: str) -> None:
        """Count the lines of a block that ends; a row's cells stand side by side, as one block."""
        if not self._article:
            return
        self._code -= tag == "pre"
        self._cells -= tag in ("td", "th")
        if tag in BLOCKS and not self._cells:
            self._end_block()
        self._article -= tag == "article"

    def handle_data(self, data: str) -> None:
        """Count letters, and the lines of code."""
        if self._article and self._code:
            self.height += CODE * data.count("\n")
        elif self._article:
            self._text += len(" ".join(data.split()))


def estimated(page: Path) -> float:
    """Estimate the height of one page, in CSS pixels, in a window of `WIDTH`."""
    text = page.read_text(encoding="utf-8")
    ruler = Ruler(NARROW if "sidebar-nav-bs" in text or "bd-links" in text else WIDE)
    ruler.feed(text)
    return ruler.height


def heights(site: Path) -> dict[Path, float]:
    """Return the height of the long pages: as chromium shows them, or estimated where there is no chromium.

    Pages whose estimate is below three fifths of `MOST` are left out: no page is taller by more than a half.
    """
    pages = (page for page in sorted(site.rglob("*.html")) if "_static" not in page.parts)
    long = {page: height for page in pages if (height := estimated(page)) >= 0.6 * MOST}
    path = chromium_path()
    if path is None or not long:
        return long
    with Chromium(path) as browser:
        return {page: float(browser.evaluate(page.as_uri(), HEIGHT, WIDTH)) for page in long}


def too_tall(site: Path) -> Iterator[str]:
    """Every page of `MOST` pixels or more, as a line for a person."""
    for page, height in heights(site).items():
        if height >= MOST:
            yield f"{page.relative_to(site)}: {height:,.0f} pixels tall; split or shorten it below {MOST:,}"


def problems(site: Path) -> Iterator[str]:
    """Every fault, as a line for a person."""
    pages = {page: read(page) for page in sorted(site.rglob("*.html")) if "_static" not in page.parts}
    for page, seen in pages.items():
        here = page.relative_to(site)
        for address in seen.loaded:
            parts = urlsplit(address)
            if parts.scheme == "data":
                continue
            if parts.scheme or parts.netloc:
                yield f"{here}: loads {address} from elsewhere"
            elif not (page.parent / unquote(parts.path)).is_file():
                yield f"{here}: {address} is missing"
        for address in seen.linked:
            parts = urlsplit(address)
            if parts.scheme or parts.netloc:
                continue
            target = (page.parent / unquote(parts.path)).resolve() if parts.path else page
            if not target.is_file():
                yield f"{here}: link to {address}, which is not there"
            elif parts.fragment and target in pages and unquote(parts.fragment) not in pages[target].names:
                yield f"{here}: link to {address}, which has no such place"


def main(folder: str) -> int:
    """Print the faults; 1 if there are any."""
    site = Path(folder).resolve()
    found = [*problems(site), *too_tall(site)]
    pages = sum("_static" not in page.parts for page in site.rglob("*.html"))
    print("\n".join(found) or f"{pages} pages: nothing loaded from elsewhere, no broken link, none too tall")
    return 1 if found or not pages else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1]))
