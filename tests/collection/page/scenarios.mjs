// What a person does in a browser, one scenario a call: `node scenarios.mjs NAME`, told by test_browser.py.
import assert from "node:assert/strict";
import { mkdtempSync } from "node:fs";
import { join } from "node:path";
import { tmpdir } from "node:os";
import { BASE, CODE, OTHER_CODE, answer, axe, fixLevel, kept, open, seen, set } from "./browser.mjs";

const PROFILE = mkdtempSync(join(tmpdir(), "page-"));
const LINK = `${BASE}#${CODE}`;
const HEX = Buffer.from(CODE, "base64url").toString("hex");
const OTHER_HEX = Buffer.from(OTHER_CODE, "base64url").toString("hex");
const heading = (page, name) => page.getByRole("heading", { name }).waitFor();
const posts = async () => (await seen()).requests.filter(({ method }) => method === "POST");

async function answered() {
  const { context, page, errors } = await open(PROFILE);
  await page.goto(LINK);
  await heading(page, "Choose how private");
  assert.equal(page.url(), BASE, "the code is not in the address any more");
  const asked = (await seen()).requests;
  const paths = asked.map(({ path }) => path.replace(new URL(BASE).pathname.slice(3), "ID"));
  assert.deepEqual(paths, ["/t/ID", "/v1/ID", "/v1/ID/status"]);
  assert.ok(await page.getByRole("button", { name: "Answer at this level" }).isDisabled());
  await fixLevel(page, "middle");
  await page.reload();
  await page.getByText("Your level: middle.").waitFor();
  assert.equal(await page.getByRole("radio", { name: "careful" }).count(), 0, "the level is fixed, also after a reload");
  await page.getByText("This device has not told Institute of Occupational Health anything yet.").waitFor();
  const before = (await seen()).requests.length;
  await page.getByRole("radio", { name: "No", exact: true }).check();
  await page.getByLabel("Number").fill("12");
  assert.equal((await seen()).requests.length, before, "no network until it is sent");
  await page.getByRole("button", { name: "Send", exact: true }).click();
  await heading(page, "Thank you");
  const { opened, bodies, size } = await seen();
  assert.equal(bodies.length, 1);
  assert.equal(bodies[0].length, 2 * size);
  assert.equal(opened[0].level, 1);
  assert.equal(opened[0].code, HEX);
  assert.ok(opened[0].reports[0] < 3 && opened[0].reports[1] < 2);
  const [{ headers }] = await posts();
  const names = Object.keys(headers).map((name) => name.toLowerCase());
  for (const name of ["cookie", "referer", "content-type"]) assert.ok(!names.includes(name), name);
  const [line] = await kept(page);
  const { slot, date, ...rest } = line;
  assert.match(date, /^\d{4}-\d\d-\d\d$/);
  assert.ok(!slot.includes(CODE));
  const id = new URL(BASE).pathname.slice(3);
  const promise = { epsilon0: 2, promise: 0.25, delta: 1e-6, level: 1, state: "held" };
  assert.deepEqual(rest, { id, organizer: "Institute of Occupational Health", ...promise }, "the bytes are deleted");
  await page.reload();
  await heading(page, "Thank you");
  assert.equal((await posts()).length, 1);
  assert.deepEqual(errors, []);
  await context.close();
}

// The bytes outlive the browser, and are the same on every attempt.
async function waiting() {
  const first = await open(PROFILE);
  await set({ mode: 503 });
  await first.page.goto(LINK);
  await answer(first.page);
  await heading(first.page, "Waiting to be sent");
  await first.page.reload();
  await heading(first.page, "Waiting to be sent");
  while ((await seen()).bodies.length < 2) await first.page.waitForTimeout(50); // it is tried again at once
  await first.context.close();
  await set({ mode: "hold" });
  const { context, page } = await open(PROFILE);
  await page.goto(BASE);
  await page.getByText("Answers from this device to this collection so far: 1.").waitFor();
  await page.getByText("Record of this device").click();
  await page.getByRole("cell", { name: "held" }).waitFor();
  const { bodies, opened } = await seen();
  assert.ok(bodies.length >= 3);
  assert.equal(new Set(bodies).size, 1);
  assert.equal(opened.length, 1);
  await page.goto(LINK);
  await page.reload();
  await heading(page, "Thank you");
  await context.close();
}

async function offline() {
  const { context, page } = await open(PROFILE);
  await page.goto(LINK);
  await heading(page, "Choose how private");
  await context.setOffline(true);
  await answer(page);
  await heading(page, "Waiting to be sent");
  assert.equal((await posts()).length, 0);
  await context.setOffline(false);
  await heading(page, "Thank you");
  assert.equal((await seen()).opened.length, 1);
  await context.close();
}

