// A later deadline: a notice that the task's shuffler signs, as collection/task.py has it.
import { join, signedBy } from "./hpke.js";
import { label } from "./task.js";

const MAGIC = [0x53, 0x48, 0x46, 0x4e]; // "SHFN"; the task's version follows
const BODY = 53; // magic, version, digest 32, closes 8, expires 8
const SIGNATURE = 64;
const LATEST = 253402300799n;

const time = (seconds) => `${new Date(1000 * Number(seconds)).toISOString().slice(0, 19)}Z`;

// {closes, expires} as a task writes them, or null: a notice that is not signed by the shuffler, is about another task
// or would shorten anything is none. Where the browser knows no Ed25519 it is believed: a date promises nothing.
export async function readNotice(bytes, task) {
  if (bytes.length !== BODY + SIGNATURE || ![...MAGIC, task.version].every((byte, i) => bytes[i] === byte)) return null;
  if (!task.digest.every((byte, i) => bytes[5 + i] === byte)) return null;
  const view = new DataView(bytes.buffer, bytes.byteOffset);
  const [closes, expires] = [37, 45].map((at) => view.getBigUint64(at, true));
  const [before, ended] = [task.closes, task.expires].map((text) => BigInt(Date.parse(text) / 1000));
  if (!(before < closes && closes <= expires && ended <= expires && expires <= LATEST)) return null;
  const signed = await signedBy(task.shufflerIdentity, bytes.slice(BODY), join(label(task.version, "notice"), bytes.slice(0, BODY)));
  return signed === false ? null : { closes: time(closes), expires: time(expires) };
}
