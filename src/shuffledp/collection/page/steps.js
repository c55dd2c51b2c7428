// The steps of answering, as sections: what is asked, the code, the level, the answer, sending.
import { casesOf, numbersOf, promised, whatIsRead } from "./promise.js";
import { button, choiceField, codeField, dictionaryField, el, listField, numberField, section, severalField, tableField } from "./view.js";

const FIELDS = { choice: choiceField, scale: choiceField, several: severalField, number: numberField, table: tableField, list: listField, dictionary: dictionaryField };

// What stands before anything was chosen: "no answer" where a question may be left out. Else of several options none is
// an answer, and of other questions nothing is.
export const unanswered = (task) =>
  task.questions.map(({ kind, optional, choices }) => {
    if (kind === "several") return optional ? 2 ** (choices.length - 1) : 0;
    return optional ? choices.length - 1 : null;
  });

// How many of those who were invited have answered; null where nobody was invited by a code, or few have answered.
export function responseWords({ say, number }, { held, invited }) {
  if (!(held > 0 && invited >= held)) return null;
  const share = number(held / invited, { style: "percent", maximumFractionDigits: 0 });
  return say("response", { held: number(held), invited: number(invited), share });
}

// Who asks, and what; at length only before the first step.
export function introduction(reader, task, atLength, response) {
  const { say, text, date } = reader;
  return el(
    "header",
    { class: "title" },
    el("p", { class: "asks" }, say("asks", { organizer: task.organizer })),
    el("h1", {}, text(task.title)),
    atLength && task.introduction && el("p", { class: "lead" }, text(task.introduction)),
    atLength && el("p", { class: "lead" }, say("intro")),
    atLength && task.levels.length > 1 && el("p", {}, say("introLevel")),
    atLength && el("p", { class: "quiet" }, say("until", { closes: date(task.closes) }), " ", responseWords(reader, response)),
  );
}

export function asked(reader, task) {
  const { say, text } = reader;
  return section(
    "asked",
    say("asked"),
    el(
      "ol",
      { class: task.questions.length > 1 ? "asked" : "asked single" },
      task.shown.map((j) => task.questions[j]).map((question) =>
        el(
          "li",
          {},
          el("p", { class: "question-text" }, text(question.text)),
          question.explanation && el("p", { class: "quiet" }, text(question.explanation)),
          answersOf(reader, question),
        ),
      ),
    ),
  );
}

// The answers that a question has: its choices, a range, the headings of a table, or words to unfold.
function answersOf({ say, text, number }, question) {
  const listed = (texts, shown) => el("ul", { class: "choices" }, shown.map((i) => el("li", {}, text(texts[i]))));
  const choices = () => listed(question.choices, question.shown);
  if (question.kind === "number") return el("p", { class: "quiet" }, say("askedRange", { low: number(question.low), high: number(question.high) }));
  if (question.kind === "table") return [question.rows, question.columns].map((texts, part) => listed(texts, question.shown[part]));
  if (question.kind === "several") return [el("p", { class: "quiet" }, say("checkAll")), choices()];
  if (question.kind === "dictionary") {
    const words = el("p", {}, question.words.split("\n").join(", "));
    return [el("details", {}, el("summary", {}, say("askedWords", { count: number(question.choices.length) })), words), listed(question.more, question.more.map((_, i) => i))];
  }
  if (question.kind !== "list") return choices();
  return el("details", {}, el("summary", {}, say("askedWords", { count: number(question.choices.length) })), choices());
}

export function codeStep(reader, count, onuse) {
  const { say } = reader;
  return section(
    "code-step",
    say("codeTitle"),
    count > 0 && el("p", {}, say("alreadyHere", { count })),
    el("p", {}, say("codeWhy")),
    codeField(reader, onuse),
  );
}

// This device has answered this collection under another code: the same person must not be drawn for a second time.
export function whoStep(reader, count, refused, onsame, onother) {
  const { say } = reader;
  return section(
    "who",
    say("whoTitle"),
    el("p", {}, say("alreadyHere", { count })),
    el("p", {}, say("whoWhy")),
    refused && [el("p", {}, say("codeAgain")), button(say("whoSame"), onsame)],
    button(say("anotherPerson"), onother, "secondary"),
  );
}

// How often what is sent is the true answer or, where no report can be one, depends on it.
function decides(reader, task, level) {
  const { least, most, one } = casesOf(task, level, reader.language);
  const isAnswer = whatIsRead(task, level).reads === "answer";
  if (one) return reader.say(isAnswer ? "levelTrue" : "levelShare", { share: most });
  return reader.say(isAnswer ? "levelTrues" : "levelShares", { low: least, high: most });
}

