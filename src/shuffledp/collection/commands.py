"""The commands of a collection and their options; the bodies are in `collection.posting` and `collection.answers`."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from shuffledp.shell import estimate_options as e
from shuffledp.shell import options as o

task = typer.Typer(no_args_is_help=True, rich_markup_mode="rich", help="Draft, post, and look after a collection.")
"""The commands `shuffledp task ...`; `collection.serve` adds those that need the store."""

Draft = Annotated[
    Path, typer.Argument(metavar="DRAFT", parser=o.file_path, help="The .draft of task draft, or its folder.")
]
Posted = Annotated[
    Path, typer.Argument(metavar="TASK", parser=o.file_path, help="The .task of task post, or its folder.")
]
Store = Annotated[Path, typer.Option("--store", parser=o.file_path, metavar="FILE", help="The shuffler's store.")]
Server = Annotated[str, typer.Option("--server", metavar="URL", help="Where people reach the shuffler.")]
Page = Annotated[
    str | None,
    typer.Option("--page", metavar="URL", help="Where the file of task page is served, if the shuffler's is not used."),
]
Template = Annotated[
    Path | None,
    typer.Option("--template", parser=o.file_path, metavar="FILE.html", help="An edited letter of task letter."),
]
LOOPBACK = "http://127.0.0.1:8000"


def register(app: typer.Typer) -> None:
    """Add the collection's commands to the command line."""
    from shuffledp.collection import serve

    app.add_typer(task, name="task")
    app.command()(answer)
    app.command("open")(open_)
    serve.register(app, task)
    task.command()(page)


@task.command()
def draft(
    survey: Annotated[Path, typer.Argument(metavar="SURVEY", parser=o.file_path, help="A survey.toml.")],
    out: Annotated[Path, typer.Option("--out", parser=o.file_path, metavar="NAME", help="For NAME.draft, NAME.key.")],
    json: o.Json = False,
) -> None:
    """Turn a survey into a draft and the analyzer's key, and tell promises and price.

    Example:

    shuffledp task draft survey.toml --out lunch
    """
    from shuffledp.collection.posting import run_draft

    run_draft(survey, out, as_json=json)


@task.command()
def plan(
    survey: Annotated[Path, typer.Argument(metavar="SURVEY", parser=o.file_path, help="A survey.toml.")],
    people: Annotated[
        int | None, typer.Option("--people", parser=o.typed_whole, metavar="N", help="How many will answer.")
    ] = None,
    promise: Annotated[
        float | None, typer.Option("--promise", parser=o.number, metavar="E", help="Central epsilon, all questions.")
    ] = None,
    wanted: Annotated[
        float | None, typer.Option("--wanted", parser=o.number, metavar="POINTS", help="Half-width, such as 3.")
    ] = None,
    shufflers: Annotated[
        int, typer.Option("--shufflers", parser=o.typed_whole, metavar="S", help="How many add dummies.")
    ] = 1,
    figure: Annotated[
        Path | None, typer.Option("--figure", parser=o.file_path, metavar="FILE.svg", help="Draw width against people.")
    ] = None,
    json: o.Json = False,
) -> None:
    """Tell what a survey's answers will be worth at each local budget, and what cannot be had; no key is made.

    Example:

    shuffledp task plan survey.toml --people 500 --wanted 3
    """
    from shuffledp.collection.posting import run_plan

    run_plan(survey, people, promise, wanted, shufflers, figure, as_json=json)


@task.command()
def preview(
    survey: Annotated[
        Path, typer.Argument(metavar="SURVEY", parser=o.file_path, help="A survey.toml or the .draft of task draft.")
    ],
    port: Annotated[int, typer.Option("--port", min=0, max=65535, help="Port on this machine; 0: any free one.")] = 0,
) -> None:
    """Show the survey page as people will see it, on this machine alone, before anything is posted.

    Example:

    shuffledp task preview survey.toml
    """
    from shuffledp.collection.rehearsal import run_preview

    run_preview(survey, port)


@task.command()
def rehearse(
    survey: Annotated[
        Path, typer.Argument(metavar="SURVEY", parser=o.file_path, help="A survey.toml or the .draft of task draft.")
    ],
    people: Annotated[
        int | None,
        typer.Option("--people", parser=o.typed_whole, metavar="N", help="Made-up people; as many as are planned."),
    ] = None,
    report: o.Report = None,
) -> None:
    """Hold the whole survey with made-up answers, and show what is found beside what was made up.

    Example:

    shuffledp task rehearse survey.toml --people 300 --report rehearsal.html
    """
    from shuffledp.collection.rehearsal import run_rehearse

    run_rehearse(survey, people, report)


