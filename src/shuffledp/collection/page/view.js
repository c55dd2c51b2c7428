// Pieces of the page: elements made without any HTML text, and numbers and words in the reader's language.
import { WORDS } from "./words.js";
import { fill, shown, typeset } from "./promise.js";

// An element. Attributes are set as such, but "onclick" and the like as listeners, true as an empty attribute, and
// false, null and undefined not at all; children are nodes, texts, or lists of them.
export function el(name, attributes = {}, ...children) {
  const element = document.createElement(name);
  for (const [key, value] of Object.entries(attributes)) {
    if (key.startsWith("on")) element.addEventListener(key.slice(2), value);
    else if (value !== false && value !== null && value !== undefined)
      element.setAttribute(key, value === true ? "" : value);
  }
  element.append(...children.flat(Infinity).filter((child) => child !== null && child !== undefined && child !== false));
  return element;
}

// {language, say, text, number, up, date}: how this reader reads.
export function reader(language) {
  const locale = navigator.languages.find((name) => name.split("-")[0] === language) ?? language;
  const number = (value, options) => new Intl.NumberFormat(locale, options).format(value);
  return {
    language,
    say: (key, values) => {
      const template = WORDS[language][key];
      if (template === undefined) throw new Error(`no words for ${key}`);
      return typeset(fill(template, values ?? {}, language));
    },
    // A text of the task: in the reader's language where it has one, else marked as what it is.
    text: (texts) => {
      const found = [language, "en", Object.keys(texts)[0]].find((name) => name in texts);
      return found === language ? texts[found] : el("span", { lang: found }, texts[found]);
    },
    plain: (texts) => texts[language] ?? texts.en ?? Object.values(texts)[0],
    number,
    up: (value) => shown(value, language),
    date: (time) => new Intl.DateTimeFormat(locale, { dateStyle: "long", timeStyle: "short" }).format(new Date(time)),
    day: (date) => new Intl.DateTimeFormat(locale, { dateStyle: "medium", timeZone: "UTC" }).format(new Date(date)),
  };
}

export function section(id, title, ...children) {
  const heading = `${id}-title`;
  return el("section", { id, "aria-labelledby": heading }, el("h2", { id: heading, tabindex: "-1" }, title), children);
}

export const button = (label, onclick, kind = "primary") => el("button", { type: "button", class: kind, onclick }, label);

// What stands between a question and its answers.
const explained = ({ text, plain, say }, question) => [
  question.explanation && el("p", { class: "quiet" }, text(question.explanation)),
  question.optional && el("p", { class: "quiet" }, say("optional", { words: plain(question.choices[question.choices.length - 1]) })),
];

// Radio buttons of one question, as large rows; `error` stands below once there is one.
export function choiceField(reader, question, j, chosen, onchange) {
  const { text, say } = reader;
  return el(
    "fieldset",
    { class: "question", id: `q${j}` },
    el("legend", {}, text(question.text)),
    explained(reader, question),
    question.shown.map((i) =>
      el(
        "label",
        { class: "row" },
        el("input", { type: "radio", name: `q${j}`, value: i, checked: chosen === i, onchange: () => onchange(i) }),
        el("span", {}, text(question.choices[i])),
      ),
    ),
    el("p", { class: "error", id: `q${j}-error`, hidden: true }, say("missingChoice")),
  );
}

