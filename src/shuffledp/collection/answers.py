"""The commands `answer`, `open` and `task verify` of participants, the analyzer and auditors."""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any, TextIO, cast

from rich.markup import escape
from rich.table import Table

from shuffledp import __version__
from shuffledp.collection.batch import LONGEST_KEY, AnalyzerKey, Verdict, read_batch
from shuffledp.collection.client import (
    Device,
    DeviceState,
    Link,
    TaskClosed,
    answer_code,
    certify_task,
    default_state_file,
    fetch_notice,
    fetch_task,
    level_named,
)
from shuffledp.collection.fields import write_time
from shuffledp.collection.groups import group_of_draft
from shuffledp.collection.promise import LANGUAGES, crowd_tells, in_language, quoted, what_is_promised
from shuffledp.collection.release import LONGEST_SIGNED
from shuffledp.collection.task import LONGEST_POSTED, Draft, PostedTask
from shuffledp.errors import InvalidInput, choice
from shuffledp.in_words import count, counted, distance, probability, up
from shuffledp.numerics.randomness import Randomness, secure_random
from shuffledp.report.to_json import dumps
from shuffledp.shell.output import COMMAND_LINE, Entered, console, has_changed, outputs, will_change, working
from shuffledp.whole_files import read_bytes

if TYPE_CHECKING:
    from shuffledp.collection.analyzer import Opened

_SAYS = "the shuffler, or somebody on the way to it, says that"
_ENDS = {
    Verdict.UNREADABLE: f"{_SAYS} the report cannot be opened; then it is not counted. A second one is not drawn",
    Verdict.UNFIT: f"{_SAYS} the report does not fit its task; then it is not counted. A second one is not drawn",
    Verdict.CODE_REFUSED: f"{_SAYS} the code is unknown or was used before. If you have another link, repeat with that "
    "one: the same report is sealed again for its code, and a dishonest shuffler could count it twice",
}


_SAID = {
    "en": {
        "about": "{organizer} ({contact}); privacy notice: {notice}; open from {opens} to {closes}",
        "moved": "Its end was moved: it is open to {closes}.",
        "dictionary": "one of {count} words, such as {first}, {second}, or {last}",
        "number": "a number from {low} to {high} in steps of {step}",
        "several": "any of {answers}",
        "one": "one of {answers}",
        "order": "The order is drawn each time they are shown; --answer goes by their numbers.",
        "spent": "Sent to {organizer} before from this device: {answers}, together {local}{apart}.",
        "apart": " if shuffler and analyzer are one, {promise} at delta = {delta} by their promises",
        "answer": "{count} answer",
        "answers": "{count} answers",
        "again": "The report that was drawn before is sent again; --level and --answer change nothing.",
        "held": "The shuffler holds your answer to {title}.",
    },
    "de": {
        "about": "{organizer} ({contact}); Datenschutzhinweise: {notice}; offen von {opens} bis {closes}",
        "moved": "Das Ende wurde verschoben: offen bis {closes}.",
        "dictionary": "eines von {count} Wörtern, etwa {first}, {second} oder {last}",
        "number": "eine Zahl von {low} bis {high} in Schritten von {step}",
        "several": "beliebig viele von {answers}",
        "one": "eines von {answers}",
        "order": "Die Reihenfolge wird bei jedem Anzeigen neu gezogen; --answer folgt den Nummern der Fragen.",
        "spent": "Von diesem Gerät zuvor an {organizer} gesendet: {answers}, zusammen {local}{apart}.",
        "apart": ", wenn Mischer und Auswerter eins sind, {promise} bei delta = {delta} nach ihren Versprechen",
        "answer": "{count} Antwort",
        "answers": "{count} Antworten",
        "again": "Der Bericht, der zuvor gezogen wurde, wird noch einmal gesendet; --level und --answer ändern nichts.",
        "held": "Der Mischer hat Ihre Antwort auf {title}.",
    },
    "fr": {
        "about": "{organizer} ({contact}) ; protection des données : {notice} ; ouvert du {opens} au {closes}",
        "moved": "La fin a été déplacée : ouvert jusqu’au {closes}.",
        "dictionary": "l’un des {count} mots, comme {first}, {second} ou {last}",
        "number": "un nombre de {low} à {high} par pas de {step}",
        "several": "n’importe lesquelles de {answers}",
        "one": "l’une de {answers}",
        "order": "L’ordre est tiré à chaque affichage ; --answer suit les numéros des questions.",
        "spent": "Déjà envoyé à {organizer} depuis cet appareil : {answers}, ensemble {local}{apart}.",
        "apart": " si mélangeur et analyste ne font qu’un, {promise} à delta = {delta} selon leurs promesses",
        "answer": "{count} réponse",
        "answers": "{count} réponses",
        "again": "Le rapport tiré auparavant est renvoyé ; --level et --answer ne changent rien.",
        "held": "Le mélangeur a votre réponse à {title}.",
    },
}
"""What the program says to a participant, by language; the organizer's words and numbers are filled in."""


