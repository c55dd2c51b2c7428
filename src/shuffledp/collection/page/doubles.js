// The floor of normal dummies in doubles, with what they may err: "First in doubles" of docs/theorems/normal.md. It encloses
// the number that normal.js finds by whole numbers; Python does the same (accounting/theorems/floor/doubles.py).
import { multiplyAll, NORMAL, powers, timesOf } from "./normal.js";

const EPS = 2 ** -53;
const LEAST = 2 ** -66; // rarer sums of cells are left out, and so much probability at either end of a law
const DOUBT = 2 ** -61; // what a product of sums of cells loses, as a part of its middle
const MOVED = 2 ** -58; // what one law of losses loses or moves
const MOST_PRODUCTS = 2 ** 30;
const MOST_APART = 1e-3;
const MOST_MASS = 2;
const UNKNOWN = [0, Infinity];
const FINE_ONE = 1n << NORMAL.fine;

const added = (numbers) => numbers.reduce((one, two) => one + two, 0);
const overOne = (value) => Number(value) / 2 ** Number(NORMAL.fine);

function bothSides(half) {
  const found = new Float64Array(2 * half.length - 1);
  found.set(half, half.length - 1);
  found.set(half.slice(1).reverse());
  return found;
}

// Coefficients of the product of two polynomials, from one on and so many.
function convolved(one, two, first, many) {
  const found = new Float64Array(many);
  const [short, long] = one.length < two.length ? [one, two] : [two, one];
  for (let i = 0; i < short.length; i++) {
    const each = short[i];
    const end = Math.min(long.length, first + many - i);
    for (let j = Math.max(first - i, 0); j < end; j++) found[i + j - first] += each * long[j];
  }
  return found;
}

// {weights, roundoffs, doubt} of the total of so many cells up to `reach` above its mean; `known` remembers sums.
function totalOf(side, cells, reach, known) {
  if (cells < 2) {
    const own = cells === 1 ? side : [1];
    const weights = new Float64Array(reach + 1);
    weights.set(own);
    return { weights, roundoffs: 3 * cells, doubt: 0 };
  }
  const [one, two] = [Math.floor(cells / 2), cells - Math.floor(cells / 2)].map((part) => sumOf(side, part, known));
  const [mine, theirs] = [bothSides(one.weights), bothSides(two.weights)];
  const weights = convolved(mine, theirs, one.weights.length + two.weights.length - 2, reach + 1);
  const [lost, other] = [one.doubt * one.weights[0], two.doubt * two.weights[0]];
  const missed = lost * added(theirs) + other * added(mine) + lost * other * cells * (2 * side.length - 1);
  const roundoffs = one.roundoffs + two.roundoffs + Math.min(mine.length, theirs.length) + 2;
  return { weights, roundoffs, doubt: (1.01 * missed) / weights[0] + DOUBT };
}

function sumOf(side, cells, known) {
  if (cells === 1) return { weights: side, roundoffs: 3, doubt: 0 };
  const name = `${side.length} ${cells}`;
  if (!known.has(name)) {
    const ends = [Math.floor(cells / 2), cells - Math.floor(cells / 2)].map((part) => sumOf(side, part, known).weights.length - 1);
    const whole = totalOf(side, cells, ends[0] + ends[1], known);
    let kept = whole.weights.length;
    while (whole.weights[kept - 1] < LEAST * whole.weights[0]) kept -= 1;
    known.set(name, { ...whole, weights: whole.weights.slice(0, kept) });
  }
  return known.get(name);
}

// The law of i - j without local noise: {chances of 1 - 2h, 2 - 2h, ..., ends: that q is 0, and its errors}.
function unhidden(answers, { side: whole, bent }, known) {
  const h = whole.length - 1;
  const side = Float64Array.from(whole, (each) => Number(each) / Number(whole[0]));
  const others = totalOf(side, answers - 2, 2 * h + 1, known);
  const chances = new Float64Array(4 * h + 1);
  let [total, ends, missed, share] = [0, 0, 0, 0];
  for (const parity of [0, 1]) {
    const weights = side.map((each, u) => each * (parity === 0 ? each : (side[u + 1] ?? 0)));
    const twice = weights.map((each, v) => each * side[1 - parity] * (2 * v + parity > 0 ? 2 : 1));
    const terms = twice.map((each, v) => each * others.weights[2 * v + parity]);
    const upTo = [0];
    terms.forEach((each, v) => upTo.push(upTo[v] + each));
    for (let half = 0; half <= h - parity; half++) {
      const [apart, last] = [2 * half + parity, h - half - parity]; // as in normal.js
      const all = weights[half] * upTo[last + 1];
      total += apart > 0 ? 2 * all : all;
      chances[2 * h - apart] = all;
      chances[2 * h + apart] = weights[half] * upTo[last];
      ends += weights[half] * terms[last];
      missed += weights[half] * twice[last] * others.doubt * others.weights[0];
    }
    if (others.doubt > 0) share = Math.max(share, (others.doubt * others.weights[0] * added(twice)) / upTo[h + 1]);
  }
  const scale = overOne(bent) / total;
  return {
    chances: chances.map((each) => each * scale),
    ends: ends * scale,
    roundoffs: 2 * others.roundoffs + 8 * h + 64,
    doubt: 5 * share,
    moved: 2 * missed * scale,
  };
}

// How many of the first powers of rho are below a value, or at most it.
function countBelow(listed, value, orEqual) {
  let [low, high] = [0, listed.length];
  while (low < high) {
    const middle = (low + high) >> 1;
    if (listed[middle] < value || (orEqual && listed[middle] === value)) low = middle + 1;
    else high = middle;
  }
  return low;
}