// The server held the report, but its answer was lost: the same bytes again, and one row.
async function lost() {
  const { context, page } = await open(PROFILE);
  await set({ mode: "cut" });
  await page.goto(LINK);
  await answer(page);
  await heading(page, "Waiting to be sent");
  await set({ mode: "hold" });
  await page.getByRole("button", { name: "Try again now" }).click();
  await heading(page, "Thank you");
  const { bodies, opened } = await seen();
  assert.ok(bodies.length >= 2); // a browser may repeat a request whose connection broke
  assert.equal(new Set(bodies).size, 1);
  assert.equal(opened.length, 1);
  await context.close();
}

async function closed() {
  const { context, page } = await open(PROFILE);
  await set({ mode: 410 });
  await page.goto(LINK);
  await answer(page);
  await heading(page, "Not counted");
  await page.getByText("had closed already").waitFor();
  assert.equal((await kept(page))[0].reason, "closed");
  await set({ mode: "cut" });
  await page.goto(`${BASE}#${OTHER_CODE}`);
  await page.reload();
  await answer(page);
  await heading(page, "Waiting to be sent");
  await set({ mode: 410 });
  await page.getByRole("button", { name: "Try again now" }).click();
  await heading(page, "Closed before there was an answer");
  const states = (await kept(page)).map(({ state, sealed, inners }) => [state, sealed, inners]).sort();
  assert.deepEqual(states, [["refused", undefined, undefined], ["unclear", undefined, undefined]]);
  await context.close();
}

async function another() {
  const { context, page } = await open(PROFILE);
  await set({ codes: [HEX, OTHER_HEX] });
  await page.goto(LINK);
  await answer(page);
  await heading(page, "Thank you");
  await page.getByRole("button", { name: "Another person on this device" }).click();
  await heading(page, "Your code");
  await page.getByText("Answers from this device to this collection so far: 1.").waitFor();
  await page.getByLabel("Code or whole link").fill("no code");
  await page.getByRole("button", { name: "Use this code" }).click();
  await page.getByText("This is no code").waitFor();
  const unknown = `${"A".repeat(21)}A`;
  await page.getByLabel("Code or whole link").fill(unknown);
  await page.getByRole("button", { name: "Use this code" }).click();
  await fixLevel(page, "open");
  await page.getByText("With this collection: ε ≤ 1.1 as promised, ≤ 9 at worst (2 collections).").waitFor();
  await page.getByRole("radio", { name: "No", exact: true }).check();
  await page.getByLabel("Number").fill("80");
  await page.getByRole("button", { name: "Send", exact: true }).click();
  await heading(page, "Not counted");
  const refused = (await kept(page)).find(({ state }) => state === "refused");
  assert.equal(refused.inners.length, 2);
  await page.getByLabel("Code or whole link").fill(`${BASE}#${OTHER_CODE}`);
  await page.getByRole("button", { name: "Use this code" }).click();
  await heading(page, "Thank you");
  const { opened, bodies } = await seen();
  assert.deepEqual(opened.map(({ level, code }) => [level, code]), [[0, HEX], [2, OTHER_HEX]]);
  assert.equal(bodies.length, 3);
  assert.deepEqual((await kept(page)).map(({ state }) => state), ["held", "held"], "one person, one line");
  assert.deepEqual((await kept(page)).map(({ inners }) => inners), [undefined, undefined]);
  await context.close();
}

// Two tabs of one person both press Send: what was kept first is what both send.
async function tabs() {
  const { context, page } = await open(PROFILE);
  const second = await context.newPage();
  for (const tab of [page, second]) {
    await tab.goto(LINK);
    await heading(tab, "Choose how private");
  }
  await fixLevel(page, "careful");
  await second.getByRole("radio", { name: "open" }).check();
  await second.getByRole("button", { name: "Answer at this level" }).click();
  await second.getByText("Your level: careful.").waitFor();
  for (const [tab, choice] of [[page, "Yes"], [second, "No"]]) {
    await tab.getByRole("radio", { name: choice, exact: true }).check();
    await tab.getByLabel("Number").fill("1");
  }
  await Promise.all([page, second].map((tab) => tab.getByRole("button", { name: "Send", exact: true }).click()));
  for (const tab of [page, second]) await heading(tab, "Thank you");
  const { bodies, opened } = await seen();
  assert.equal(new Set(bodies).size, 1);
  assert.equal(opened.length, 1);
  await context.close();
}