def _phrase(key: str, language: str, **words: object) -> str:
    return _SAID[language][key].format_map(words)


def _decimal(number: str, language: str) -> str:
    return number if language == "en" else number.replace(".", ",")


def run_show(link_text: str, language: str, person: str, state: Path | None, *, as_json: bool) -> None:
    """Print a task, and what a person has sent to its organizer from this device; nothing is drawn or sent.

    Parameters are the options of ``shuffledp answer --show``.
    """
    _check_language(language)
    link = Link.parse(link_text)
    task = fetch_task(link)
    notice = fetch_notice(link, task)
    with working("Certifying the promises"):
        floors = certify_task(task)
    device = Device(DeviceState(state or default_state_file()), person)
    if as_json:
        print(dumps(_shown_object(task, floors, device, language)))
        return
    print_task(task, language, None if notice is None else notice.closes)
    _print_spent(task, device, language)


def run_answer(
    link_text: str,
    level: str | None,
    answers: list[str],
    language: str,
    person: str,
    patience: float,
    state: Path | None,
    *,
    as_json: bool,
) -> None:
    """Draw, store, and send one person's report.

    Parameters are the options of ``shuffledp answer``.
    """
    _check_language(language)
    link = Link.parse(link_text)
    if not 0.0 <= patience < float("inf"):
        raise InvalidInput(f"--patience must be a number of seconds; got {patience}")
    task = fetch_task(link)
    if level is None:
        names = ", ".join(quoted(in_language(each.name, language)) for each in task.draft.levels)
        raise InvalidInput(f"choose a level with --level: {names}; --show tells what each promises")
    if len(answers) != len(task.draft.questions):
        raise InvalidInput(f"this task has {len(task.draft.questions)} questions; got {len(answers)} --answer")
    place = level_named(task, level)
    codes = [answer_code(question, text) for question, text in zip(task.draft.questions, answers, strict=True)]
    with working("Certifying the promises"):
        certify_task(task)
    state = state or default_state_file()
    will_change(state, "keeps the answer that was drawn: the same command sends it, and draws no other")
    device = Device(DeviceState(state), person, lambda message: print(message, file=sys.stderr))
    if not as_json:
        promise = what_is_promised(task.draft, place, language)
        console().print(escape(promise.sentences[0][1]), highlight=False)
        _print_spent(task, device, language)
        if device.waits(task):
            console().print(_phrase("again", language))
    with working("Sending"):
        try:
            verdict = device.answer(link, task, codes, place, patience=patience)
        except TaskClosed:
            has_changed(state, "counts the answer as given: an earlier attempt may have arrived; none is sent again")
            raise
    if verdict is not Verdict.HELD:
        raise InvalidInput(_ENDS[verdict])
    if as_json:
        print(dumps({"held": True, "id": task.id, "ledger": device.spent(task.draft.organizer)}))
    else:
        title = quoted(in_language(task.draft.title, language), language)
        console().print(escape(_phrase("held", language, title=title)), highlight=False)


