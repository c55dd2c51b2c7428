// The survey page: what is loaded, what the person does, and which sections stand on the page.
import { canSeal, sha256, join } from "./hpke.js";
import { below } from "./draw.js";
import { fromBase64url, readCode, readTask, toBase64url } from "./task.js";
import { inOrder } from "./order.js";
import { drawReport, sealReport } from "./report.js";
import { openKeep } from "./keep.js";
import { attempt, underAnotherCode } from "./send.js";
import { WORDS } from "./words.js";
import { readRelease } from "./release.js";
import { readNotice } from "./notice.js";
import { button, el, reader } from "./view.js";
import { answerStep, allAnswered, asked, codeStep, introduction, levelStep, onlyLevel, sendStep, unanswered, whoStep } from "./steps.js";
import { checks, foot, ledger, notice, result, sentStep } from "./outcome.js";
import { spentByAnswering } from "./promise.js";

const LANGUAGES = Object.keys(WORDS);
const main = document.getElementById("main");
const spoken = document.getElementById("status");

// Everything that the sections are made of; `show` writes them anew.
const state = {
  language: LANGUAGES.find((name) => navigator.languages.some((wanted) => wanted.split("-")[0] === name)) ?? "en",
  server: "",
  id: "",
  task: null,
  keep: null,
  code: null, // 16 bytes of this person's one-time code
  slot: null, // under which name the device keeps this person's record
  record: null,
  records: [], // all records of this device
  level: null, // chosen, not yet fixed
  answers: [],
  isAnother: false, // the person says that it was somebody else who answered on this device
  phase: "loading",
  problem: null,
  found: null, // the release
  response: {}, // of the server's word: how many answers it holds at least, and how many were invited
  shown: null, // the state of the record that the page shows
};

// The page's languages that a survey is asked in.
const languagesOf = (task) => LANGUAGES.filter((name) => name in task.title);

const firstOf = (names) => navigator.languages.map((name) => name.split("-")[0]).find((name) => names.includes(name));

async function slotOf(id, code) {
  if (!code) return id;
  return `${id}.${toBase64url(await sha256(join(new TextEncoder().encode(`shuffledp/1 slot\0${id}`), code)))}`;
}

// The code out of the address, where nobody who looks over a shoulder or at the history will find it again. It stays in
// this tab alone, so that loading the page again does not lose it.
function takeCode() {
  const given = readCode(location.hash);
  if (location.hash) history.replaceState(null, "", location.pathname + location.search);
  if (given) rememberCode(given);
  state.code = given ?? rememberedCode();
}

const codePlace = () => `shuffledp code ${state.id}`;

function rememberCode(code) {
  try {
    sessionStorage.setItem(codePlace(), code === null ? "" : toBase64url(code));
  } catch {
    // no storage: the code lives as long as the page
  }
}

function rememberedCode() {
  try {
    return readCode(sessionStorage.getItem(codePlace()) ?? "");
  } catch {
    return null;
  }
}

async function usePerson(code) {
  state.code = code;
  const isPerson = state.task.codeBytes === 0 || code !== null;
  state.slot = isPerson ? await slotOf(state.id, state.task.codeBytes ? code : null) : null;
  state.level = state.task.levels.length === 1 ? 0 : null;
  state.answers = unanswered(state.task);
  await readRecords();
}

async function readRecords() {
  state.records = await state.keep.all();
  state.record = state.records.find((record) => record.slot === state.slot) ?? null;
}

const linesOf = (records) => records.filter((record) => record.state !== "level");
const waitingHere = () => state.records.filter((record) => record.id === state.id && record.state === "waiting");

async function get(path) {
  const response = await fetch(`${state.server}/v1/${state.id}${path}`, { credentials: "omit", referrerPolicy: "no-referrer", cache: "no-store" });
  if (!response.ok) throw new Error(response.status === 404 ? "unknown" : "network");
  return response;
}

async function load() {
  const embedded = document.getElementById("task");
  const held = embedded && JSON.parse(embedded.textContent);
  const [, base, name] = /^(.*)\/t\/([A-Za-z0-9_-]{43})$/.exec(location.pathname) ?? [];
  state.server = held?.server ?? base ?? "";
  state.id = held?.id ?? name ?? "";
  takeCode();
  show();
  if (!(await canSeal())) return fail("browser");
  if (!state.id) return fail("unknown");
  let posted;
  try {
    posted = held ? fromBase64url(held.posted) : new Uint8Array(await (await get("")).arrayBuffer());
  } catch (error) {
    return fail(error.message === "unknown" ? "unknown" : "network");
  }
  try {
    state.task = inOrder(await readTask(posted, state.id));
  } catch (error) {
    return fail(["name", "newer", "signature", "promise"].includes(error.message) ? error.message : "format");
  }
  const offered = languagesOf(state.task);
  state.language = firstOf(offered) ?? offered[0] ?? state.language;
  state.keep = await openKeep();
  await usePerson(state.code);
  await enter();
}