// Boxes to check: the answer is the set of those that are checked, as bits. None is an answer, too; of an optional
// question "no answer", the last box, stands alone.
export function severalField(reader, question, j, chosen, onchange) {
  const { text, say } = reader;
  let checked = chosen ?? 0;
  const isChecked = (i) => Math.floor(checked / 2 ** i) % 2 === 1;
  const none = question.optional ? question.choices.length - 1 : -1;
  const field = () => document.getElementById(`q${j}`);
  const toggle = (i) => {
    checked += isChecked(i) ? -(2 ** i) : 2 ** i;
    if (i === none && isChecked(none)) checked = 2 ** none;
    else if (i !== none && none >= 0 && isChecked(none)) checked -= 2 ** none;
    for (const input of field().querySelectorAll("input")) input.checked = isChecked(Number(input.value));
    onchange(checked);
  };
  return el(
    "fieldset",
    { class: "question", id: `q${j}` },
    el("legend", {}, text(question.text)),
    explained(reader, question),
    el("p", { class: "quiet" }, say("checkAll")),
    question.shown.map((i) =>
      el(
        "label",
        { class: "row" },
        el("input", { type: "checkbox", name: `q${j}`, value: i, checked: isChecked(i), onchange: () => toggle(i) }),
        el("span", {}, text(question.choices[i])),
      ),
    ),
    el("p", { class: "error", id: `q${j}-error`, hidden: true }, say("missingChoice")),
  );
}

// Two groups of radio buttons, for a table's row and its column; an answer once both are chosen.
export function tableField(reader, question, j, chosen, onchange) {
  const { text, say } = reader;
  const width = question.columns.length;
  const at = chosen === null ? [null, null] : [Math.floor(chosen / width), chosen % width];
  const choose = (part, i) => {
    at[part] = i;
    onchange(at.includes(null) ? null : at[0] * width + at[1]);
  };
  const group = (part, texts, label) =>
    el(
      "fieldset",
      { class: "part" },
      el("legend", {}, label),
      question.shown[part].map((i) =>
        el(
          "label",
          { class: "row" },
          el("input", { type: "radio", name: `q${j}-${part}`, value: i, checked: at[part] === i, onchange: () => choose(part, i) }),
          el("span", {}, text(texts[i])),
        ),
      ),
    );
  return el(
    "fieldset",
    { class: "question", id: `q${j}` },
    el("legend", {}, text(question.text)),
    explained(reader, question),
    group(0, question.rows, say("tableFirst")),
    group(1, question.columns, say("tableSecond")),
    el("p", { class: "error", id: `q${j}-error`, hidden: true }, say("missingTable")),
  );
}

// A menu of many words.
export function listField(reader, question, j, chosen, onchange) {
  const { text, plain, say } = reader;
  const options = question.choices.map((word, i) => el("option", { value: i, selected: chosen === i }, plain(word)));
  const none = el("option", { value: "", selected: chosen === null }, say("chooseWord"));
  const menu = el("select", { id: `q${j}-word`, "aria-describedby": `q${j}-error` }, none, options);
  menu.addEventListener("change", () => onchange(menu.value === "" ? null : Number(menu.value)));
  return el(
    "fieldset",
    { class: "question", id: `q${j}` },
    el("legend", {}, text(question.text)),
    explained(reader, question),
    el("p", { class: "field" }, el("label", { for: `q${j}-word` }, say("word")), menu),
    el("p", { class: "error", id: `q${j}-error`, hidden: true }, say("missingChoice")),
  );
}

const normal = (word) => word.normalize("NFC").trim().replace(/\s+/g, " ").toLowerCase();

// A field for one of very many words, which suggests those that begin like what is typed; a button for each answer that
// is no word. Nothing that is typed leaves the page.
export function dictionaryField(reader, question, j, chosen, onchange) {
  const { text, plain, say } = reader;
  const words = question.choices.map(plain);
  const places = new Map(words.map((word, i) => [normal(word), i]));
  const hints = { list: `q${j}-words`, autocomplete: "off", autocapitalize: "none", spellcheck: "false", "aria-describedby": `q${j}-error` };
  const typed = el("input", { type: "text", id: `q${j}-word`, ...hints });
  if (chosen !== null) typed.value = words[chosen];
  typed.addEventListener("input", () => onchange(places.get(normal(typed.value)) ?? null));
  const others = question.more.map((other, i) => {
    const place = words.length - question.more.length + i;
    return button(text(other), () => ((typed.value = words[place]), onchange(place)), "secondary");
  });
  return el(
    "fieldset",
    { class: "question", id: `q${j}` },
    el("legend", {}, text(question.text)),
    explained(reader, question),
    el("p", { class: "quiet" }, say("dictionaryHow", { words: plain(question.more[0]) })),
    el("p", { class: "field" }, el("label", { for: `q${j}-word` }, say("word")), typed),
    el("datalist", { id: `q${j}-words` }, words.map((word) => el("option", { value: word }))),
    others,
    el("p", { class: "error", id: `q${j}-error`, hidden: true }, say("missingWord")),
  );
}