def run_open(
    batch: Path,
    key: Path,
    out: Path | None,
    report: Path | None,
    entered: Entered,
    margins: Path | None = None,
    *,
    as_json: bool,
) -> None:
    """Open a batch, write the signed release, and print it; the batch is entered in the ledger first, if one is named.

    Parameters are the options of ``shuffledp open``.
    """
    if batch.is_dir():
        from shuffledp.collection.group_commands import run_open_groups

        if margins is not None:
            raise InvalidInput("--margins weights the table of one batch: open each group's batch by itself with it")
        run_open_groups(batch, key, out, report, entered, as_json=as_json)
        return
    from shuffledp.collection.analyzer import open_batch  # with its estimates and pages, which no participant loads
    from shuffledp.collection.release import write_release
    from shuffledp.collection.release_page import ONE_OF_SEVERAL, release_document, release_page
    from shuffledp.releases.margins import LONGEST, Margins

    if key.is_dir():
        from shuffledp.collection.group_commands import key_of_group

        raise InvalidInput(key_of_group(batch, key))
    target = batch.parent / f"{batch.stem}.release" if out is None else out
    if target.resolve() in {
        path.resolve() for path in (batch, key, report, margins, entered.ledger) if path is not None
    }:
        raise InvalidInput(f"--out {target} is also an input or another output of this command; choose another name")
    secret = AnalyzerKey.parse(read_bytes(key, "the key", LONGEST_KEY))
    public = None if margins is None else Margins.parse(read_bytes(margins, "the margins", LONGEST))
    with outputs({"--out": target, "--report": report}) as files:
        with working("Opening the batch"):
            opened = open_batch(
                read_batch(batch, check=secret.check_task),
                secret,
                **entered.arguments(),
                margins=public,
            )
        document = release_document(opened)
        release = write_release(document, opened.batch.task, secret.identity)
        group = group_of_draft(key.parent, secret.draft_sha256)
        together = f"shuffledp open FOLDER --key {key.parent}" if group else None
        made: dict[str, Any] = {"command": COMMAND_LINE.get(), "version": __version__, "together": together}
        files.write("--out", lambda file: cast(TextIO, file).buffer.write(release))
        files.write("--report", lambda page: page.write(release_page(opened, **made)))
        files.show(lambda: _show_opened(opened, document, entered, group, as_json=as_json))
    if not as_json and together:
        console().print(escape(ONE_OF_SEVERAL.format(command=together)), highlight=False)


def _show_opened(
    opened: Opened, document: bytes, entered: Entered, group: dict[str, Any] | None, *, as_json: bool
) -> None:
    """Print the release as JSON or in words; of one group of several the JSON is the signed one with its group."""
    if as_json:
        printed = document.decode("utf-8") if group is None else dumps(json.loads(document) | {"one_group": group})
        sys.stdout.write(printed + "\n")
        return
    _print_opened(opened)
    if entered.ledger is not None:
        how = "Entered" if opened.entered else "Entered before"
        more = "" if opened.entered else "; the same batch costs nothing more"
        console().print(f"{how} in the ledger {escape(str(entered.ledger))}{more}.", highlight=False)


def run_verify(posted: Path, release: Path, batch: Path | None, *, as_json: bool) -> None:
    """Check a release, and print what was verified and what cannot be.

    Parameters are the options of ``shuffledp task verify``.
    """
    from shuffledp.collection.verify import verify

    task = PostedTask.parse(read_bytes(posted, "the task", LONGEST_POSTED))
    with working("Certifying the promises"):
        verification = verify(
            task,
            read_bytes(release, "the release", LONGEST_SIGNED),
            None if batch is None else read_batch(batch),
        )
    if as_json:
        summary = {
            "verified": True,
            "checks": verification.checks,
            "cannot": verification.cannot,
            "floor": verification.floor,
        }
        print(dumps(summary | {"promise_kept": verification.promise_kept}))
        return
    terminal = console()
    for sentence in verification.checks:
        terminal.print(f"checked: {escape(sentence)}", highlight=False)
    for sentence in verification.cannot:
        terminal.print(f"cannot be checked: {sentence}", highlight=False)
    _print_verdict(task.draft, verification.promise_kept)


def _check_language(language: str) -> None:
    choice(language, "--language", LANGUAGES)


