// What comes after sending, as sections: what became of the report, the device's record, the result.
import { crowdTells, numbersOf } from "./promise.js";
import { button, codeField, el, section, table } from "./view.js";

// What became of the report of `record`, the person's own; `others` reports of other people wait on this device.
export function sentStep(reader, task, record, around) {
  const shown = sentWords(reader, task, record, around);
  shown.dataset.state = record.state;
  return shown;
}

function sentWords(reader, task, record, { lasting, others, again, another, replaceCode }) {
  const { say, date } = reader;
  const next = task.codeBytes > 0 && record.state !== "waiting" && anotherPerson(say, another);
  if (record.state === "waiting")
    return section(
      "sent",
      say("waitingTitle"),
      el("p", {}, say(lasting ? "waiting" : "waitingMemory")),
      others > 0 && el("p", {}, say("waitingOthers", { count: others })),
      button(say("sendNow"), again, "secondary"),
    );
  if (record.state === "held")
    return section("sent", say("heldTitle"), el("p", {}, say("held")), el("p", {}, say("resultLater", { closes: date(task.closes) })), next);
  if (record.state === "unclear") return section("sent", say("unclearTitle"), el("p", {}, say("unclear")), next);
  const fresh = record.reason === "code" && [el("p", {}, say("codeAgain")), codeField(reader, replaceCode)];
  return section("sent", say("refusedTitle"), el("p", {}, say(`refused.${record.reason}`, { contact: task.contact })), fresh, next);
}

const anotherPerson = (say, another) => [
  button(say("anotherPerson"), another, "secondary"),
  el("p", { class: "quiet" }, say("anotherWhy")),
];

export const notice = (id, title, text, ...more) => section(id, title, el("p", {}, text), more);

export function ledger(reader, lines) {
  const { say, up, day } = reader;
  const heads = ["ledgerDate", "ledgerWho", "ledgerLevel", "ledgerState"].map((key) => say(key));
  const rows = lines.map((line) => [
    day(line.date),
    line.organizer,
    line.promise < line.epsilon0 ? `${up(line.promise)} (${up(line.epsilon0)})` : up(line.epsilon0),
    say(`state.${line.state}`),
  ]);
  return el(
    "details",
    { id: "ledger" },
    el("summary", {}, say("ledgerTitle")),
    el("p", { class: "quiet" }, say("ledgerWhy")),
    table(say("ledgerTitle"), heads, rows),
  );
}

export function checks(reader, task) {
  const { say, number } = reader;
  const counts = task.columns.map(({ dummies }) => number(dummies)).join(", ");
  return el(
    "details",
    { id: "checks" },
    el("summary", {}, say("details")),
    el("p", {}, say("detailsPage", task.operated_by)),
    el("p", {}, say("detailsDummies", { counts })),
    el("p", {}, say(task.signed ? "detailsSigned" : "detailsUnsigned")),
    el("p", {}, say("detailsId"), el("br"), el("code", {}, task.id)),
  );
}

// Who answers questions, and what the organizer says of personal data: at the foot of every step.
export function foot({ say }, task) {
  return el(
    "footer",
    { id: "foot", class: "quiet" },
    el("p", {}, say("contact", { contact: task.contact })),
    el("p", {}, el("a", { href: task.privacy_notice, rel: "noreferrer" }, say("privacyNotice"))),
  );
}

const CONFIDENCE = 95;
const ofLevel = (values, task, i) => values[Object.values(task.levels[i].name)[0]] ?? Object.values(values)[i];
const toPercent = (share) => Math.min(Math.max(100 * share, 0), 100);

