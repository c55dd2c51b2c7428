// A posted task: its bytes checked, its draft read. The hash of the bytes is the task's name.
import { opensToAnybody, signsForAnybody } from "./keys.js";
import { SEALED_OVERHEAD, join, sha256, signedBy } from "./hpke.js";
import { checkPromises } from "./ball.js";
import { checkLaw, readFamily, reportBytes } from "./draw.js";

const MAGIC = [0x53, 0x48, 0x46, 0x54]; // "SHFT"; the version follows
const HEAD = 9; // magic, version, length of the draft
const TAIL = 32 + 32 + 64; // the shuffler's key, its identity, its signature
const CODE = 16;
const MOST_STEPS = 2 ** 31;
const MOST_OPTIONS = 32;
const MOST_CELLS = 64;
const MOST_CHOICES = 1000;
const MOST_WORDS = 20000; // of a dictionary, which has more words than a list
const WORD_CELLS = 1024;
const MOST_COLUMNS = 64;
const MOST_ANSWERS = 64; // of a question with normal dummies
const MOST_WEIGHTS = 1025;
const DRAFT =
  "version suite title organizer contact privacy_notice operated_by questions levels delta admission at_least " +
  "opens closes expires stop_at analyzer_key analyzer_identity retention_days";
const KEYS = { draft1: DRAFT, draft2: `${DRAFT} dummies introduction order`, level: "name epsilon0 draw planned promise crowd" };
const ANSWERS = { choice: "choices", number: "low high step", scale: "choices values", several: "options", table: "rows columns", list: "words", dictionary: "words more" };
const UNORDERED = ["choice", "several", "table"]; // kinds whose answers may be shown in a random order

// The label by which bytes of one use and version are signed, sealed or hashed.
export const label = (version, use) => new TextEncoder().encode(`shuffledp/${version} ${use}\0`);