def _shown_object(task: PostedTask, floors: tuple[float, ...], device: Device, language: str) -> dict[str, Any]:
    draft = task.draft
    return {
        "id": task.id,
        "title": dict(draft.title),
        "organizer": draft.organizer,
        "one_hand": draft.operated_by.one_hand,
        "questions": [dict(question.text) for question in draft.questions],
        "levels": [
            {
                "name": dict(level.name),
                "floor": floor,
                "headline": what_is_promised(draft, place, language).headline,
                "sentences": [text for _, text in what_is_promised(draft, place, language).sentences],
            }
            for place, (level, floor) in enumerate(zip(draft.levels, floors, strict=True))
        ],
        "spent": device.spent(draft.organizer),
    }


def print_task(task: PostedTask, language: str, closes: int | None = None) -> None:
    """Print a task in words: who asks what, until when (a notice may have moved it), and what each level promises."""
    draft, terminal = task.draft, console()

    def theirs(text: str) -> str:
        return quoted(text, language)  # whatever the organizer wrote: it must not pass for words of this program

    terminal.print(f"[bold]{escape(theirs(in_language(draft.title, language)))}[/]", highlight=False)
    about = {"organizer": theirs(draft.organizer), "contact": theirs(draft.contact), "notice": draft.privacy_notice}
    about |= {name: write_time(getattr(draft, name)) for name in ("opens", "closes")}
    terminal.print(escape(_phrase("about", language, **about)), highlight=False)
    if closes is not None:
        terminal.print(_phrase("moved", language, closes=write_time(closes)), highlight=False)
    if draft.introduction:
        terminal.print(escape(theirs(in_language(draft.introduction, language))), highlight=False)
    questions, answers = shown_order(draft, secure_random())
    for place in questions:
        question = draft.questions[place]
        if question.kind == "dictionary":
            ends = [theirs(in_language(question.choices[each], language)) for each in (0, 1, -1)]
            ends = dict(zip(("first", "second", "last"), ends, strict=True))
            answer_text = _phrase("dictionary", language, count=count(len(question.choices)), **ends)
        elif question.kind != "number":
            choices = (question.choices[i] for i in answers[place])
            answer_text = ", ".join(theirs(in_language(choice, language)) for choice in choices)
            if question.kind in ("several", "list", "table"):
                answer_text = _phrase("several" if question.kind == "several" else "one", language, answers=answer_text)
        else:
            ends = {name: _decimal(f"{getattr(question, name):g}", language) for name in ("low", "high", "step")}
            answer_text = _phrase("number", language, **ends)
        terminal.print(
            escape(f"{place + 1}. {theirs(in_language(question.text, language))} ({answer_text})"), highlight=False
        )
        if question.explanation:
            terminal.print(escape(f"   {theirs(in_language(question.explanation, language))}"), highlight=False)
    if draft.random_order:
        terminal.print(_phrase("order", language), highlight=False)
    for place in range(len(draft.levels)):
        terminal.print()
        terminal.print(escape(what_is_promised(draft, place, language).text), highlight=False)


def shown_order(draft: Draft, random: Randomness) -> tuple[list[int], list[list[int]]]:
    """Return the order in which a survey is shown: the places of its questions, and of each question's answers.

    Parameters
    ----------
    draft : Draft
        The draft. Where it does not ask for a random order, places ascend.
    random : Randomness
        Source of the order, which is neither kept nor sent.
    """

    def places(count: int, drawn: bool, fixed: int = 0) -> list[int]:
        """Return the places of so many texts, of which the last ``fixed`` stay last."""
        free = count - fixed
        return [*(random.permutation(free).tolist() if drawn else range(free)), *range(free, count)]

    answers: list[list[int]] = []
    for question in draft.questions:
        drawn, none = question.random_order, int(question.optional)
        if question.kind == "table":
            rows, columns = (places(len(texts), drawn, none) for texts in (question.rows, question.columns))
            answers.append([row * len(question.columns) + column for row in rows for column in columns])
        else:
            answers.append(places(len(question.choices), drawn, none if question.choices else 0))
    return places(len(draft.questions), draft.random_order), answers


