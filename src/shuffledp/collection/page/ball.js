// Whether the dummies of a task keep its promises: the floor of docs/theorems/ball.md, (B1) to (B4), in whole numbers
// rounded outward; that of normal dummies is in normal.js. Python decides alike (src/shuffledp/ball.py,
// collection/promise.py).
import { roughFloor } from "./doubles.js";
import { kindsOf, NORMAL, normalFloor } from "./normal.js";

const ROOM = 1e-8; // by so much another machine's promise may be short, as in collection/agreement.py
const WHOLE = 1n << 64n;
const FINE = 128n; // binary digits behind the point of chances and powers of e
const EXP = 192n; // and of a power of e while it is computed
const MOST_WORK = 2 ** 22; // as in collection/work.py: somebody else's task must not keep a browser busy

// The coefficients of a power series over (1 - x)^times: running sums, so many times.
function repeated(numbers, times) {
  const found = [...numbers];
  for (let i = 0; i < times; i++) for (let r = 1; r < found.length; r++) found[r] += found[r - 1];
  return found;
}

function binomials(n, most) {
  const row = [1n];
  for (let i = 1; i <= most; i++) row.push(i > n ? 0n : (row[i - 1] * BigInt(n - i + 1)) / BigInt(i));
  return row;
}

// Points of the balls of radius 0..last of a choice among so many cells: sum_j C(d, j)^2 x^j / (1 - x)^(d + 1).
function balls(cells, last) {
  return repeated(binomials(cells - 1, last).map((one) => one * one), cells);
}

// Points of the balls of a column, and how many of each the largest change of one report moves out of it.
function countsOf({ kind, size }, last) {
  if (kind === "choice") return { inside: balls(size, last), rim: balls(size - 1, last) };
  const radii = Array.from({ length: last + 1 }, (_, r) => r);
  return { inside: radii.map((r) => BigInt(2 * size * r + 1)), rim: radii.map((r) => BigInt(r === 0 ? 1 : size)) };
}

// {at, beyond}: that a change of one report makes a cell of a column negative if it has `centre` dummies in the mean, and
// that it is negative anyway; `high[r]` is a point's chance from above. Of a choice P(z = -v) = sum_s u_s u_(s + v)
// g_(s + v), with u the coefficients of (1 - x)^-d, d = k - 1, and g the d-th difference of the points' chances.
function tailsOf({ kind, size, centre }, high) {
  const last = high.length - 1;
  let [at, beyond] = [0n, 0n];
  if (kind === "bits") {
    for (let v = Math.max(centre - size + 1, -centre); v <= centre; v++) at += high[Math.ceil(Math.abs(v) / size)] ?? 0n;
    for (let v = centre + 1; v <= last * size; v++) beyond += high[Math.ceil(v / size)];
    return { at, beyond };
  }
  const differences = [...high];
  for (let i = 1; i < size; i++) for (let r = 0; r < last; r++) differences[r] -= differences[r + 1];
  const ways = repeated([1n, ...Array(last).fill(0n)], size - 1);
  let before = 0n; // ways up to t - centre - 1
  for (let t = centre; t <= last; t++) {
    const weighted = ways[t] * differences[t];
    at += ways[t - centre] * weighted;
    beyond += before * weighted;
    before += ways[t - centre];
  }
  return { at, beyond };
}

// Chances of a point of gauge r from below and from above, r = 0..last + 1, times 2^64 2^bits.
function radial(weights, points) {
  const bits = BigInt(points[points.length - 1].toString(2).length) + EXP;
  const [low, high] = [[0n], [0n]];
  for (let r = weights.length - 1; r >= 0; r--) {
    const scaled = weights[r] << bits;
    low.unshift(low[0] + scaled / points[r]);
    high.unshift(high[0] + scaled / points[r] + BigInt(scaled % points[r] !== 0n));
  }
  return { low, high, bits: bits + 64n };
}

// The law of a task's dummies: what (B1) adds up, and what drawing again adds: `emptied`, the chance that a change of
// one report makes a cell negative, summed over columns, and `refused`, that any cell is; from above, times 2^FINE.
function lawOf(task) {
  const weights = task.dummies.radius.map(BigInt);
  if (weights.reduce((sum, weight) => sum + weight, 0n) !== WHOLE) throw new Error("dummies");
  const last = weights.length - 1;
  const kinds = new Map(); // columns of one kind and centre are counted once
  for (const { family, centre } of task.columns) {
    const column = family.kind === "bits" ? { kind: "bits", size: family.pieces, step: family.pieces } : { kind: "choice", size: family.records, step: 1 };
    const name = `${column.kind} ${column.size} ${centre}`;
    kinds.set(name, { ...column, centre, cells: family.cells, count: (kinds.get(name)?.count ?? 0) + 1 });
  }
  checkWork([...kinds.values()].map(({ size }) => weights.length * (size + Math.floor(weights.length / 8))));
  const [points, stay] = [weights.map(() => 1n), weights.map(() => 1n)];
  let [emptied, refused] = [0n, 0n];
  for (const kind of kinds.values()) {
    const { inside, rim } = countsOf(kind, last);
    const count = BigInt(kind.count);
    inside.forEach((one, r) => {
      points[r] *= one ** count;
      stay[r] *= (one - rim[r]) ** count;
    });
    if (kind.centre >= last * kind.step) continue;
    const { high, bits } = radial(weights, inside);
    const { at, beyond } = tailsOf(kind, high.slice(0, -1));
    emptied += count * ((at >> (bits - FINE)) + 1n);
    refused += count * (((BigInt(kind.cells) * beyond) >> (bits - FINE)) + 1n);
  }
  if (2n * refused >= 1n << FINE) throw new Error("dummies");
  return { moved: points.map((one, r) => one - stay[r]), ...radial(weights, points), emptied, refused };
}