export function levelStep(reader, task, chosen, onchoose, onfix) {
  const { say, text, plain } = reader;
  const panel = el("div", { class: "promises" });
  const fix = button(say("levelFix"), onfix);
  const choose = (i) => {
    onchoose(i);
    fix.disabled = false;
    panel.replaceChildren(...promises(reader, task, task.levels[i], plain(task.levels[i].name)).filter(Boolean));
  };
  const rows = task.levels.map((level, i) => {
    const input = el("input", { type: "radio", name: "level", value: i, checked: i === chosen, onchange: () => choose(i) });
    const name = el("span", { class: "name" }, text(level.name));
    const headline = el("span", { class: "figure" }, "ε\u00a0≤\u00a0", reader.up(numbersOf(task, level).headline));
    return el("label", { class: "row level" }, input, name, headline, el("span", { class: "share" }, decides(reader, task, level)));
  });
  fix.disabled = chosen === null;
  if (chosen !== null) choose(chosen);
  return section(
    "level",
    say("levelTitle"),
    promised(task, task.levels[0], reader.language).first.map((sentence) => el("p", {}, sentence)),
    el("fieldset", { class: "levels" }, el("legend", { class: "hidden" }, say("levelLegend")), rows),
    panel,
    fix,
    el("p", { class: "quiet" }, say("levelFinal")),
  );
}

// What stands in the place of the choice where there is one level: what it promises.
export function onlyLevel(reader, task) {
  const [level] = task.levels;
  const panel = el("div", { class: "promises" }, promises(reader, task, level, reader.plain(level.name)));
  return section("level", reader.say("levelOnly"), el("p", {}, decides(reader, task, level)), panel);
}

// The numbers of a level, each with its own enemy, and what they do not cover.
function promises(reader, task, level, name) {
  const { numbers, limits, meaning } = promised(task, level, reader.language);
  return [
    task.levels.length > 1 && el("h3", {}, reader.say("promised", { level: name })),
    el("dl", {}, numbers.map(({ figure, sentence }) => el("div", {}, el("dt", {}, figure), el("dd", {}, sentence)))),
    el("details", {}, el("summary", {}, reader.say("meaning")), meaning.map((sentence) => el("p", {}, sentence))),
    el("h3", {}, reader.say("limits")),
    el("ul", {}, limits.map((sentence) => el("li", {}, sentence))),
  ];
}

export function answerStep(reader, task, levelNumber, answers, onanswer) {
  const { say, plain } = reader;
  return section(
    "answer",
    say("answerTitle"),
    task.levels.length > 1 && el("p", { class: "fixed" }, say("levelFixed", { level: plain(task.levels[levelNumber].name) })),
    task.shown.map((j) => {
      const question = task.questions[j];
      return FIELDS[question.kind](reader, question, j, answers[j], (answer) => {
        onanswer(j, answer);
        if (answer !== null) showMissing(j, false);
      });
    }),
  );
}

function showMissing(j, missing) {
  const field = document.getElementById(`q${j}`);
  document.getElementById(`q${j}-error`).hidden = !missing;
  for (const input of field.querySelectorAll("input:not([type=range]), select")) {
    if (missing) input.setAttribute("aria-describedby", `q${j}-error`);
    if (input.type === "number") input.setAttribute("aria-invalid", missing);
  }
}

// Marks every question without an answer and moves to the first as they are shown; true if all are answered.
export function allAnswered(shown, answers) {
  answers.forEach((answer, j) => showMissing(j, answer === null));
  const first = shown.find((j) => answers[j] === null);
  if (first !== undefined) document.getElementById(`q${first}`).querySelector("input, select").focus();
  return first === undefined;
}

// What this device has told the organizer, added up, and what it will have told: plain adding is always valid.
export function spentLines(reader, task, lines, next) {
  const { say } = reader;
  const earlier = lines.filter((line) => line.organizer === task.organizer);
  const sum = (records) => {
    const count = records.length;
    const collections = count === 1 ? say("spentOne") : say("spentMany", { count });
    const [promise, local] = ["promise", "epsilon0"].map((key) => records.reduce((whole, record) => whole + record[key], 0));
    // where one hand ran everything, nothing below the local budgets was promised
    return say(promise < local ? "spentTwoHands" : "spentOneHand", { collections, promise: reader.up(promise), local: reader.up(local) });
  };
  const before = earlier.length
    ? say("spent", { organizer: task.organizer, before: sum(earlier) })
    : say("spentNone", { organizer: task.organizer });
  return [before, say("spentThen", { after: sum([...earlier, next]) }), earlier.length ? say("spentDevice") : null];
}

export function sendStep(reader, task, lines, next, onsend) {
  const { say, number } = reader;
  const button_ = button(say("send"), () => onsend(button_));
  return section(
    "send",
    say("sendTitle"),
    spentLines(reader, task, lines, next).map((line) => line && el("p", {}, line)),
    el("p", { class: "quiet" }, say("sendWhat", { bytes: number(task.size) })),
    button_,
  );
}
