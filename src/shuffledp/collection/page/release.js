// The release of a task: "SHFR" 01 | u32 R | R bytes of JSON | Ed25519 signature 64, read once the analyzer has signed.
import { join, signedBy } from "./hpke.js";
import { fromBase64url, label } from "./task.js";

const MAGIC = [0x53, 0x48, 0x46, 0x52]; // the task's version follows
const HEAD = 9;
const SIGNATURE = 64;

// {releases, collection, signed}; throws if the bytes are no release of `task` signed by its analyzer. `signed` is null
// where the browser knows no Ed25519.
export async function readRelease(bytes, task) {
  const end = bytes.length - SIGNATURE;
  if (end < HEAD || ![...MAGIC, task.version].every((byte, i) => bytes[i] === byte)) throw new Error("format");
  const length = new DataView(bytes.buffer, bytes.byteOffset).getUint32(MAGIC.length + 1, true);
  if (end !== HEAD + length) throw new Error("format");
  const document = bytes.slice(HEAD, end);
  const body = join(label(task.version, "release"), task.digest, document);
  const signed = await signedBy(fromBase64url(task.analyzer_identity), bytes.slice(end), body);
  if (signed === false) throw new Error("signature");
  const { releases, collection } = JSON.parse(new TextDecoder("utf-8", { fatal: true }).decode(document));
  if (collection.id !== task.id || releases.length !== task.questions.length) throw new Error("format");
  return { releases, collection, signed };
}