export const valueOf = (question, answer) => Number((question.low + answer * question.step).toPrecision(15));

// The answer whose number was typed: a whole count of steps from the low end; null if there is none.
export function answerOf(question, typed) {
  const value = typed.trim() === "" ? NaN : Number(typed);
  const answer = Math.round((value - question.low) / question.step);
  const isStep = Math.abs(valueOf(question, answer) - value) <= 1e-6 * question.step;
  return isStep && answer >= 0 && answer < question.family.records ? answer : null;
}

// A slider and a number field that show the same number; neither has one before the person touches it.
export function numberField(reader, question, j, chosen, onchange) {
  const { text, say, number } = reader;
  const limits = { min: question.low, max: question.high, step: question.step };
  const ends = { low: number(question.low), high: number(question.high), step: number(question.step) };
  const middle = valueOf(question, Math.floor((question.family.records - 1) / 2));
  const known = chosen === null ? null : valueOf(question, chosen);
  const describe = { "aria-describedby": `q${j}-error` };
  const typed = el("input", { type: "number", id: `q${j}-number`, inputmode: "decimal", ...limits, ...describe });
  const slider = el("input", { type: "range", class: "unset", ...limits, "aria-label": say("slider", ends) });
  const show = (value) => {
    slider.value = value ?? middle;
    slider.classList.toggle("unset", value === null);
    slider.setAttribute("aria-valuetext", value === null ? say("noNumber") : number(value));
  };
  if (known !== null) typed.value = known;
  show(known);
  slider.addEventListener("input", () => {
    typed.value = slider.value;
    show(Number(slider.value));
    onchange(answerOf(question, slider.value));
  });
  typed.addEventListener("input", () => {
    const answer = answerOf(question, typed.value);
    show(answer === null ? null : valueOf(question, answer));
    onchange(answer);
  });
  return el(
    "fieldset",
    { class: "question", id: `q${j}` },
    el("legend", {}, text(question.text)),
    explained(reader, question),
    el("p", { class: "number" }, el("label", { for: `q${j}-number` }, say("number")), typed),
    slider,
    el("p", { class: "ends", "aria-hidden": "true" }, el("span", {}, ends.low), el("span", {}, ends.high)),
    el("p", { class: "error", id: `q${j}-error`, hidden: true }, say("missingNumber", ends)),
  );
}

// A field for a one-time code; onuse resolves to false where the text is none.
export function codeField({ say }, onuse) {
  const error = el("p", { class: "error", id: "code-error", hidden: true }, say("codeBad"));
  const plain = { type: "text", autocomplete: "off", autocapitalize: "none", spellcheck: "false" };
  const field = el("input", { id: "code", ...plain, "aria-describedby": "code-error" });
  const use = async () => {
    if (await onuse(field.value)) return;
    error.hidden = false;
    field.focus();
  };
  return [el("p", { class: "field" }, el("label", { for: "code" }, say("codeLabel")), field), error, button(say("codeUse"), use)];
}

export function table(caption, heads, rows) {
  return el(
    "div",
    { class: "scroll", tabindex: "0", role: "region", "aria-label": caption },
    el(
      "table",
      {},
      el("thead", {}, el("tr", {}, heads.map((head) => el("th", { scope: "col" }, head)))),
      el("tbody", {}, rows.map((row) => el("tr", {}, row.map((cell) => el("td", {}, cell))))),
    ),
  );
}
