// Pictures of every step, to be looked at: `python -m tests.collection.page.pictures FOLDER`.
import { mkdtempSync } from "node:fs";
import { join } from "node:path";
import { tmpdir } from "node:os";
import { BASE, CODE, open, set } from "./browser.mjs";

const WORDS = {
  en: ["Answer at this level", "Yes", "Number", "Send"],
  de: ["Mit dieser Stufe antworten", "Ja", "Zahl", "Senden"],
  fr: ["Répondre à ce niveau", "Oui", "Nombre", "Envoyer"],
};
const SIZES = { phone: { width: 390, height: 844 }, desktop: { width: 1280, height: 900 }, zoomed: { width: 320, height: 640 } };
const out = process.argv[2];
const only = process.argv[3];

for (const [language, [fix, yes, number, send]] of Object.entries(WORDS))
  for (const colorScheme of ["light", "dark"])
    for (const [size, viewport] of Object.entries(SIZES)) {
      const name = `${size}-${colorScheme}-${language}`;
      if (only && !name.includes(only)) continue;
      const { context, page, errors } = await open(mkdtempSync(join(tmpdir(), "page-")), { locale: language, colorScheme, viewport });
      const picture = (step) => page.screenshot({ path: join(out, `${name}-${step}.png`), fullPage: true });
      await set({ mode: 503, state: { state: "open" } });
      await page.goto(BASE);
      await page.locator("#code-step").waitFor();
      await picture("0-code");
      await page.goto(`${BASE}#${CODE}`);
      await page.locator("#level input").first().check();
      await picture("1-level");
      await page.getByRole("button", { name: fix }).click();
      await page.getByRole("radio", { name: yes, exact: true }).check();
      await page.getByLabel(number, { exact: true }).fill("37.5");
      await picture("2-answer");
      await page.getByRole("button", { name: send, exact: true }).press("Enter"); // a picture may leave the page scrolling
      await page.locator("#sent").waitFor();
      await picture("3-waiting");
      await set({ mode: "hold" });
      await page.locator("#sent button").click();
      await page.locator("#sent:not(:has-text('…')) button").waitFor();
      await page.waitForTimeout(300);
      await page.locator("#ledger summary").click();
      await page.locator("#checks summary").click();
      await picture("4-held");
      await set({ state: { state: "released" } });
      await page.reload();
      await page.locator("#result").waitFor();
      await picture("5-result");
      if (errors.length) console.log(name, errors);
      await context.close();
    }