@task.command()
def post(
    draft: Draft,
    store: Store = Path("shuffledp.db"),
    out: Annotated[
        Path | None, typer.Option("--out", parser=o.file_path, metavar="FILE", help="The task's file; DRAFT.task.")
    ] = None,
    accept_shift: Annotated[
        bool, typer.Option("--accept-shift", help="Post an open task though junk could shift a result far.")
    ] = False,
    yes: Annotated[bool, typer.Option("--yes", help="Post a task with very many dummies without being asked.")] = False,
) -> None:
    """Certify a draft's promises, sign it, and take answers to it: on the shuffler's machine.

    Example:

    shuffledp task post lunch.draft
    """
    from shuffledp.collection.posting import run_post

    run_post(draft, store, out, accept_shift=accept_shift, yes=yes)


@task.command()
def link(
    draft: Draft,
    posted: Posted,
    server: Server = LOOPBACK,
    page: Page = None,
) -> None:
    """Check that the shuffler posted exactly this draft, and print the link to it.

    Example:

    shuffledp task link lunch.draft lunch.task
    """
    from shuffledp.collection.posting import run_link

    run_link(draft, posted, server, page)


@task.command()
def codes(
    posted: Posted,
    count: Annotated[
        int | None,
        typer.Argument(metavar="COUNT", parser=o.typed_whole, help="How many invitations; groups know it."),
    ] = None,
    store: Store = Path("shuffledp.db"),
    server: Server = LOOPBACK,
    page: Page = None,
    links: Annotated[
        Path | None, typer.Option("--links", parser=o.file_path, metavar="FILE.csv", help="Write the links.")
    ] = None,
    letters: Annotated[
        Path | None, typer.Option("--letters", parser=o.file_path, metavar="FILE.html", help="Write letters to print.")
    ] = None,
    language: Annotated[
        str | None, typer.Option("--language", metavar="en|de|fr", help="Language of the letters.")
    ] = None,
    template: Template = None,
    short: Annotated[bool, typer.Option("--short", help="Codes of twelve letters, to be typed.")] = False,
) -> None:
    """Make one-time codes: links and letters for people, their hashes for the shuffler's store.

    Example:

    shuffledp task codes lunch.task 5000 --links codes.csv --letters letters.html
    """
    from shuffledp.collection.posting import run_codes

    run_codes(posted, count, store, server, page, links, letters, language, template, short=short)


@task.command()
def letter(
    out: Annotated[Path, typer.Option("--out", parser=o.file_path, metavar="FILE.html", help="The letter to edit.")],
    reminder: Annotated[bool, typer.Option("--reminder", help="The letter that reminds, not the one that invites.")] = (
        False
    ),
    language: Annotated[str, typer.Option("--language", metavar="en|de|fr", help="Language of the letter.")] = "en",
) -> None:
    """Write the letter that invites, to be edited and printed with task codes or task remind.

    Example:

    shuffledp task letter --out letter.html
    """
    from shuffledp.collection.posting import run_letter

    run_letter("reminder" if reminder else "invitation", language, out)


@task.command()
def remind(
    posted: Posted,
    links: Annotated[
        Path, typer.Option("--links", parser=o.file_path, metavar="FILE.csv", help="The links that task codes wrote.")
    ],
    letters: Annotated[
        Path, typer.Option("--letters", parser=o.file_path, metavar="FILE.html", help="Write letters to print.")
    ],
    language: Annotated[
        str | None, typer.Option("--language", metavar="en|de|fr", help="Language of the letters.")
    ] = None,
    template: Template = None,
) -> None:
    """Print a reminder for every code: nobody learns which of them are used.

    Example:

    shuffledp task remind lunch.task --links codes.csv --letters reminders.html
    """
    from shuffledp.collection.posting import run_remind

    run_remind(posted, links, letters, language, template)


@task.command()
def verify(
    posted: Posted,
    release: Annotated[Path, typer.Argument(metavar="RELEASE", parser=o.file_path, help="The analyzer's release.")],
    batch: Annotated[
        Path | None, typer.Option("--batch", parser=o.file_path, metavar="FILE", help="The batch, to be checked too.")
    ] = None,
    json: o.Json = False,
) -> None:
    """Check a release without a key: signatures, counts, rows, and every certified number anew.

    Example:

    shuffledp task verify lunch.task lunch.release
    """
    from shuffledp.collection.answers import run_verify

    run_verify(posted, release, batch, as_json=json)


