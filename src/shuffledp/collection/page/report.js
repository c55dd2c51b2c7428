// The bytes of one report: every answer randomized, sealed to the analyzer, and all of it sealed to the shuffler.
import { join, seal } from "./hpke.js";
import { draw, pack } from "./draw.js";

const text = new TextEncoder();
const innerInfo = (task, j) => join(text.encode("shuffledp/1 inner\0"), task.digest, Uint8Array.of(j));
const outerInfo = (task) => join(text.encode("shuffledp/1 outer\0"), task.digest);

// Draws and seals one report. `answers` holds each question's answer, a whole number from 0; `code` is 16 bytes, or
// null under open admission. Called once per person and task: the caller keeps the bytes and sends only those.
export async function sealReport(task, levelNumber, answers, code, random) {
  if ((code?.length ?? 0) !== task.codeBytes || answers.length !== task.questions.length) throw new Error("answers");
  const { draw: keeps } = task.levels[levelNumber];
  const inners = await Promise.all(
    task.questions.map(({ family }, j) => {
      const report = draw(family, keeps[j], answers[j], random);
      return seal(task.analyzerKey, innerInfo(task, j), pack(family, report));
    }),
  );
  const message = join(Uint8Array.of(levelNumber), code ?? new Uint8Array(0), ...inners);
  const sealed = await seal(task.shufflerKey, outerInfo(task), message);
  if (sealed.length !== task.size) throw new Error("a report has the wrong length");
  return sealed;
}
