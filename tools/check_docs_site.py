"""Check the built documentation: it loads nothing from elsewhere, and every link inside it leads somewhere.

    python -m tools.check_docs_site FOLDER

`make docs` runs it on what the builder wrote.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator
from dataclasses import dataclass, field
from html.parser import HTMLParser
from pathlib import Path
from urllib.parse import unquote, urlsplit

LOADED = {"script": "src", "img": "src", "iframe": "src", "source": "src", "link": "href", "object": "data"}
"""Tags whose attribute the browser fetches without being asked."""


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
    found = list(problems(site))
    pages = sum("_static" not in page.parts for page in site.rglob("*.html"))
    print("\n".join(found) or f"{pages} pages: nothing loaded from elsewhere, no broken link")
    return 1 if found or not pages else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1]))