async function keyboard() {
  const { context, page } = await open(PROFILE);
  await page.goto(LINK);
  await heading(page, "Choose how private");
  const focused = () => page.evaluate(() => {
    const { id, tagName, type, textContent, value } = document.activeElement;
    return { id, tagName, type, text: textContent.slice(0, 30), value };
  });
  const press = async (...keys) => { for (const key of keys) await page.keyboard.press(key); };
  await press("Tab", "Tab", "Tab"); // three languages
  assert.equal((await focused()).text, "Français");
  await press("Tab", "Space");
  assert.equal((await focused()).value, "0");
  await press("ArrowDown");
  assert.equal((await focused()).value, "1");
  await press("Tab");
  assert.equal((await focused()).tagName, "SUMMARY");
  await press("Tab", "Enter");
  await page.waitForFunction(() => document.activeElement.id === "answer-title"); // the next step has the focus
  await press("Tab", "ArrowDown", "Tab");
  assert.equal((await focused()).id, "q1-number");
  await page.keyboard.type("40");
  await press("Enter"); // a number field does not send
  assert.equal((await posts()).length, 0);
  await press("Tab", "ArrowRight");
  assert.equal(await page.getByLabel("Number").inputValue(), "40.5");
  await press("Tab");
  assert.equal((await focused()).text, "Send");
  await press("Enter");
  await page.waitForFunction(() => document.activeElement.id === "sent-title");
  await heading(page, "Thank you");
  assert.equal((await seen()).opened[0].level, 1);
  await context.close();
}

async function numbers() {
  const { context, page } = await open(PROFILE);
  await page.goto(LINK);
  await fixLevel(page, "careful");
  const slider = page.getByRole("slider");
  assert.equal(await slider.getAttribute("aria-valuetext"), "no number chosen yet");
  await page.getByRole("button", { name: "Send", exact: true }).click();
  await page.getByText("Please choose one of the answers.").waitFor();
  await page.getByText("Please choose a number from 0 to 80, in steps of 0.5.").waitFor();
  assert.equal(await page.evaluate(() => document.activeElement.name), "q0");
  await page.getByRole("radio", { name: "No answer" }).check();
  assert.ok(await page.getByText("Please choose one of the answers.").isHidden());
  for (const wrong of ["81", "-1", "0.3", ""]) {
    await page.getByLabel("Number").fill(wrong);
    await page.getByRole("button", { name: "Send", exact: true }).click();
    assert.ok(await page.getByText("Please choose a number").isVisible(), wrong);
  }
  await slider.fill("33.5");
  assert.equal(await page.getByLabel("Number").inputValue(), "33.5");
  assert.equal(await slider.getAttribute("aria-valuetext"), "33.5");
  assert.ok(await page.getByText("Please choose a number").isHidden());
  await page.getByLabel("Number").fill("80");
  assert.equal(await slider.inputValue(), "80");
  assert.equal((await posts()).length, 0);
  await context.close();
}

async function languages() {
  const { context, page } = await open(PROFILE, { locale: "de-AT" });
  await page.goto(LINK);
  await heading(page, "Wie privat soll es sein?");
  assert.equal(await page.evaluate(() => document.documentElement.lang), "de");
  assert.equal(await page.title(), "Gesundheit im Betrieb");
  await page.getByRole("radio", { name: "vorsichtig" }).check();
  await page.getByText("ε ≤ 0,1").waitFor();
  await page.getByRole("button", { name: "Français" }).click();
  await heading(page, "Choisissez votre niveau");
  assert.equal(await page.evaluate(() => document.documentElement.lang), "fr");
  assert.equal(await page.evaluate(() => document.activeElement.textContent), "Français");
  assert.ok(await page.getByRole("radio", { name: "prudent" }).isChecked(), "what was chosen stays");
  await page.getByRole("button", { name: "Répondre à ce niveau" }).click();
  await page.getByLabel("Nombre", { exact: true }).fill("7");
  await page.getByRole("button", { name: "English" }).click();
  assert.equal(await page.getByLabel("Number").inputValue(), "7");
  await context.close();
}

const STATES = [
  ["not-yet-open", "Not open yet", /opens 1 January 2030/],
  ["closing", "This collection is closed", /as soon as it is published/],
  ["destroyed", "Destroyed unopened", /Too few people/],
  ["deleted", "No longer here", /its result is no longer shown here/],
];

