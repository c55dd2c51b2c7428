// A posted task: its bytes checked, its draft read. The hash of the bytes is the task's name.
import { opensToAnybody, signsForAnybody } from "./keys.js";
import { SEALED_OVERHEAD, join, sha256, signedBy } from "./hpke.js";
import { checkLaw, readFamily, reportBytes } from "./draw.js";

const MAGIC = [0x53, 0x48, 0x46, 0x54, 0x01]; // "SHFT", version 1
const HEAD = 9; // magic, version, length of the draft
const TAIL = 32 + 32 + 64; // the shuffler's key, its identity, its signature
const CODE = 16;
const MOST_STEPS = 2 ** 31;
const KEYS = {
  draft:
    "version suite title organizer contact privacy_notice operated_by questions levels delta admission at_least " +
    "opens closes expires stop_at analyzer_key analyzer_identity retention_days",
  choice: "text kind choices family report_bytes dummies",
  number: "text kind low high step family report_bytes dummies",
  level: "name epsilon0 draw planned promise crowd",
};

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

function onlyKeys(object, kind) {
  need(object !== null && typeof object === "object", kind);
  const known = KEYS[kind].split(" ");
  for (const key of Object.keys(object)) need(known.includes(key), `unknown key ${key}`);
}

const isTime = (text) => /^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\dZ$/.test(text) && !Number.isNaN(Date.parse(text));
const isDecimal = (keep) => typeof keep === "string" && /^(0|[1-9][0-9]{0,19})$/.test(keep);
const isCount = (value, most) => Number.isSafeInteger(value) && value >= 1 && value <= most;

function readQuestion(question) {
  const isChoice = question.kind === "choice";
  onlyKeys(question, isChoice ? "choice" : "number");
  need(isChoice || (question.kind === "number" && question.family === "one-bit"), "kind");
  const steps = isChoice ? 0 : Math.round((question.high - question.low) / question.step);
  need(isChoice || (question.step > 0 && isCount(steps, MOST_STEPS)), "range");
  const family = readFamily(question.family, isChoice ? question.choices.length : steps + 1);
  need(question.report_bytes === reportBytes(family), "report_bytes");
  return { ...question, family };
}

function readLevels(levels, questions) {
  let before = 0;
  return levels.map((level) => {
    onlyKeys(level, "level");
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
  onlyKeys(draft, "draft");
  need(draft.version === 1 && draft.suite === 1, "version");
  need(draft.admission === "codes" || draft.admission === "open", "admission");
  need(draft.delta > 0 && draft.delta < 1, "delta");
  need([draft.opens, draft.closes, draft.expires].every(isTime), "times");
  need(isCount(draft.questions.length, 32) && isCount(draft.levels.length, 8), "length");
  need(/^https?:\/\/[^\s"'<>\\]+$/.test(draft.privacy_notice), "privacy_notice"); // it becomes a link
  const questions = draft.questions.map(readQuestion);
  const analyzerKey = fromBase64url(draft.analyzer_key);
  need(analyzerKey.length === 32 && !opensToAnybody(analyzerKey), "analyzer_key");
  const identity = fromBase64url(draft.analyzer_identity);
  need(identity.length === 32 && !signsForAnybody(identity), "analyzer_identity");
  return { ...draft, questions, levels: readLevels(draft.levels, questions), analyzerKey };
}

// The task of these bytes. Throws an error whose message is "name", "format" or "signature" unless they are the task
// that `id` names. `signed` is null where the browser knows no Ed25519; the name binds the bytes all the same.
export async function readTask(bytes, id) {
  const digest = await sha256(bytes);
  need(toBase64url(digest) === id, "name");
  need(bytes.length >= HEAD + TAIL && MAGIC.every((byte, i) => bytes[i] === byte), "format");
  const end = HEAD + new DataView(bytes.buffer, bytes.byteOffset).getUint32(MAGIC.length, true);
  need(bytes.length === end + TAIL, "format");
  const body = join(new TextEncoder().encode("shuffledp/1 posted\0"), bytes.slice(0, end + 64));
  const signed = await signedBy(bytes.slice(end + 32, end + 64), bytes.slice(end + 64), body);
  need(signed !== false, "signature");
  try {
    const draft = readDraft(bytes.slice(HEAD, end));
    const codeBytes = draft.admission === "codes" ? CODE : 0;
    const inners = draft.questions.reduce((sum, question) => sum + question.report_bytes + SEALED_OVERHEAD, 0);
    const size = SEALED_OVERHEAD + 1 + codeBytes + inners; // W: the same for everybody in the task
    const shufflerKey = bytes.slice(end, end + 32);
    need(!opensToAnybody(shufflerKey), "the shuffler's key");
    return { ...draft, id, digest, shufflerKey, signed, codeBytes, size };
  } catch (error) {
    throw new Error("format", { cause: error });
  }
}

// The 16 bytes of a one-time code, from the code itself or from the whole link that ends in it; null if it is none.
export function readCode(text) {
  try {
    const code = fromBase64url(text.trim().replace(/^.*#/, ""));
    return code.length === CODE ? code : null;
  } catch {
    return null;
  }
}