// By the server's word; a task whose server gives none may be open.
const PHASES = { "not-yet-open": "notYet", expired: "closed", closing: "closed", released: "closed", restored: "closed", destroyed: "destroyed", deleted: "deleted" };

// Where a person who opens the page stands.
async function enter() {
  const status = await get("/status").then((response) => response.json()).catch(() => ({ state: "open" }));
  state.phase = PHASES[status.state] ?? "open";
  state.response = { held: status.held, invited: status.invited };
  if (status.closes && status.closes !== state.task.closes) {
    const notice = await get("/notice").then((response) => response.arrayBuffer()).catch(() => new ArrayBuffer(0));
    state.task = { ...state.task, ...(await readNotice(new Uint8Array(notice), state.task)) };
  }
  if (status.state === "released") {
    try {
      state.found = await readRelease(new Uint8Array(await (await get("/release")).arrayBuffer()), state.task);
      state.phase = "released";
    } catch (error) {
      if (error.message !== "unknown" && error.message !== "network") return fail(error.message === "signature" ? "release" : "format");
    }
  }
  show();
  pump();
}

function fail(problem) {
  state.problem = problem;
  state.phase = "failed";
  show();
}

function say(key, values) {
  return reader(state.language).say(key, values);
}

const PROBLEMS = ["browser", "network", "unknown"]; // those that have a title of their own

function failed() {
  const title = say(`error.${PROBLEMS.includes(state.problem) ? state.problem : "task"}Title`);
  const again = state.problem === "network" && button(say("reload"), () => location.reload());
  return el("div", { id: "problem", "data-state": "problem" }, el("h1", {}, title), el("p", {}, say(`error.${state.problem}`)), again);
}

function mine(read) {
  const { task, record } = state;
  const others = waitingHere().filter((one) => one.slot !== state.slot).length;
  return sentStep(read, task, record, { lasting: state.keep.lasting, others, again: pump, another, replaceCode });
}

function sections(read) {
  const { task, record, phase } = state;
  if (phase === "loading") return [el("p", { class: "lead" }, say("loading"))];
  if (phase === "failed") return [failed()];
  const head = introduction(read, task, phase === "open" && record === null, state.response);
  const ends = [linesOf(state.records).length > 0 && ledger(read, linesOf(state.records)), checks(read, task), foot(read, task)];
  const sent = record && record.state !== "level" ? mine(read) : null;
  if (phase === "released") return [head, result(read, task, state.found, state.response.invited), ends];
  if (phase !== "open") {
    const values = { opens: read.date(task.opens), contact: task.contact };
    return [head, sent, notice(phase, say(`${phase}Title`), say(phase, values)), ends];
  }
  if (sent) return [head, sent, ends];
  if (state.slot === null) return [head, asked(read, task), codeStep(read, answeredHere(), useCode), ends];
  if (record === null && !state.isAnother && answeredHere() > 0) return [head, whoStep(read, answeredHere(), refusedHere(), sendAgainHere, somebodyElse), ends];
  if (record === null && task.levels.length > 1) return [head, asked(read, task), levelStep(read, task, state.level, (i) => (state.level = i), fixLevel), ends];
  const next = record ?? atLevel(0);
  const answers = answerStep(read, task, next.level, state.answers, (j, answer) => (state.answers[j] = answer));
  return [head, task.levels.length === 1 && onlyLevel(read, task), answers, sendStep(read, task, linesOf(state.records), next, send), ends];
}

// What was drawn and not taken for its code alone; nobody knows whose it is where several wait for a code.
function refusedHere() {
  const refused = linesOf(state.records).filter((record) => record.id === state.id && record.reason === "code");
  return refused.length === 1 ? refused[0] : null;
}

const sendAgainHere = () => sendAgain(refusedHere(), state.code);

function somebodyElse() {
  state.isAnother = true;
  state.task = inOrder(state.task);
  show("level");
}

const answeredHere = () => linesOf(state.records).filter((record) => record.id === state.id).length;