// The release in words: what came out for each question, and what the analyzer certified.
export function result(reader, task, { releases, collection, signed }, invited) {
  const { say, text, number } = reader;
  const counts = task.levels.map((_, i) => ofLevel(collection.counts, task, i));
  const people = counts.reduce((sum, count) => sum + count, 0);
  return section(
    "result",
    say("resultTitle"),
    el("p", {}, invited >= people ? say("resultOf", { count: number(people), invited: number(invited) }) : say("resultFrom", { count: number(people) })),
    task.questions.map((question, j) =>
      el(
        "div",
        { class: "outcome" },
        el("h3", { class: "question-text" }, text(question.text)),
        outcomeOf(reader, question, releases[j]),
        compared(reader, question, releases[j]),
        weightedTo(reader, question, releases[j].weighted),
      ),
    ),
    el("p", { class: "quiet" }, say("resultSure", { confidence: number(CONFIDENCE) })),
    certified(reader, task, collection, counts),
    el("p", { class: "quiet" }, say(signed ? "resultChecked" : "resultUnchecked")),
  );
}

// Of a dictionary the words that are present, and those that cannot be told apart from others of their cells.
function dictionary(reader, { choices }, { present, possible, estimates }) {
  const { say, plain, number } = reader;
  const named = new Map(choices.map((choice) => [Object.values(choice)[0], choice]));
  const of = new Map(estimates.map((each) => [each.category, each]));
  const called = (word) => plain(named.get(word) ?? { en: word });
  const pairs = possible.map(({ word, not_told_from: others }) => say("resultOr", { word: called(word), others: others.map(called).join(", ") }));
  return [
    el("p", {}, say("resultPresent", { count: number(present.length) })),
    shares(reader, present.map((word) => named.get(word)), present.map((word) => of.get(word))),
    pairs.length > 0 && el("p", {}, say("resultPossible", { pairs: pairs.join("; ") })),
  ];
}

// Shares, or a mean; of a scale both, of a table its margins before the cells, of a list the words that are present.
function outcomeOf(reader, question, release) {
  const { choices } = question;
  if (question.kind === "number") return mean(reader, question, release);
  if (question.kind === "table")
    return [
      shares(reader, question.rows, release.margins.rows),
      shares(reader, question.columns, release.margins.columns),
      el("details", {}, el("summary", {}, reader.say("resultCells")), shares(reader, choices, release.estimates)),
    ];
  if (question.kind === "list") {
    const there = choices.map((_, i) => i).filter((i) => release.present.includes(Object.values(choices[i])[0]));
    const words = shares(reader, there.map((i) => choices[i]), there.map((i) => release.estimates[i]));
    return [el("p", {}, reader.say("resultPresent", { count: reader.number(there.length) })), words];
  }
  if (question.kind === "dictionary") return dictionary(reader, question, release);
  const found = shares(reader, choices, release.estimates);
  if (question.kind !== "scale") return found;
  const [low, high] = [question.values[0], question.values[question.values.length - 1]];
  return [mean(reader, { low, high }, release.mean), found];
}

function shares({ say, text, number }, choices, estimates) {
  const percent = (share) => number(toPercent(share), { maximumFractionDigits: 0 });
  return el(
    "ul",
    { class: "shares" },
    choices.map((choice, i) => {
      const { frequency, confidence_interval: ends } = estimates[i];
      const [bar, range] = [el("div", { class: "bar" }), el("div", { class: "range" })];
      bar.style.width = `${toPercent(frequency)}%`;
      range.style.left = `${toPercent(ends[0])}%`;
      range.style.width = `${toPercent(ends[1]) - toPercent(ends[0])}%`;
      const said = say("resultChoice", { share: percent(frequency), low: percent(ends[0]), high: percent(ends[1]) });
      return el("li", {}, el("div", { class: "line" }, el("span", {}, text(choice)), el("span", {}, said)), el("div", { class: "track" }, bar, range));
    }),
  );
}