def _print_spent(task: PostedTask, device: Device, language: str) -> None:
    spent = device.spent(task.draft.organizer)
    if not spent["answers"]:
        return
    local, promise = (_decimal(up(spent[name]), language) for name in ("epsilon0", "promise"))
    apart = ""
    if spent["promise"] < spent["epsilon0"]:  # where one hand ran everything nothing smaller was promised
        apart = _phrase("apart", language, promise=promise, delta=probability(spent["delta"]))
    sent = _phrase("answer" if spent["answers"] == 1 else "answers", language, count=count(spent["answers"]))
    organizer = quoted(task.draft.organizer, language)
    message = _phrase("spent", language, organizer=organizer, answers=sent, local=local, apart=apart)
    console().print(escape(message), highlight=False)


def _print_opened(opened: Opened) -> None:
    from shuffledp.collection.codes import response
    from shuffledp.collection.estimates import JUNK, shift_of_levels
    from shuffledp.collection.kinds_view import covers_line, more_lines, weighted_lines
    from shuffledp.questions.question import CONFIDENCE
    from shuffledp.report.answer import cells, view_of

    draft, manifest, terminal = opened.batch.task.draft, opened.batch.manifest, console()
    terminal.print(f"[bold]{escape(quoted(opened.batch.task.title))}[/]", highlight=False)
    per_question = zip(draft.questions, opened.releases, opened.junk, opened.more, opened.weighted, strict=True)
    for place, (question, release, junk, more, weighted) in enumerate(per_question):
        title, shares = escape(next(iter(question.text.values()))), question.kind != "number"
        view = view_of(release, simultaneous=question.together)
        lines = [(entry.name, *cells(view, entry)) for entry in view.entries()]
        if not view.shape.label:
            ((_, value, _, ends),) = lines
            terminal.print(f"[bold]{title}[/] {value} ({CONFIDENCE:.0%} interval {ends})")
        else:
            table = Table(title=title, title_justify="left")
            for heading in ("answer", "share", "standard error", f"{CONFIDENCE:.0%} interval"):
                table.add_column(heading, justify="left" if heading == "answer" else "right")
            for name, *numbers in lines:
                table.add_row(escape(name), *numbers)
            terminal.print(table)
        for line in (*more_lines(question, more), *weighted_lines(question, weighted)):
            terminal.print(escape(line), highlight=False)
        terminal.print(
            f"{counted(junk.total, 'row')} not used; 5 % of junk could shift this by "
            f"{distance(junk.effect_of_share, shares=shares)}, "
            "5 % of the people counted at another level than theirs by "
            f"{distance(shift_of_levels(draft, place, manifest.counts, JUNK, stated=True), shares=shares)}",
            highlight=False,
        )
    if manifest.codes is not None:
        terminal.print(f"{response(manifest.n, manifest.codes)}.", highlight=False)
    terminal.print(covers_line(manifest.n), highlight=False)
    table = Table(
        title=f"{counted(manifest.n, 'person', 'people')}, delta = {probability(draft.delta)}", title_justify="left"
    )
    central = ("promised", "whoever takes part", "if 95 % are honest")
    for heading in ("level", "people", *(() if draft.operated_by.one_hand else central), "shuffler and analyzer one"):
        table.add_column(heading, justify="left" if heading == "level" else "right")
    for place, (level, people, floor, crowd) in enumerate(
        zip(draft.levels, manifest.counts, opened.floor, opened.crowd, strict=True)
    ):
        row = [escape(next(iter(level.name.values()))), count(people)]
        if not draft.operated_by.one_hand:
            row += [
                up(level.promise),
                up(floor),
                up(crowd) if crowd is not None and crowd_tells(crowd, level.promise) else "–",
            ]
        table.add_row(*row, up(what_is_promised(draft, place).local))
    terminal.print(table)
    _print_verdict(draft, opened.promise_kept)


def _print_verdict(draft: Draft, promise_kept: bool) -> None:
    """Print whether the promises are kept; if one organisation runs everything, none is below the local budgets."""
    if draft.operated_by.one_hand:
        name = escape(quoted(draft.operated_by.analyzer))
        console().print(
            f"{name} both shuffled and analyzed, so nothing below the local budgets is a promise.", highlight=False
        )
    else:
        console().print("Every promise is kept." if promise_kept else "A PROMISE IS NOT KEPT.", style="bold")
