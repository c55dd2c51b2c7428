// The law of a report, from the integer K that the task states for each level and question, and a draw from exactly
// that law. With chance K/2^64 a report is uniform on the answer's own reports, otherwise uniform on all reports.

const WHOLE = 1n << 64n;
const SLACK = 2 ** -40 - 2 ** -45; // a 32nd of 2^-40 is left for the roundings of checkLaw
const MOST_CELLS = 1024; // of a column of a dictionary; a choice has at most 1,000
const MOST_BITS = 32;

// The family a question names; its answers are 0..records-1 and its reports 0..reports-1. `weight` is the number of
// all reports over that of an answer's own. Answer i of one-bit and bits:B is the number low + i step. A report of bits:B
// travels as B pieces of one bit, every other one as it is: `pieces` of them, each one of `cells`.
export function readFamily(name, records) {
  if (name === "one-bit") return { kind: "one-bit", records, reports: 2, weight: 2n, pieces: 1, cells: 2 };
  const bits = Number(/^bits:([1-9][0-9]?)$/.exec(name)?.[1] ?? 0);
  if (bits > 0 && bits <= MOST_BITS) return { kind: "bits", records, reports: bits + 1, weight: BigInt(bits + 1), pieces: bits, cells: 2 };
  if (!(records >= 2 && records <= MOST_CELLS)) throw new Error("number of choices");
  if (name === (records === 2 ? "rr" : `krr:${records}`))
    return { kind: "krr", records, reports: records, weight: BigInt(records), pieces: 1, cells: records };
  if (name !== `hadamard:${records}`) throw new Error(`family ${name}`);
  let order = 1; // the smallest power of two above `records`
  while (order <= records) order *= 2;
  return { kind: "hadamard", records, reports: 2 * order, weight: 2n, pieces: 1, cells: 2 * order };
}

// Chance of each report of an answer, as numerators over their sum: 2^64 times the number of reports, for a number times
// the number of its steps, as what is kept is the answer rounded at random to a neighbour among 0..reports-1.
export function chances(family, keep, answer) {
  const hidden = WHOLE - keep;
  if (family.kind === "one-bit" || family.kind === "bits") {
    const [steps, scaled] = [BigInt(family.records - 1), BigInt(answer) * BigInt(family.reports - 1)];
    const [whole, part] = [Number(scaled / steps), scaled % steps];
    const kept = (y) => (y === whole ? steps - part : y === whole + 1 ? part : 0n);
    return Array.from({ length: family.reports }, (_, y) => steps * hidden + family.weight * keep * kept(y));
  }
  const isOwn = family.kind === "krr" ? (y) => y === answer : (y) => odd((y >> 1) & (answer + 1)) === (y & 1);
  return Array.from({ length: family.reports }, (_, y) => (isOwn(y) ? hidden + family.weight * keep : hidden));
}

// 1 if an odd number of bits are set: the sign of Sylvester's Hadamard matrix in row a, column j is (-1)^odd(a & j).
function odd(bits) {
  let parity = 0;
  for (let left = bits; left; left &= left - 1) parity ^= 1;
  return parity;
}

// Refuses an integer that lets a report tell two answers apart by more than e^(epsilon0 + 2^-40): the largest ratio of
// two answers' chances is 1 + weight K/(2^64 - K).
export function checkLaw(family, keep, epsilon0) {
  if (keep < 0n || keep >= WHOLE) throw new Error("the law of a report is no integer over 2^64");
  if (!(Math.log1p(Number(family.weight * keep) / Number(WHOLE - keep)) <= epsilon0 + SLACK))
    throw new Error("a report tells more than its level says");
}

const secure = (bytes) => crypto.getRandomValues(bytes);

// Uniform on 0..bound-1: as many random bits as the bound has, drawn again until they lie below it.
export function below(bound, random = secure) {
  const bits = bound.toString(2).length;
  const bytes = new Uint8Array(Math.ceil(bits / 8));
  for (;;) {
    random(bytes);
    let value = 0n;
    for (const byte of bytes) value = (value << 8n) | BigInt(byte);
    value >>= BigInt(8 * bytes.length - bits);
    if (value < bound) return value;
  }
}

// One report of an answer: a uniform integer among the running sums of `chances`.
export function draw(family, keep, answer, random = secure) {
  if (!(Number.isInteger(answer) && answer >= 0 && answer < family.records)) throw new Error("no such answer");
  const parts = chances(family, keep, answer);
  let left = below(parts.reduce((sum, part) => sum + part, 0n), random);
  let report = 0;
  while (left >= parts[report]) left -= parts[report++];
  return report;
}

// The same values in a uniformly random order (Fisher and Yates).
export function shuffled(values, random = secure) {
  const found = [...values];
  for (let i = found.length - 1; i > 0; i--) {
    const j = Number(below(BigInt(i + 1), random));
    [found[i], found[j]] = [found[j], found[i]];
  }
  return found;
}

// The pieces in which a report travels; those of bits:B stand in a random order.
export function piecesOf(family, report, random = secure) {
  if (family.kind !== "bits") return [report];
  return shuffled(Array.from({ length: family.pieces }, (_, i) => Number(i < report)), random);
}

// A piece as it travels: little-endian, in the least whole number of bytes for the family.
export function pack(family, piece) {
  return Uint8Array.from({ length: reportBytes(family) }, (_, i) => (piece >> (8 * i)) & 255);
}

export const reportBytes = (family) => Math.ceil((family.cells - 1).toString(2).length / 8);

// [numerator, denominator] of the chance that an answer decides its report.
export const ownShare = (keep) => [keep, WHOLE];

// [numerator, denominator] of the chance that a report of krr is the true answer.
export const trueShare = (family, keep) => [family.weight * keep + WHOLE - keep, family.weight * WHOLE];