async function states() {
  const { context, page, errors } = await open(PROFILE);
  for (const [state, title, text] of STATES) {
    await set({ state: { state } });
    await page.goto(LINK);
    await page.reload();
    await heading(page, title);
    await page.getByText(text).waitFor();
    assert.equal(await page.getByRole("button", { name: "Answer at this level" }).count(), 0);
    assert.deepEqual(await axe(page), []);
  }
  await set({ state: { state: "released" }, release_named: "good" });
  await page.reload();
  await heading(page, "The result");
  for (const text of ["1,000 people took part.", "about 31 %, between 27 and 35 %", "about 5 %, between 0 and 10 %"])
    await page.getByText(text).waitFor();
  await page.getByText("On average 36.81; between 35.38 and 38.24.").waitFor();
  await page.getByText("Every promise is kept.").waitFor();
  await page.getByText("The analyzer's signature is right.").waitFor();
  assert.deepEqual(await page.getByRole("cell").allTextContents(), [
    ...["careful", "540", "0.0999", "0.0131"], ...["middle", "370", "0.25", "0.0312"], ...["open", "90", "1", "0.121"],
  ]);
  assert.deepEqual(await axe(page), []);
  assert.deepEqual(errors, []);
  await set({ release_named: "forged" });
  await page.reload();
  await page.getByText("The signature of the result is wrong.").waitFor();
  assert.equal(await page.getByText("about 31 %").count(), 0);
  await context.close();
}

async function failures() {
  const { context, page } = await open(PROFILE);
  await set({ tampered: true });
  await page.goto(LINK);
  await page.getByText("is not the collection that your link names").waitFor();
  assert.equal(await page.getByRole("button", { name: "Answer" }).count(), 0);
  await set({ tampered: false });
  await context.setOffline(true);
  const dark = await context.newPage();
  await context.setOffline(false);
  await dark.route("**/v1/**", (route) => route.abort());
  await dark.goto(LINK);
  await heading(dark, "The collection could not be loaded");
  await dark.unroute("**/v1/**");
  await dark.getByRole("button", { name: "Load again" }).click();
  await heading(dark, "Choose how private");
  const old = await context.newPage();
  await old.addInitScript(() => {
    const generate = crypto.subtle.generateKey.bind(crypto.subtle);
    crypto.subtle.generateKey = (algorithm, ...rest) =>
      algorithm.name === "X25519" ? Promise.reject(new DOMException("no", "NotSupportedError")) : generate(algorithm, ...rest);
  });
  await old.goto(LINK);
  await heading(old, "This browser cannot seal an answer");
  assert.deepEqual(await axe(old), []);
  const half = await context.newPage();
  await half.addInitScript(() => {
    const read = crypto.subtle.importKey.bind(crypto.subtle);
    crypto.subtle.importKey = (format, key, algorithm, ...rest) =>
      algorithm.name === "Ed25519" ? Promise.reject(new DOMException("no", "NotSupportedError")) : read(format, key, algorithm, ...rest);
  });
  await half.goto(LINK);
  await half.getByText("For those who check").click();
  await half.getByText("This browser knows no Ed25519").waitFor();
  await context.close();
}

// A browser that keeps nothing: it is said, and the report is sent all the same.
async function memory() {
  const { context, page } = await open(PROFILE);
  await page.addInitScript(() => Object.defineProperty(window, "indexedDB", { get: () => { throw new DOMException("no", "SecurityError"); } }));
  await set({ mode: 503 });
  await page.goto(LINK);
  await answer(page);
  await page.getByText("this browser keeps nothing").waitFor();
  await set({ mode: "hold" });
  await page.getByRole("button", { name: "Try again now" }).click();
  await heading(page, "Thank you");
  assert.equal(new Set((await seen()).bodies).size, 1);
  await context.close();
}

async function noscript() {
  const { context, page } = await open(PROFILE, { javaScriptEnabled: false });
  await page.goto(LINK);
  for (const text of ["Please allow JavaScript", "Bitte erlauben Sie JavaScript", "Veuillez autoriser JavaScript"])
    assert.ok((await page.locator("noscript").innerText()).includes(text));
  await context.close();
}

// The page from another host: its own policy, one task, and reports that go to the shuffler without a preflight.
async function elsewhere() {
  const { context, page, errors } = await open(PROFILE);
  await page.goto(`${process.env.PAGE_ELSEWHERE}#${CODE}`);
  await answer(page);
  await heading(page, "Thank you");
  const { requests, opened } = await seen();
  assert.equal(opened.length, 1);
  assert.deepEqual([...new Set(requests.map(({ method }) => method))].sort(), ["GET", "POST"]);
  assert.ok(requests.every(({ path }) => path.startsWith("/v1/")));
  assert.deepEqual(errors, []);
  await context.close();
}

