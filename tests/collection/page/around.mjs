// What is around answering: states of a task, browsers that lack something, other hosts, access for everybody.
import assert from "node:assert/strict";
import { mkdtempSync } from "node:fs";
import { join } from "node:path";
import { tmpdir } from "node:os";
import { BASE, CODE, LINK, OTHER_CODE, PROFILE, answer, axe, heading, kept, open, seen, set } from "./browser.mjs";

const STATES = [
  ["not-yet-open", "Not open yet", /opens 1 January 2030/],
  ["closing", "This survey is closed", /as soon as it is published/],
  ["destroyed", "Destroyed unopened", /Too few people/],
  ["deleted", "No longer here", /its result is no longer shown here/],
];

export async function states() {
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
  for (const text of ["People who took part: 1,000.", "about 31 %, between 27 and 35 %", "about 5 %, between 0 and 10 %"])
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

export async function failures() {
  const { context, page } = await open(PROFILE);
  await set({ tampered: true });
  await page.goto(LINK);
  await page.getByText("is not the survey that your link names").waitFor();
  assert.equal(await page.getByRole("button", { name: "Answer" }).count(), 0);
  await set({ tampered: false });
  await context.setOffline(true);
  const dark = await context.newPage();
  await context.setOffline(false);
  await dark.route("**/v1/**", (route) => route.abort());
  await dark.goto(LINK);
  await heading(dark, "The survey could not be loaded");
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
export async function memory() {
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

export async function noscript() {
  const { context, page } = await open(PROFILE, { javaScriptEnabled: false });
  await page.goto(LINK);
  for (const text of ["Please allow JavaScript", "Bitte erlauben Sie JavaScript", "Veuillez autoriser JavaScript"])
    assert.ok((await page.locator("noscript").innerText()).includes(text));
  await context.close();
}

// The page from another host: its own policy, one task, and reports that go to the shuffler without a preflight.
export async function elsewhere() {
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
export async function policy() {
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
export async function real() {
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

export async function realResult() {
  const { context, page, errors } = await open(PROFILE);
  await page.goto(BASE);
  await heading(page, "The result");
  await page.getByText("2 of 2 people who were invited took part.").waitFor();
  await page.getByText("Every promise is kept.").waitFor();
  await page.getByText("The analyzer's signature is right.").waitFor();
  assert.deepEqual(await axe(page), []);
  assert.deepEqual(errors, []);
  await context.close();
}

// axe finds nothing in any step, language and scheme, and nothing is wider than a phone or a page zoomed to 400 %.
export async function access() {
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

const FRONT = {
  "en-GB": ["en", "Surveys", "Health at work", "No such survey", /names no survey that this server knows/],
  "de-AT": ["de", "Umfragen", "Gesundheit im Betrieb", "Keine solche Umfrage", /nennt keine Umfrage, die dieser Server kennt/],
  "fr-CA": ["fr", "Enquêtes", "La santé au travail", "Enquête inconnue", /ne nomme aucune enquête que ce serveur connaisse/],
  "it-IT": ["en", "Surveys", "Health at work", "No such survey", /names no survey that this server knows/],
};

// The page of open surveys, and that of a link which names none, on a phone: in the reader's language, and nothing wider
// than the screen, though the second survey's title is one long word.
export async function front() {
  for (const [locale, [language, title, survey, unknownTitle, unknown]] of Object.entries(FRONT)) {
    const { context, page, errors } = await open(mkdtempSync(join(tmpdir(), "page-")), { locale });
    const check = async (name) => {
      assert.equal(await page.title(), name);
      assert.deepEqual(await page.getByRole("heading").allTextContents(), [name]);
      assert.equal(await page.evaluate(() => document.documentElement.lang), language);
      assert.deepEqual(await axe(page), [], `${name} ${locale}`);
      for (const width of [390, 320]) {
        await page.setViewportSize({ width, height: 844 });
        const wide = await page.evaluate(() => document.documentElement.scrollWidth);
        assert.ok(wide <= width, `${name} ${locale}: ${wide} pixels wide of ${width}`);
      }
    };
    const home = new URL("/", BASE).href;
    assert.equal((await page.goto(home)).status(), 200);
    await check(title);
    assert.equal(await page.getByRole("link").count(), 2);
    await page.getByRole("link", { name: survey }).click();
    await heading(page, survey);
    assert.equal(page.url(), BASE);
    await page.goBack();
    assert.equal(await page.title(), title);
    assert.deepEqual(errors, [], `${locale}`);
    for (const path of ["nowhere", "v1/lunch", "t/lunch", "t/" + "x".repeat(500)]) {
      assert.equal((await page.goto(home + path)).status(), 404);
      await check(unknownTitle);
      await page.getByText(unknown).waitFor();
    }
    await context.close();
  }
}

// The front page where no survey is open.
export async function frontClosed() {
  const { context, page } = await open(mkdtempSync(join(tmpdir(), "page-")));
  await page.goto(new URL("/", BASE).href);
  await page.getByText("No survey is open here now.").waitFor();
  assert.equal(await page.getByRole("link").count(), 0);
  await context.close();
}