export function toBase64url(bytes) {
  return btoa(String.fromCharCode(...bytes)).replace(/\+/g, "-").replace(/\//g, "_").replace(/=+$/, "");
}

// Bytes of unpadded base64url text; throws on anything else, also on another spelling of the same bytes.
export function fromBase64url(text) {
  need(/^[A-Za-z0-9_-]*$/.test(text), "base64url");
  const bytes = Uint8Array.from(atob(text.replace(/-/g, "+").replace(/_/g, "/")), (c) => c.charCodeAt(0));
  need(toBase64url(bytes) === text, "base64url");
  return bytes;
}

function need(condition, what) {
  if (!condition) throw new Error(what);
}

function onlyKeys(object, keys) {
  need(object !== null && typeof object === "object", keys);
  const known = keys.split(" ");
  for (const key of Object.keys(object)) need(known.includes(key), `unknown key ${key}`);
}

const isTime = (text) => /^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\dZ$/.test(text) && !Number.isNaN(Date.parse(text));
const isDecimal = (keep) => typeof keep === "string" && /^(0|[1-9][0-9]{0,19})$/.test(keep);
const isCount = (value, most) => Number.isSafeInteger(value) && value >= 1 && value <= most;

// The families of a kind: version 1 knows choices and numbers alone, and one bit for the latter.
function familyOf({ kind, family, low, high, step }, choices, version) {
  if (kind !== "number") {
    need(version === 1 || !family.startsWith("hadamard"), "family");
    need(!family.startsWith("bits") && family !== "one-bit", "family");
    return readFamily(family, { several: 2, dictionary: WORD_CELLS }[kind] ?? choices.length);
  }
  need(version === 1 ? family === "one-bit" : family.startsWith("bits:"), "family");
  const steps = Math.round((high - low) / step);
  need(step > 0 && isCount(steps, MOST_STEPS), "range");
  return readFamily(family, steps + 1);
}

const crossed = (rows, columns) =>
  rows.flatMap((row) => columns.map((column) => Object.fromEntries(Object.keys(row).map((name) => [name, `${row[name]} / ${column[name]}`]))));

// The answers of a dictionary: its words, the same in every language, "another word" and, where it may be left out, "no answer".
function wordsOf({ words, more, optional = false }, languages) {
  const listed = words.split("\n");
  need(listed.length > MOST_CHOICES && listed.length <= MOST_WORDS && more.length === 1 + Number(optional), "words");
  need(listed.every((word) => word !== "" && word === word.normalize("NFC").trim()) && new Set(listed).size === listed.length, "words");
  return [...listed.map((word) => Object.fromEntries(languages.map((name) => [name, word]))), ...more];
}

// The cells in which a word is reported, one in each of its two columns, as cells_of_word of collection/asked.py has it.
export const cellsOfWord = (index) => [index % WORD_CELLS, (index + Math.floor(index / WORD_CELLS)) % WORD_CELLS];

// A question, and how many columns its reports fill: one an option, two of a dictionary, else one.
function readQuestion(question, version, languages) {
  const { kind } = question;
  need(kind in ANSWERS && (version > 1 || kind === "choice" || kind === "number"), "kind");
  onlyKeys(question, `text kind ${ANSWERS[kind]} family report_bytes ${version === 1 ? "dummies" : "optional explanation order"}`);
  const { optional = false } = question; // the last answer then says "no answer"
  need(typeof optional === "boolean" && !(optional && kind === "number"), "optional");
  need(question.order === undefined || (question.order === "random" && UNORDERED.includes(kind)), "order");
  const listed = kind === "dictionary" ? wordsOf(question, languages) : (question.words ?? question.options ?? question.choices ?? []);
  const choices = kind === "table" ? crossed(question.rows, question.columns) : listed;
  need(kind === "dictionary" || choices.length <= MOST_CHOICES, "number of choices");
  if (kind === "table") need(question.rows.length > 1 && question.columns.length > 1 && choices.length <= MOST_CELLS, "table");
  if (kind === "several") need(choices.length > 1 && choices.length <= MOST_OPTIONS, "options");
  if (kind === "scale") need(question.values.length === choices.length - Number(optional) && question.values.every(Number.isFinite), "values");
  const family = familyOf(question, choices, version);
  need(question.report_bytes === reportBytes(family), "report_bytes");
  return { ...question, choices, optional, family, width: { several: choices.length, dictionary: 2 }[kind] ?? 1 };
}

// Refuses normal dummies whose weights are not positive and falling up to the largest centre, or that serve no choice.
function checkWeights(dummies, questions) {
  onlyKeys(dummies, "law weights centre");
  need(dummies.weights.length > 1 && dummies.weights.length <= MOST_WEIGHTS && dummies.weights.every(isDecimal), "weights");
  const weights = dummies.weights.map(BigInt);
  need(weights.every((weight, t) => weight > 0n && weight < 1n << 64n && (t === 0 || weight <= weights[t - 1])), "weights");
  need(Math.min(...dummies.centre) >= 1 && Math.max(...dummies.centre) === weights.length - 1, "centre");
  need(questions.every(({ family }) => family.kind === "krr" && family.records <= MOST_ANSWERS), "family");
}

// The columns of all questions, each with the number of its dummies; from version 2 on one law for all of them.
function readColumns(draft, questions) {
  const columns = questions.flatMap((question, j) => Array.from({ length: question.width }, () => ({ question: j, family: question.family })));
  need(isCount(columns.length, MOST_COLUMNS), "columns");
  if (draft.version === 1) return columns.map((column) => ({ ...column, dummies: questions[column.question].dummies.count }));
  const { law, centre } = draft.dummies;
  need(law === "ball" || law === "normal", "dummies");
  if (law === "ball") onlyKeys(draft.dummies, "law radius centre");
  else checkWeights(draft.dummies, questions);
  need(law === "normal" || draft.dummies.radius.every(isDecimal), "dummies");
  need(centre.length === columns.length && centre.every((count) => Number.isSafeInteger(count) && count >= 0), "centre");
  return columns.map((column, j) => ({ ...column, centre: centre[j], dummies: centre[j] * column.family.cells }));
}

function readLevels(levels, questions) {
  let before = 0;
  return levels.map((level) => {
    onlyKeys(level, KEYS.level);
    need(level.epsilon0 > before && level.epsilon0 < Infinity && level.promise > 0, "levels");
    need(level.crowd >= 0 && level.crowd <= level.promise, "crowd");
    need(level.draw.length === questions.length && level.draw.every(isDecimal), "draw");
    before = level.epsilon0;
    const draw = level.draw.map((keep) => BigInt(keep)); // decimal text: a double would round it
    draw.forEach((keep, j) => checkLaw(questions[j].family, keep, level.epsilon0));
    return { ...level, draw };
  });
}

function readDraft(bytes) {
  const draft = JSON.parse(new TextDecoder("utf-8", { fatal: true }).decode(bytes));
  need((draft.version === 1 || draft.version === 2) && draft.suite === 1, "version");
  need(!("shufflers" in draft.operated_by || "mix_by" in draft), "newer");
  onlyKeys(draft, KEYS[`draft${draft.version}`]);
  need(draft.admission === "codes" || draft.admission === "open", "admission");
  need(draft.order === undefined || draft.order === "random", "order");
  need(draft.delta > 0 && draft.delta < 1, "delta");
  need([draft.opens, draft.closes, draft.expires].every(isTime), "times");
  need(isCount(draft.questions.length, 32) && isCount(draft.levels.length, 8), "length");
  need(/^https?:\/\/[^\s"'<>\\]+$/.test(draft.privacy_notice), "privacy_notice"); // it becomes a link
  const questions = draft.questions.map((question) => readQuestion(question, draft.version, Object.keys(draft.title)));
  const columns = readColumns(draft, questions);
  const analyzerKey = fromBase64url(draft.analyzer_key);
  need(analyzerKey.length === 32 && !opensToAnybody(analyzerKey), "analyzer_key");
  const identity = fromBase64url(draft.analyzer_identity);
  need(identity.length === 32 && !signsForAnybody(identity), "analyzer_identity");
  return { ...draft, questions, columns, levels: readLevels(draft.levels, questions), analyzerKey };
}

// The task of these bytes. Throws an error whose message is "name", "newer", "signature", "promise" or "format" unless
// they are the task that `id` names, and its dummies keep its promises. `signed` is null where the browser knows no Ed25519; the name binds the bytes all the same.
export async function readTask(bytes, id) {
  const digest = await sha256(bytes);
  need(toBase64url(digest) === id, "name");
  need(bytes.length >= HEAD + TAIL && MAGIC.every((byte, i) => bytes[i] === byte), "format");
  const version = bytes[MAGIC.length];
  need(version === 1 || version === 2, "newer");
  const after = HEAD + new DataView(bytes.buffer, bytes.byteOffset).getUint32(MAGIC.length + 1, true);
  need(version === 1 || bytes[after] === 0, "newer"); // further shufflers
  const end = version === 1 ? after : after + 1;
  need(bytes.length === end + TAIL, "format");
  const body = join(label(version, "posted"), bytes.slice(0, end + 64));
  const signed = await signedBy(bytes.slice(end + 32, end + 64), bytes.slice(end + 64), body);
  need(signed !== false, "signature");
  try {
    const draft = readDraft(bytes.slice(HEAD, after));
    need(draft.version === version, "version");
    const codeBytes = draft.admission === "codes" ? CODE : 0;
    const inners = draft.columns.reduce((sum, { family }) => sum + family.pieces * (reportBytes(family) + SEALED_OVERHEAD), 0);
    const size = SEALED_OVERHEAD + 1 + codeBytes + inners; // W: the same for everybody in the task
    const shufflerKey = bytes.slice(end, end + 32);
    need(!opensToAnybody(shufflerKey), "the shuffler's key");
    checkPromises(draft);
    return { ...draft, id, digest, shufflerKey, shufflerIdentity: bytes.slice(end + 32, end + 64), signed, codeBytes, size };
  } catch (error) {
    throw new Error(error.message === "promise" || error.message === "newer" ? error.message : "format", { cause: error });
  }
}

const SHORT = "0123456789ABCDEFGHJKMNPQRSTVWXYZ"; // the letters of a short code, each worth five bits
const SHORT_LETTERS = 12;

// The 16 bytes of a short code, as collection/codes.py reads it; null if it is none.
function readShort(text) {
  const plain = text.toUpperCase().replace(/[\s-]/g, "").replace(/O/g, "0").replace(/[IL]/g, "1");
  if (plain.length !== SHORT_LETTERS || [...plain].some((letter) => !SHORT.includes(letter))) return null;
  const value = [...plain].reduce((sum, letter) => 32n * sum + BigInt(SHORT.indexOf(letter)), 0n);
  const code = new Uint8Array(CODE);
  new DataView(code.buffer).setBigUint64(CODE - 8, value);
  return code;
}

// The 16 bytes of a one-time code, from the code itself or from the whole link that ends in it; null if it is none.
export function readCode(text) {
  const given = text.trim().replace(/^.*#/, "");
  try {
    const code = fromBase64url(given);
    if (code.length === CODE) return code;
  } catch {
    // perhaps a short one
  }
  return readShort(given);
}