// What the organizer writes is text, whatever it looks like; and the policy stops what is not the page's own.
async function policy() {
  const { context, page, errors } = await open(PROFILE);
  await page.goto(LINK);
  await heading(page, "Choose how private");
  await page.getByText("<img src=x onerror=alert(1)> & <b>bold</b>").first().waitFor();
  assert.equal(await page.locator("img, b").count(), 0);
  assert.deepEqual(errors, []);
  const tried = await page.evaluate(async (elsewhere) => {
    const script = document.createElement("script");
    script.textContent = "window.ran = true";
    const style = document.createElement("style");
    style.textContent = "body { display: none }";
    document.head.append(script, style);
    const sent = await fetch(elsewhere, { mode: "no-cors" }).then(() => true, () => false);
    return { ran: window.ran ?? false, hidden: getComputedStyle(document.body).display === "none", sent };
  }, process.env.PAGE_ELSEWHERE);
  assert.deepEqual(tried, { ran: false, hidden: false, sent: false });
  await context.close();
}

// The real service, which keeps no records for tests: the person answers, and comes back for the result.
async function real() {
  const { context, page, errors } = await open(PROFILE);
  await page.goto(LINK);
  await answer(page, { level: "open" });
  await heading(page, "Thank you");
  await page.getByRole("button", { name: "Another person on this device" }).click();
  await page.getByLabel("Code or whole link").fill(OTHER_CODE);
  await page.getByRole("button", { name: "Use this code" }).click();
  await answer(page, { level: "careful", choice: "No answer", number: "0" });
  await heading(page, "Thank you");
  await page.getByRole("button", { name: "Another person on this device" }).click();
  await page.getByLabel("Code or whole link").fill("A".repeat(22));
  await page.getByRole("button", { name: "Use this code" }).click();
  await answer(page);
  await page.getByText("does not know this code").waitFor();
  assert.deepEqual(await axe(page), []);
  assert.deepEqual(errors, []);
  await context.close();
}

async function realResult() {
  const { context, page, errors } = await open(PROFILE);
  await page.goto(BASE);
  await heading(page, "The result");
  await page.getByText("2 people took part.").waitFor();
  await page.getByText("Every promise is kept.").waitFor();
  await page.getByText("The analyzer's signature is right.").waitFor();
  assert.deepEqual(await axe(page), []);
  assert.deepEqual(errors, []);
  await context.close();
}

// axe finds nothing in any step, language and scheme, and nothing is wider than a phone or a page zoomed to 400 %.
async function access() {
  const steps = { en: ["Answer at this level", "Yes", "Number", "Send"], de: ["Mit dieser Stufe antworten", "Ja", "Zahl", "Senden"], fr: ["Répondre à ce niveau", "Oui", "Nombre", "Envoyer"] };
  for (const [locale, [fix, yes, number, send]] of Object.entries(steps)) {
    const { context, page } = await open(mkdtempSync(join(tmpdir(), "page-")), { locale });
    const check = async (step) => {
      for (const colorScheme of ["light", "dark"]) {
        await page.emulateMedia({ colorScheme });
        assert.deepEqual(await axe(page), [], `${step} ${locale} ${colorScheme}`);
      }
      for (const width of [390, 320, 1280]) {
        await page.setViewportSize({ width, height: 800 });
        const wide = await page.evaluate(() => document.documentElement.scrollWidth);
        assert.ok(wide <= width, `${step} ${locale}: ${wide} pixels wide of ${width}`);
      }
    };
    await set({ mode: 503 });
    await page.goto(BASE);
    await page.locator("#code-step").waitFor();
    await check("code");
    await page.goto(LINK);
    await page.reload();
    await page.locator("#level input").first().check();
    await page.locator(".promises summary").click();
    await check("level");
    await page.getByRole("button", { name: fix }).click();
    await page.getByRole("button", { name: send, exact: true }).click();
    await check("missing");
    await page.getByRole("radio", { name: yes, exact: true }).check();
    await page.getByLabel(number, { exact: true }).fill("37.5");
    await page.getByRole("button", { name: send, exact: true }).click();
    await page.locator("#sent").waitFor();
    await page.locator("#ledger summary").click();
    await page.locator("#checks summary").click();
    await check("waiting");
    await set({ mode: "hold" });
    await page.locator("#sent button").click();
    await page.waitForFunction(() => document.getElementById("ledger").open === false);
    await check("held");
    await context.close();
  }
}

const scenarios = {
  ...{ answered, waiting, offline, lost, closed, another, tabs, keyboard, numbers, languages },
  ...{ states, failures, memory, noscript, elsewhere, policy, access, real, realResult },
};
await scenarios[process.argv[2]]();