// Which answers differ, and which rows of a table, all comparisons together: those whose interval leaves 0 out.
function compared({ say, plain, number }, question, { differences = [], group_differences: groups = [] }) {
  const points = (share) => number(100 * share, { minimumFractionDigits: 1, maximumFractionDigits: 1 });
  const ends = ({ interval_together: together, confidence_interval: alone }) => together ?? alone;
  const isApart = (each) => ends(each)[0] > 0 || ends(each)[1] < 0;
  const named = (texts, name) => plain(texts.find((each) => Object.values(each)[0] === name) ?? { en: name });
  const told = (key, each, line) =>
    each.length > 0 &&
    el("p", {}, say(key, { count: number(each.length), pairs: each.filter(isApart).map(line).join("; ") || say("resultNone") }));
  const less = (each) => {
    const [one, two] = [each.of, each.minus].map((name) => named(question.rows, name));
    const [value, low, high] = [each.estimate, ...ends(each)].map(points);
    return say("resultLess", { answer: named(question.columns, each.answer), one, two, value, low, high });
  };
  const pair = ({ of, minus }) => say("resultPair", { one: named(question.choices, of), two: named(question.choices, minus) });
  return [told("resultDiffer", differences, pair), told("resultGroups", groups, less)];
}

// A table led to public counts: of its rows or columns, whichever these do not count, or of its cells.
function weightedTo(reader, question, weighted) {
  if (weighted === undefined) return [];
  const { say, number } = reader;
  const { rows, columns, estimates, margins, missing, population } = weighted;
  const [texts, found] = rows ? [question.rows, rows] : columns ? [question.columns, columns] : [question.choices, estimates];
  const variables = Object.values(margins).map(({ variable }) => variable).join(", ");
  const absent = typeof missing === "number" && say("resultMissing", { missing: number(missing), population: number(population) });
  return [
    el("p", {}, say("resultWeighted", { variables })),
    shares(reader, texts, found),
    el("p", { class: "quiet" }, absent && `${absent} `, say("resultWhom")),
  ];
}

const finite = (value, limit) => (typeof value === "number" ? value : limit); // "inf" and "-inf" are written as text

function mean({ say, number }, question, { estimate, standard_error: error, confidence_interval: ends }) {
  const inside = (value) => Math.min(Math.max(value, question.low), question.high);
  const [low, high] = [inside(finite(ends[0], question.low)), inside(finite(ends[1], question.high))];
  // To the second digit of the error, or of half the interval where the range cuts it to less.
  const finest = Math.min(finite(error, Infinity), (high - low) / 2 || Infinity);
  const digits = Math.min(Math.max(1 - Math.floor(Math.log10(finest || 1)), 0), 12);
  const near = (value) => number(value, { maximumFractionDigits: digits });
  return el("p", { class: "lead" }, say("resultNumber", { value: near(inside(estimate)), low: near(low), high: near(high) }));
}

function certified({ say, text, number, up }, task, collection, counts) {
  const epsilon = (values, i) => {
    const value = ofLevel(values, task, i);
    return value === null ? "–" : up(Number(value === "inf" ? Infinity : value));
  };
  const crowd = (level, i) => (crowdTells(Number(ofLevel(collection.crowd, task, i)), level.promise) ? epsilon(collection.crowd, i) : "–");
  const { isOneHand } = numbersOf(task, task.levels[0]);
  const heads = ["resultLevel", "resultPeople", ...(isOneHand ? ["resultLocal"] : ["resultFloor", "resultCrowd"])];
  const rows = task.levels.map((level, i) => [
    text(level.name),
    number(counts[i]),
    ...(isOneHand ? [up(numbersOf(task, level).local)] : [epsilon(collection.floor, i), crowd(level, i)]),
  ]);
  return [
    el("h3", {}, say("resultPromise")),
    table(say("resultPromise"), heads.map((key) => say(key)), rows),
    !isOneHand && el("p", {}, say(collection.promise_kept ? "resultKept" : "resultNotKept")),
    collection.junk_seen > 0 && el("p", {}, say("resultJunk", { count: number(collection.junk_seen) })),
  ];
}
