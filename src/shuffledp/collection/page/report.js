// The bytes of one report: every answer randomized, sealed to the analyzer, and all of it sealed to the shuffler.
import { join, seal } from "./hpke.js";
import { draw, pack, piecesOf } from "./draw.js";
import { cellsOfWord, label } from "./task.js";

const innerInfo = (task, j) => join(label(task.version, "inner"), task.digest, Uint8Array.of(j));
const outerInfo = (task) => join(label(task.version, "outer"), task.digest);

// Draws each column's report and seals its pieces to the analyzer. `answers` holds each question's answer, a whole
// number from 0. Called once per person and task: the caller keeps what comes out.
export async function drawReport(task, levelNumber, answers, random) {
  if (answers.length !== task.questions.length) throw new Error("answers");
  const { draw: keeps } = task.levels[levelNumber];
  const records = task.questions.flatMap((question, j) => recordsOf(question, answers[j]));
  return Promise.all(
    task.columns.flatMap(({ family, question }, j) => {
      const report = draw(family, keeps[question], records[j], random);
      return piecesOf(family, report, random).map((piece) => seal(task.analyzerKey, innerInfo(task, j), pack(family, piece)));
    }),
  );
}

// What is reported to each column of a question: of several options, whether each is in the set that the bits name; of
// a dictionary the word's two cells.
export function recordsOf(question, answer) {
  if (question.kind === "dictionary") {
    if (!(Number.isInteger(answer) && answer >= 0 && answer < question.choices.length)) throw new Error("no such answer");
    return cellsOfWord(answer);
  }
  if (question.kind !== "several") return [answer];
  if (!(Number.isInteger(answer) && answer >= 0 && answer < 2 ** question.width)) throw new Error("no such answer");
  return Array.from({ length: question.width }, (_, i) => Math.floor(answer / 2 ** i) % 2);
}

// What is sent: level, code (16 bytes; null under open admission) and what was drawn, sealed to the shuffler.
export async function sealReport(task, levelNumber, code, inners) {
  if ((code?.length ?? 0) !== task.codeBytes) throw new Error("code");
  const message = join(Uint8Array.of(levelNumber), code ?? new Uint8Array(0), ...inners);
  const sealed = await seal(task.shufflerKey, outerInfo(task), message);
  if (sealed.length !== task.size) throw new Error("a report has the wrong length");
  return sealed;
}