// Bounds on ratios in doubles: their excess over 1, and the share of q in p where p is larger; null beyond all powers.
function boundsOf(shape, ratios) {
  const last = 2n * shape.ratios[shape.ratios.length - 1].above;
  ratios.reach(() => ratios.low[ratios.low.length - 1] > last);
  if (ratios.low[ratios.low.length - 1] <= last) return null;
  return shape.ratios.map(({ above, share, below }) => ({
    excess: overOne((above ?? below) - FINE_ONE),
    share: above === undefined ? null : overOne(share),
  }));
}

// A law without what is hardly possible at either end; one loss stays, even if an infinite one is nearly certain.
function likely({ start, chances, ...rest }) {
  let [low, top, below, above] = [0, chances.length, 0, 0];
  while (low < chances.length - 1 && below + chances[low] < LEAST) below += chances[low++];
  while (top > low + 1 && above + chances[top - 1] < LEAST) above += chances[--top];
  return { start: start + low, chances: chances.slice(low, top), ...rest };
}

// The law of losses of one report that is the answer's own with chance keep/2^64.
function lossesOf(pair, bounds, { table, steep }, keep) {
  const [kappa, hide] = [keep, (1n << 64n) - keep].map((each) => Number(each) / 2 ** 64);
  const [places, masses] = [[], []];
  let level = pair.ends;
  bounds.forEach(({ excess, share }, i) => {
    const ratio = 1 + kappa * excess;
    const n = countBelow(table, ratio, share !== null) - (share === null ? 0 : 1);
    const part = Math.min(Math.max((1 - (share === null ? ratio / table[n] : table[n] / ratio)) * steep, 0), 1);
    const own = pair.chances[i] * (share === null ? 1 : kappa + hide * share);
    if (share !== null) level += (pair.chances[i] * excess) / (1 + excess);
    places.push(share === null ? -n : n);
    masses.push([own * (1 - part), own * part]);
  });
  const start = Math.min(0, ...places);
  const chances = new Float64Array(Math.max(0, ...places) - start + 2);
  places.forEach((place, i) => {
    chances[place - start] += masses[i][0];
    chances[place - start + 1] += masses[i][1];
  });
  chances[-start] += hide * level;
  const roundoffs = pair.roundoffs + 2 * bounds.length + 32;
  return likely({ start, chances, infinite: kappa * pair.ends, roundoffs, doubt: pair.doubt });
}

function together(one, two) {
  if (one === null || two === null || one.chances.length * two.chances.length > MOST_PRODUCTS) return null;
  const [mine, theirs] = [added(one.chances), added(two.chances)];
  return likely({
    start: one.start + two.start,
    chances: convolved(one.chances, two.chances, 0, one.chances.length + two.chances.length - 1),
    infinite: one.infinite * (theirs + two.infinite) + mine * two.infinite,
    roundoffs: one.roundoffs + two.roundoffs + 2 * Math.max(one.chances.length, two.chances.length) + 4,
    doubt: one.doubt + two.doubt,
  });
}

// [low, high] that hold delta at e^epsilon = factor, by a law of all columns' losses and its errors.
function enclosed(law, table, apart, moved, factor) {
  const gain = (n) => (n < 0 ? 0 : n >= table.length ? 1 : Math.max(1 - factor / table[n], 0));
  let [found, beyond] = [law.infinite, law.infinite];
  law.chances.forEach((chance, i) => {
    found += chance * gain(law.start + i);
    beyond += chance * gain(law.start + i + 1);
  });
  const relative = (law.roundoffs + law.chances.length + 16) * EPS + law.doubt;
  if (!(apart <= MOST_APART && relative <= MOST_APART)) return UNKNOWN;
  const width = 2 * (relative * found + apart * beyond + 4 * apart * apart + moved);
  return [Math.max(found - width, 0), found + width];
}

// For each level a function of e^epsilon, from 1 to e^40, as a double: [low, high] around what `normalFloor` finds.
export function roughFloor({ ratios, kinds }) {
  const [known, shapes] = [new Map(), new Map()];
  for (const { shape } of kinds) if (!shapes.has(shape)) shapes.set(shape, boundsOf(shape, ratios));
  const laws = kinds.map((kind) => ({ ...kind, pair: unhidden(kind.answers, kind.shape, known), bounds: shapes.get(kind.shape) }));
  if (laws.some(({ bounds }) => bounds === null)) return () => () => UNKNOWN;
  const lattice = { table: ratios.low.map(overOne), steep: overOne(ratios.rho) / overOne(ratios.rho - FINE_ONE) };
  return (level) => {
    let [questions, moved, mass] = [0, 0, 1];
    const found = laws.flatMap((kind) =>
      timesOf(kind, level).flatMap(([keep, count]) => {
        const law = lossesOf(kind.pair, kind.bounds, lattice, keep);
        questions += count;
        moved += count * (kind.pair.moved + 2 * MOVED);
        mass *= Math.max(1, added(law.chances) + law.infinite) ** count;
        return powers(law, count, together);
      }),
    );
    const all = multiplyAll(found, together);
    if (all === null || !(mass <= MOST_MASS)) return () => UNKNOWN;
    ratios.reach(() => ratios.low.length > all.start + all.chances.length + 1);
    const table = ratios.low.map(overOne);
    return (factor) => enclosed(all, table, 32 * (3 * questions + 1) * lattice.steep * EPS, 2 * mass * moved, factor);
  };
}
