// What the scenarios share: a chromium of its own profile, the server's records, and axe.
import { mkdtempSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { tmpdir } from "node:os";
import { createRequire } from "node:module";
import { chromium } from "playwright-core";

const AXE = readFileSync(createRequire(import.meta.url).resolve("axe-core/axe.min.js"), "utf8");
const ARGUMENTS = ["--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run", "--disable-background-networking", "--disable-component-update", "--disable-sync"];

export const BASE = process.env.PAGE_LINK;
export const CODE = "AAECAwQFBgcICQoLDA0ODw";
export const OTHER_CODE = "EBESExQVFhcYGRobHB0eHw";

export const PROFILE = mkdtempSync(join(tmpdir(), "page-"));
export const LINK = `${BASE}#${CODE}`;
export const HEX = Buffer.from(CODE, "base64url").toString("hex");
export const OTHER_HEX = Buffer.from(OTHER_CODE, "base64url").toString("hex");
export const heading = (page, name) => page.getByRole("heading", { name }).waitFor();
export const posts = async () => (await seen()).requests.filter(({ method }) => method === "POST");

const control = () => new URL("/control", BASE);
export const seen = async () => (await fetch(control())).json();
export const set = (changes) => fetch(control(), { method: "POST", body: JSON.stringify(changes) });

// A browser with one page of a phone's size; errors of the page are gathered in `errors`.
export async function open(folder, options = {}) {
  const context = await chromium.launchPersistentContext(folder, {
    executablePath: process.env.CHROMIUM,
    args: ARGUMENTS,
    locale: "en-GB",
    viewport: { width: 390, height: 844 },
    ...options,
  });
  context.setDefaultTimeout(15_000);
  const page = context.pages()[0];
  const errors = [];
  page.on("pageerror", (error) => errors.push(String(error)));
  page.on("console", (message) => message.type() === "error" && errors.push(message.text()));
  return { context, page, errors };
}

// Violations that axe finds, as lines. It is evaluated in the page by the debugger, which the policy does not hold up.
export async function axe(page) {
  await page.evaluate(AXE);
  const { violations } = await page.evaluate(() => window.axe.run(document, { resultTypes: ["violations"] }));
  return violations.flatMap(({ id, nodes }) => nodes.map((node) => `${id}: ${node.html} ${node.failureSummary}`));
}

export const fixLevel = async (page, name) => {
  await page.getByRole("radio", { name }).check();
  await page.getByRole("button", { name: "Answer at this level" }).click();
  await page.locator("#answer").waitFor(); // the level is on disk by then
};

// From an opened link to a pressed Send: level, a choice, a number.
export async function answer(page, { level = "careful", choice = "Yes", number = "37.5" } = {}) {
  await fixLevel(page, level);
  await page.getByRole("radio", { name: choice, exact: true }).check();
  await page.getByLabel("Number").fill(number);
  await page.getByRole("button", { name: "Send", exact: true }).click();
}

// The records that this browser keeps, by date and slot; sealed bytes come as plain lists.
export const kept = (page) =>
  page.evaluate(
    () =>
      new Promise((resolve) => {
        indexedDB.open("shuffledp").onsuccess = ({ target }) => {
          const all = target.result.transaction("people").objectStore("people").getAll();
          all.onsuccess = () => resolve(all.result);
        };
      }),
  );
