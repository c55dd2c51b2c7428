// The order in which the page shows a survey that has no order of its own. It is drawn for each person, by chance alone,
// and stays in this page: it is neither kept nor sent. What is sent goes by the places in the task.
import { shuffled } from "./draw.js";

const inTurn = (texts) => texts.map((_, i) => i);

// Places of answers as they are shown; "no answer" stays last.
function places(texts, { order, optional }, random) {
  if (order !== "random") return inTurn(texts);
  const last = texts.length - Number(optional);
  return [...shuffled(inTurn(texts).slice(0, last), random), ...inTurn(texts).slice(last)];
}

// The same task, with the places of its questions in `shown`, and in that of each question the places of its answers;
// of a table those of its rows and of its columns.
export function inOrder(task, random) {
  const questions = task.questions.map((question) => {
    const { kind, choices, rows, columns } = question;
    const parts = kind === "table" ? [rows, columns] : [choices];
    const shown = parts.map((texts) => places(texts, question, random));
    return { ...question, shown: kind === "table" ? shown : shown[0] };
  });
  return { ...task, questions, shown: places(questions, { order: task.order, optional: false }, random) };
}