def answer(
    link: Annotated[str, typer.Argument(metavar="LINK", help="The link of the invitation.")],
    level: Annotated[str | None, typer.Option("--level", metavar="NAME", help="Your privacy level.")] = None,
    answers: Annotated[
        list[str] | None, typer.Option("--answer", metavar="A", help="Your answer; once for each question, in order.")
    ] = None,
    show: Annotated[bool, typer.Option("--show", help="Show the task in words; nothing is drawn or sent.")] = False,
    person: Annotated[str, typer.Option("--person", metavar="NAME", help="Who answers, if several share it.")] = "",
    language: Annotated[str, typer.Option("--language", metavar="en|de|fr", help="Of the words shown.")] = "en",
    patience: Annotated[
        float, typer.Option("--patience", parser=o.number, metavar="SECONDS", help="How long sending is tried.")
    ] = 120.0,
    state: Annotated[
        Path | None, typer.Option("--state", parser=o.file_path, metavar="FILE", help="This device's answers.")
    ] = None,
    json: o.Json = False,
) -> None:
    """Answer a collection from this device: checked, drawn once, and sent until the shuffler has it.

    Example:

    shuffledp answer LINK --level careful --answer soup
    """
    from shuffledp.collection.client import Link

    Link.parse(link)  # a damaged link is refused before the accountant is loaded
    from shuffledp.collection.answers import run_answer, run_show

    if show:
        run_show(link, language, person, state, as_json=json)
    else:
        run_answer(link, level, answers or [], language, person, patience, state, as_json=json)


def open_(
    batch: Annotated[Path, typer.Argument(metavar="BATCH", parser=o.file_path, help="What was handed over.")],
    key: Annotated[Path, typer.Option("--key", parser=o.file_path, metavar="FILE", help="The .key of task draft.")],
    out: Annotated[
        Path | None, typer.Option("--out", parser=o.file_path, metavar="FILE", help="The release; BATCH.release.")
    ] = None,
    ledger: e.LedgerFile = None,
    population: e.PopulationName = "everybody",
    fixed_in_advance: e.FixedInAdvance = None,
    report: o.Report = None,
    margins: Annotated[
        Path | None,
        typer.Option(
            "--margins",
            parser=o.file_path,
            metavar="FILE.csv",
            help="Public counts of all people (variable,category,people); tables whose rows or columns are the "
            "categories are weighted to them.",
        ),
    ] = None,
    json: o.Json = False,
) -> None:
    """Open a batch: estimate, certify again, and sign the release.

    Of a survey with groups BATCH is a folder of batches and --key the folder of keys: every group is released, and the
    groups are compared.

    Example:

    shuffledp open lunch.batch --key lunch.key --report lunch.html
    """
    from shuffledp.collection.answers import run_open
    from shuffledp.shell.output import Entered

    run_open(batch, key, out, report, Entered(ledger, population, fixed_in_advance), margins, as_json=json)


def page(
    posted: Posted,
    server: Annotated[str, typer.Option("--server", metavar="URL", help="Where the page sends reports: the shuffler.")],
    out: Annotated[
        Path | None, typer.Option("--out", parser=o.file_path, metavar="FILE.html", help="The file; TASK.html.")
    ] = None,
) -> None:
    """Write the survey page of a task as one file for another host to serve, and print its SHA-256.

    Who serves the page could change it, so somebody other than the shuffler and the analyzer should. It sends reports
    to the shuffler and nowhere else. A person's link is the page's address with the person's code after #.

    Example:

    shuffledp task page lunch.task --server https://collect.example.org --out lunch.html
    """
    import hashlib

    from rich.markup import escape

    from shuffledp.collection.promise import quoted
    from shuffledp.collection.survey_page import page_for
    from shuffledp.collection.task import LONGEST_POSTED, PostedTask
    from shuffledp.shell.output import console, write_bytes
    from shuffledp.whole_files import read_bytes

    task = PostedTask.parse(read_bytes(posted, "the task", LONGEST_POSTED))
    document = page_for(task, server.removesuffix("/"))
    target = posted.with_suffix(".html") if out is None else out
    write_bytes(target, document, fresh=True)
    digest = hashlib.sha256(document).hexdigest()
    console().print(
        f"Written: {escape(str(target))}, the page of {escape(quoted(task.title))}, SHA-256 {digest}",
        highlight=False,
        soft_wrap=True,
    )
    console().print(
        "Publish the SHA-256 where people trust it, so that they can check the file that they are served.",
        highlight=False,
    )
