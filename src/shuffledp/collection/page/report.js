// The bytes of one report: every answer randomized, sealed to the analyzer, and all of it sealed to the shuffler.
import { join, seal } from "./hpke.js";
import { draw, pack } from "./draw.js";

const text = new TextEncoder();
const innerInfo = (task, j) => join(text.encode("shuffledp/1 inner\0"), task.digest, Uint8Array.of(j));
const outerInfo = (task) => join(text.encode("shuffledp/1 outer\0"), task.digest);

// Draws each question's report and seals it to the analyzer. `answers` holds each question's answer, a whole number
// from 0. Called once per person and task: the caller keeps what comes out.
export async function drawReport(task, levelNumber, answers, random) {
  if (answers.length !== task.questions.length) throw new Error("answers");
  const { draw: keeps } = task.levels[levelNumber];
  return Promise.all(
    task.questions.map(({ family }, j) => {
      const report = draw(family, keeps[j], answers[j], random);
      return seal(task.analyzerKey, innerInfo(task, j), pack(family, report));
    }),
  );
}

// What is sent: level, code (16 bytes; null under open admission) and what was drawn, sealed to the shuffler.
export async function sealReport(task, levelNumber, code, inners) {
  if ((code?.length ?? 0) !== task.codeBytes) throw new Error("code");
  const message = join(Uint8Array.of(levelNumber), code ?? new Uint8Array(0), ...inners);
  const sealed = await seal(task.shufflerKey, outerInfo(task), message);
  if (sealed.length !== task.size) throw new Error("a report has the wrong length");
  return sealed;
}
