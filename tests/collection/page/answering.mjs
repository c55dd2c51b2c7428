// A person who answers: from the link to a report that is held, also where something fails on the way.
import assert from "node:assert/strict";
import { BASE, CODE, HEX, LINK, OTHER_CODE, OTHER_HEX, PROFILE, answer, fixLevel, heading, kept, open, posts, seen, set } from "./browser.mjs";

export async function answered() {
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
  await page.getByText("Your level: “middle”.").waitFor();
  assert.equal(await page.getByRole("radio", { name: "careful" }).count(), 0, "the level is fixed, also after a reload");
  await page.getByText("This device has not told “Institute of Occupational Health” anything yet.").waitFor();
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
export async function waiting() {
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
  await page.getByText("Answers from this device to this survey so far: 1.").waitFor();
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

export async function offline() {
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
export async function lost() {
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

export async function closed() {
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
  await heading(page, "Have you answered before?");
  assert.equal(await page.getByRole("button", { name: "It was me" }).count(), 0, "nothing waits for a code");
  await page.getByRole("button", { name: "Another person on this device" }).click();
  await answer(page);
  await heading(page, "Waiting to be sent");
  await set({ mode: 410 });
  await page.getByRole("button", { name: "Try again now" }).click();
  await heading(page, "Closed before the arrival was confirmed");
  const states = (await kept(page)).map(({ state, sealed, inners }) => [state, sealed, inners]).sort();
  assert.deepEqual(states, [["refused", undefined, undefined], ["unclear", undefined, undefined]]);
  await context.close();
}

export async function another() {
  const { context, page } = await open(PROFILE);
  await set({ codes: [HEX, OTHER_HEX] });
  await page.goto(LINK);
  await answer(page);
  await heading(page, "Thank you");
  await page.getByRole("button", { name: "Another person on this device" }).click();
  await heading(page, "Your code");
  await page.getByText("Answers from this device to this survey so far: 1.").waitFor();
  await page.getByLabel("Code or whole link").fill("no code");
  await page.getByRole("button", { name: "Use this code" }).click();
  await page.getByText("This is no code").waitFor();
  const unknown = `${"A".repeat(21)}A`;
  await page.getByLabel("Code or whole link").fill(unknown);
  await page.getByRole("button", { name: "Use this code" }).click();
  await fixLevel(page, "open");
  await page.getByText("With this survey: ε ≤ 1.1 as promised, ≤ 9 at worst (2 surveys).").waitFor();
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

// A person whose code was refused opens the link that the organiser sends: the report drawn before, not a second draw.
export async function newLink() {
  const { context, page } = await open(PROFILE);
  await set({ codes: [OTHER_HEX] });
  await page.goto(LINK);
  await answer(page);
  await heading(page, "Not counted");
  await page.getByText("could hand it over twice").waitFor();
  const [{ inners }] = await kept(page);
  await page.goto("about:blank");
  await page.goto(`${BASE}#${OTHER_CODE}`);
  await heading(page, "Have you answered before?");
  await page.getByText("could hand it over twice").waitFor();
  await page.getByRole("button", { name: "It was me" }).click();
  await heading(page, "Thank you");
  const { opened } = await seen();
  assert.deepEqual(opened.map(({ code }) => code), [OTHER_HEX]);
  assert.equal(inners.length, 2);
  assert.deepEqual((await kept(page)).map(({ state }) => state), ["held"], "one person, one line");
  await context.close();
}

// Two tabs of one person both press Send: what was kept first is what both send.
export async function tabs() {
  const { context, page } = await open(PROFILE);
  const second = await context.newPage();
  for (const tab of [page, second]) {
    await tab.goto(LINK);
    await heading(tab, "Choose how private");
  }
  await fixLevel(page, "careful");
  await second.getByRole("radio", { name: "open" }).check();
  await second.getByRole("button", { name: "Answer at this level" }).click();
  await second.getByText("Your level: “careful”.").waitFor();
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

export async function keyboard() {
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

export async function numbers() {
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

export async function languages() {
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