// Writes the page anew, and moves the focus to the heading `at` where the person has just come from a step before.
function show(at = null) {
  const read = reader(state.language);
  document.documentElement.lang = state.language;
  document.title = state.task ? read.plain(state.task.title) : say("loading");
  const menu = document.getElementById("languages");
  const offered = state.task ? languagesOf(state.task) : LANGUAGES;
  menu.hidden = offered.length < 2;
  menu.setAttribute("aria-label", say("language"));
  menu.replaceChildren(
    ...offered.map((name) => {
      const choose = () => {
        state.language = name;
        show();
        menu.querySelector(`[lang=${name}]`).focus();
      };
      return el("button", { type: "button", lang: name, "aria-pressed": String(name === state.language), onclick: choose }, WORDS[name].name);
    }),
  );
  state.shown = state.record?.state ?? null;
  main.replaceChildren(...sections(read).flat().filter(Boolean));
  if (at) document.getElementById(`${at}-title`)?.focus();
}

// The record alone, where a person may be in the middle of answering.
function showLedger() {
  const shown = document.getElementById("ledger");
  if (!shown) return;
  const fresh = ledger(reader(state.language), linesOf(state.records));
  fresh.open = shown.open;
  shown.replaceWith(fresh);
}

async function useCode(text) {
  const code = readCode(text);
  if (!code) return false;
  rememberCode(code);
  await usePerson(code);
  show(state.record ? "sent" : "level");
  return true;
}

async function another() {
  rememberCode(null);
  state.isAnother = true;
  state.task = inOrder(state.task);
  await usePerson(null);
  show("code-step");
}

// The level is kept before any answer is given, so that it does not follow the answer, not even after a reload.
async function fixLevel() {
  if (await keepLevel(state.level)) show(state.record.state === "level" ? "answer" : "sent");
}

// What this device keeps of a person at a level, before anything is drawn.
function atLevel(level) {
  const { organizer, delta, levels } = state.task;
  return { id: state.id, organizer, ...spentByAnswering(state.task, levels[level]), delta, level, state: "level" };
}

async function keepLevel(level) {
  try {
    state.record = await state.keep.update(state.slot, (now) => now ?? atLevel(level));
  } catch {
    announce(say("error.storage"));
    return false;
  }
  return true;
}

function announce(text) {
  spoken.textContent = text;
}

// The same person with another code, because theirs was refused.
async function replaceCode(text) {
  const code = readCode(text);
  if (!code) return false;
  await sendAgain(state.record, code);
  return true;
}

async function sendAgain(record, code) {
  const { id, keep, task } = state;
  const found = await underAnotherCode(keep, record, await slotOf(id, code), (inners) => sealReport(task, record.level, code, inners));
  rememberCode(code);
  await usePerson(code);
  if (found) [state.slot, state.record] = [found.slot, found];
  await pump();
  show("sent");
}

// Draws, seals, keeps; only what is kept on this device is ever sent, also when two tabs come here at the same time.
async function send(pressed) {
  if (!allAnswered(state.task.shown, state.answers)) return;
  pressed.disabled = true;
  announce(say("sending"));
  if (state.record === null && !(await keepLevel(0))) return void (pressed.disabled = false); // one level: nothing was chosen
  const { task, record } = state;
  if (record.state !== "level") return pump(); // another tab was faster
  const inners = await drawReport(task, record.level, state.answers);
  const sealed = await sealReport(task, record.level, task.codeBytes ? state.code : null, inners);
  const date = new Date().toISOString().slice(0, 10);
  try {
    state.record = await state.keep.update(state.slot, (now) =>
      now.state === "level" ? { ...now, state: "waiting", inners, sealed, date } : undefined,
    );
  } catch {
    pressed.disabled = false;
    return announce(say("error.storage"));
  }
  state.answers = unanswered(task);
  await pump();
}

let pumping = false;
let timer = null;

// Sends everything that waits on this device for this task; again later where there was no clear answer.
async function pump() {
  if (pumping) return;
  pumping = true;
  clearTimeout(timer);
  await readRecords();
  let soonest = Infinity;
  const before = waitingHere();
  const stood = state.shown;
  for (const record of before) {
    const tried = await attempt(state.keep, state.server, record, Date.parse(state.task.expires));
    if (tried.record.state === "waiting") soonest = Math.min(soonest, tried.again);
  }
  await readRecords();
  pumping = false;
  announce("");
  if ((state.record?.state ?? null) !== stood) show("sent");
  else showLedger();
  // up to twice the time, so that devices that were told the same time do not come back together
  if (soonest < Infinity) timer = setTimeout(pump, 1000 * soonest * (1 + Number(below(1000n)) / 1000));
}

addEventListener("online", () => state.task && pump());
addEventListener("hashchange", async () => {
  if (!state.task || state.task.codeBytes === 0) return;
  takeCode();
  state.isAnother = false;
  await usePerson(state.code);
  show();
});
load();