// A double as [whole number, binary digits behind its point].
function exactly(value) {
  let digits = 0n;
  while (!Number.isInteger(value)) [value, digits] = [2 * value, digits + 1n];
  return [BigInt(value), digits];
}

// e^value from below, times 2^FINE: every step rounds down, and no term is negative.
export function expBelow(value) {
  const [whole, digits] = exactly(value);
  let halvings = 8n;
  while (whole >> (digits + halvings) > 0n) halvings += 1n;
  const x = (whole << EXP) >> (digits + halvings);
  let [sum, term] = [0n, 1n << EXP];
  for (let i = 1n; term > 0n; i++) [sum, term] = [sum + term, ((term * x) >> EXP) / i];
  for (; halvings > 0n; halvings--) sum = (sum * sum) >> EXP;
  return sum >> (EXP - FINE);
}

// The chance, from above and times 2^FINE, that any report of a person is the answer's own.
function touched(task, level) {
  let none = 1n << FINE;
  for (const { question } of task.columns) none = (none * (WHOLE - level.draw[question])) >> 64n;
  return (1n << FINE) - none;
}

// Whether delta covers a promise at one level, by (B2) and, of two reports of a person, (B3).
function covers(law, task, kappa, epsilon) {
  const isTwice = task.admission === "open";
  const one = 1n << FINE;
  const power = expBelow(isTwice ? epsilon / 2 : epsilon);
  const gain = power - one;
  let sum = 0n; // times 2^(law.bits + FINE)
  law.moved.forEach((moved, r) => {
    const more = kappa * (law.high[r] - law.low[r + 1]) - gain * law.low[r + 1];
    if (more > 0n) sum += moved * more;
  });
  sum += kappa * (law.emptied << (law.bits - FINE));
  if (task.columns.length === 1) {
    const part = (kappa * power) / (kappa + gain) + 1n;
    if (part < one) sum = (sum * (one - (one - part) / BigInt(task.columns[0].family.reports))) >> FINE;
    sum += 1n;
  }
  if (isTwice) sum = ((sum * (one + power)) >> FINE) + 1n;
  const [whole, digits] = exactly(task.delta);
  return sum << digits <= (whole << law.bits) * (one - law.refused);
}

function checkWork(terms) {
  if (terms.reduce((one, two) => one + two, 0) > MOST_WORK) throw new Error("dummies");
}

// The same of normal dummies: (C3) in the place of (B1), and (B3).
function normalCovers(task) {
  const sizes = new Map(task.columns.map(({ family, centre }) => [`${family.records} ${centre}`, [family.records, centre + 1]]));
  checkWork([...sizes.values()].map(([size, many]) => 4 * many * many + 32 * size * many));
  const kinds = kindsOf(task);
  const rough = roughFloor(kinds);
  const isTwice = task.admission === "open";
  const known = { exact: null };
  return (level, epsilon) => {
    const power = expBelow(isTwice ? epsilon / 2 : epsilon);
    if (power < 1n << (FINE + 57n)) { // e^epsilon < e^39.5
      const e = Number(power) / 2 ** Number(FINE);
      const [low, high] = rough(level)(e).map((each) => (isTwice ? each * (1 + e) : each));
      if (high * (1 + 2 ** -50) <= task.delta) return true;
      if (low * (1 - 2 ** -50) > task.delta) return false;
    }
    known.exact ??= normalFloor(kinds);
    const factor = power << (NORMAL.fine - FINE);
    let found = known.exact(level)(factor); // times 2^mass
    if (isTwice) found = ((found * ((1n << NORMAL.fine) + factor)) >> NORMAL.fine) + 1n;
    const [whole, digits] = exactly(task.delta);
    return found << digits <= whole << NORMAL.mass;
  };
}

function ballCovers(task) {
  const law = lawOf(task);
  return (level, epsilon) => covers(law, task, touched(task, level), epsilon);
}

// Throws unless every level's promise is kept by the dummies, or by its local budgets alone.
export function checkPromises(task) {
  if (task.version === 1) return;
  const isKept = task.dummies.law === "normal" ? normalCovers(task) : ballCovers(task);
  const reports = task.columns.length * (task.admission === "open" ? 2 : 1);
  for (const level of task.levels) {
    const edge = level.promise * (1 + ROOM);
    const local = (level.epsilon0 + 2 ** -40) * reports * (1 + 2 ** -50);
    if (local > edge && !isKept(level, edge)) throw new Error("promise");
  }
}
