// What a person is promised at one level: the sentences of promises.json, chosen and filled as collection/promise.py
// does. The promise first, then what those who work together would know.
import { ownShare, trueShare } from "./draw.js";
import { PROMISES } from "./words.js";

const NUMBERS = { headline_floor: "promise", headline_local: "local", together: "local", crowd: "crowd" };
const READS = ["together_reads", "together_reads_open", "together_reads_part", "one_hand_reads", "one_hand_reads_part"];
const CROWD_TELLS = 0.95; // the three rules of collection/promise.py
const WOULD_READ = 5;
const ONE_SHUFFLER = 4;
const MEANING = ["meaning_floor", "meaning_local", "several"];
const LEVEL_FIRST = "level_first";
const NARROW_SPACE = "\u202f";

// Only letters and digits make a hand another one, as in collection/asked.py; the four fillers are letters that show nothing.
const folded = (name) => name.normalize("NFKC").toUpperCase().toLowerCase().replace(/[^\p{L}\p{N}]|[\u115f\u1160\u3164\uffa0]/gu, "");
const isSame = (one, ...others) => others.some((other) => folded(one) === folded(other));

// Three significant digits, rounded up: an upper end is never shown too small.
export function roundUp(value) {
  if (!(value > 0 && value < Infinity)) return value;
  const near = Number(value.toPrecision(3));
  return near >= value ? near : Number((near + 10 ** (Math.floor(Math.log10(near)) - 2)).toPrecision(3));
}

export function shown(value, language) {
  if (value === Infinity) return "∞";
  return new Intl.NumberFormat(language, { maximumSignificantDigits: 3, useGrouping: false }).format(roundUp(value));
}

const marks = new Set(PROMISES.marks);
const apostrophes = new Set(PROMISES.apostrophes);

// Words of the task between quotation marks that they cannot end, as in collection/promise.py.
export function quoted(text, language) {
  const [opening, closing] = PROMISES.quotes[language];
  const isMark = (letter) => marks.has(letter) || apostrophes.has(letter);
  const parts = []; // letters, and runs of marks
  for (const letter of text) {
    const last = parts[parts.length - 1];
    if (last !== undefined && isMark(letter) && isMark([...last][0])) parts[parts.length - 1] += letter;
    else parts.push(letter);
  }
  return opening + parts.map((part) => (isMark([...part][0]) && !apostrophes.has(part) ? "'" : part)).join("") + closing;
}

const FOREIGN = ["level", "organizer", "contact", "analyzer", "shuffler", "page", "words"];

// A template of the program with its {names} filled; what the task says stands in quotation marks.
export const fill = (template, values, language) =>
  template.replace(/\{(\w+)\}/g, (_, name) => (FOREIGN.includes(name) ? quoted(values[name], language) : values[name]));

const grouped = (count) => String(count).replace(/\B(?=(\d{3})+$)/g, NARROW_SPACE);

// {headline, local, promise, crowd}: the numbers of a level over all questions, for two answers under open admission.
export function numbersOf(task, level) {
  const local = level.epsilon0 * task.columns.length * (task.admission === "codes" ? 1 : 2);
  const promise = Math.min(level.promise, local);
  const isOneHand = isSame(task.operated_by.analyzer, task.operated_by.shuffler);
  return { headline: isOneHand ? local : promise, local, promise, crowd: Math.min(level.crowd, local), isOneHand };
}

// Whether the number of an honest crowd is worth telling beside the promise.
export const crowdTells = (crowd, promise) => crowd < CROWD_TELLS * promise;

// The chance that at least one of a word's two reports is its own cell.
const eitherCell = ([part, whole]) => [whole * whole - (whole - part) * (whole - part), whole * whole];

// {reads, shares}: "answer" and the chances that a report is the true answer, as [numerator, denominator]; where no
// report can be one, "part" and the chances that a report depends on the answer.
export function whatIsRead(task, level) {
  const asked = task.questions.map(({ family, kind }, j) => ({ family, kind, keep: level.draw[j] }));
  const choices = asked.filter(({ family }) => family.kind === "krr");
  const share = ({ family, kind, keep }) => (kind === "dictionary" ? eitherCell(trueShare(family, keep)) : trueShare(family, keep));
  if (choices.length > 0) return { reads: "answer", shares: choices.map(share) };
  return { reads: "part", shares: asked.map(({ keep }) => ownShare(keep)) };
}

