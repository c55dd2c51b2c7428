"""Where every page's template comes from, and the words its numbers are written in."""

from __future__ import annotations

from functools import cache
from typing import TYPE_CHECKING

from shuffledp.report import wording

if TYPE_CHECKING:
    from jinja2 import Environment, Template


def page_template(name: str) -> Template:
    """Return the template of a page, in which what comes from outside is escaped and a missing name is an error."""
    return _environment().get_template(name)


@cache
def _environment() -> Environment:
    from jinja2 import Environment, PackageLoader, StrictUndefined  # only who writes a page pays for it

    environment = Environment(
        loader=PackageLoader("shuffledp.report"),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    environment.filters.update(
        up=wording.up,
        down=wording.down,
        near=wording.near,
        count=wording.count,
        share=wording.share,
        percent=wording.percent,
        probability=wording.probability,
    )
    return environment
