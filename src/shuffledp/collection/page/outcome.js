// What comes after sending, as sections: what became of the report, the device's record, the result.
import { promised } from "./promise.js";
import { button, el, fill, section, table } from "./view.js";

// `record` is the person's own; `others` how many reports of other people wait on this device.
export function sentStep(reader, task, record, { lasting, others, again, another }) {
  const { say, date } = reader;
  const contact = { contact: task.contact };
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
  return section("sent", say("refusedTitle"), el("p", {}, say(`refused.${record.reason}`, contact)), next);
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
  const counts = task.questions.map((question) => number(question.dummies.count)).join(", ");
  return el(
    "details",
    { id: "checks" },
    el("summary", {}, say("details")),
    el("p", {}, say("detailsPage", task.operated_by)),
    el("p", {}, say("detailsDummies", { counts })),
    el("p", {}, say(task.signed ? "detailsSigned" : "detailsUnsigned")),
    el("p", {}, say("detailsId"), el("br"), el("code", {}, task.id)),
    el("p", {}, say("contact", { contact: task.contact })),
    el("p", {}, el("a", { href: task.privacy_notice, rel: "noreferrer" }, say("privacyNotice"))),
  );
}