// A chance below 1 as so many of 100 cases: rounded to the nearest, and never to all of them.
export function in100([part, whole], language) {
  for (let digits = 0, unit = 1n; ; digits += 1, unit *= 10n) {
    const cases = (200n * unit * part + whole) / (2n * whole);
    if (cases >= 100n * unit) continue;
    const [ones, rest] = [String(cases / unit), String(cases % unit).padStart(digits, "0")];
    return digits === 0 ? ones : ones + (language === "en" ? "." : ",") + rest;
  }
}

const byChance = ([one, ofOne], [two, ofTwo]) => Number(one * ofTwo > two * ofOne) - Number(one * ofTwo < two * ofOne);

// The smallest and the largest of the chances of a level, as so many of 100 cases.
export function casesOf(task, level, language) {
  const shares = whatIsRead(task, level).shares.sort(byChance);
  return { least: in100(shares[0], language), most: in100(shares[shares.length - 1], language), one: byChance(shares[0], shares[shares.length - 1]) === 0 };
}

// {epsilon0, promise}: what one answer adds to this device's record, as promised.py has it for the command's ledger.
export function spentByAnswering(task, level) {
  const epsilon0 = level.epsilon0 * task.columns.length;
  const isOneHand = isSame(task.operated_by.analyzer, task.operated_by.shuffler);
  return { epsilon0, promise: isOneHand ? epsilon0 : Math.min(level.promise, epsilon0) };
}

// [[key, sentence], ...] in the order they are shown.
export function sentences(task, level, language) {
  const { local, promise, crowd, isOneHand } = numbersOf(task, level);
  const by = task.operated_by;
  const { most, one } = casesOf(task, level, language);
  const holds = {
    one_hand: isOneHand,
    reads: whatIsRead(task, level).reads,
    open: level.epsilon0 >= WOULD_READ,
    above_four: level.epsilon0 > ONE_SHUFFLER,
    crowd_tells: crowdTells(crowd, promise),
    several: task.questions.length > 1,
    codes: task.admission === "codes",
    browser: true,
    page_same_hand: isSame(by.page, by.shuffler, by.analyzer),
  };
  const words = {
    ...by,
    organizer: task.organizer,
    cases: (one ? "" : PROMISES.up_to[language]) + most,
    level: level.name[language] ?? Object.values(level.name)[0],
    local: shown(local, language),
    promise: shown(promise, language),
    crowd: shown(crowd, language),
    local_factor: shown(Math.exp(local), language),
    promise_factor: shown(Math.exp(promise), language),
    odds: grouped(Math.floor((1 / task.delta) * (1 + 2 ** -40))),
    planned: grouped(task.levels.reduce((sum, one) => sum + one.planned, 0)),
    questions: String(task.questions.length),
  };
  return PROMISES.order
    .filter(({ when }) => Object.entries(when).every(([name, value]) => holds[name] === value))
    .map(({ key }) => [key, fill(PROMISES.sentences[language][key], words, language)]);
}

// Keeps signs on the line of the word before them: French and German put a space between.
export const typeset = (text) => text.replace(/ (?=[:;?!%»≤])/g, "\u00a0").replace(/([«≤]) /g, "$1\u00a0");

// The same, sorted by where the page shows them: beside a figure, as an explanation, as what is not promised.
export function promised(task, level, language) {
  const told = sentences(task, level, language).map(([key, sentence]) => [key, typeset(sentence)]);
  const of = (wanted) => told.filter(([key]) => wanted(key)).map(([, sentence]) => sentence);
  const values = numbersOf(task, level);
  const cases = typeset(`${casesOf(task, level, language).most} %`);
  return {
    numbers: told
      .filter(([key]) => key in NUMBERS || READS.includes(key))
      .map(([key, sentence]) => ({ figure: key in NUMBERS ? shown(values[NUMBERS[key]], language) : cases, sentence })),
    meaning: of((key) => MEANING.includes(key)),
    first: of((key) => key === LEVEL_FIRST),
    limits: of((key) => !(key in NUMBERS) && !READS.includes(key) && !MEANING.includes(key) && key !== LEVEL_FIRST),
  };
}
