// The floor of normal dummies, (C1) to (C3) of docs/theorems/normal.md, in whole numbers rounded outward. Python finds the
// same whole numbers (accounting/theorems/floor/normal.py), but for the last digits of a power of e.
const WHOLE = 1n << 64n;
const FINE = 160n; // binary digits behind the point of ratios and of their powers
const MASS = 96n; // and of chances
const KEPT = 64; // binary digits of the largest chance of a sum of cells
const LOST = 1n << (MASS - 60n); // so much chance at either end of a product is moved up
const SPLIT = 1n << (FINE - MASS);
const MOST_POWER = 2 ** 14;
const ONE = 1n << FINE;
const MOST_BEND = ONE + (ONE >> 6n);

const sum = (numbers) => numbers.reduce((one, two) => one + two, 0n);
const largest = (numbers) => numbers.reduce((one, two) => (one > two ? one : two), 0n);
const smaller = (one, two) => (one < two ? one : two);
const up = (value, unit) => (value + unit - 1n) / unit;
const shiftedUp = (value, digits) => -(-value >> digits);

// Coefficients of the product of two polynomials, none negative: one product of two long numbers gives them all.
function product(one, two) {
  const digits = (value) => value.toString(16).length;
  const width = digits(largest(one)) + digits(largest(two)) + digits(Math.min(one.length, two.length));
  const packed = (numbers) => BigInt(`0x${numbers.map((each) => each.toString(16).padStart(width, "0")).reverse().join("")}`);
  const size = one.length + two.length - 1;
  const text = (packed(one) * packed(two)).toString(16).padStart(size * width, "0");
  return Array.from({ length: size }, (_, n) => BigInt(`0x${text.slice((size - 1 - n) * width, (size - n) * width)}`));
}

// Powers of `base` whose product is its power of that exponent: squares of squares.
function powers(base, exponent, multiplied) {
  const found = [];
  for (let square = base, left = exponent; left > 0; left = Math.floor(left / 2)) {
    if (left % 2 === 1) found.push(square);
    if (left > 1) square = multiplied(square, square);
  }
  return found;
}

// The product of a list, two by two, so that most products are short.
function multiplyAll(list, multiplied) {
  let left = list;
  while (left.length > 1)
    left = left.flatMap((one, i) => (i % 2 === 1 ? [] : i + 1 < left.length ? [multiplied(one, left[i + 1])] : [one]));
  return left[0];
}

// A law of losses, multiples of log(rho) from `start` on, without what is hardly possible.
function windowOf(start, chances, infinite) {
  let [top, moved, low, below] = [chances.length, 0n, 0, 0n];
  while (top > 1 && moved + chances[top - 1] <= LOST) moved += chances[--top];
  while (low < top - 1 && below + chances[low] <= LOST) below += chances[low++];
  const kept = chances.slice(low, top);
  kept[0] += below;
  return { start: start + low, chances: kept, infinite: infinite + moved };
}

function together(one, two) {
  const [mine, theirs] = [sum(one.chances), sum(two.chances)];
  const lost = one.infinite * (theirs + two.infinite) + mine * two.infinite;
  const chances = product(one.chances, two.chances).map((each) => shiftedUp(each, MASS));
  return windowOf(one.start + two.start, chances, shiftedUp(lost, MASS));
}

// {rho, low, high}: powers of rho = (W_0/W_1)^2 from below and from above.
function ratiosOf(side) {
  const least = ONE + (1n << (FINE - 40n));
  const exact = (side[0] ** 2n << FINE) / side[1] ** 2n;
  const rho = exact > least ? exact : least;
  const [low, high] = [[ONE], [ONE]];
  while (low.length <= MOST_POWER && low[low.length - 1] >> FINE < 1n << 92n) {
    low.push((low[low.length - 1] * rho) >> FINE);
    high.push(shiftedUp(high[high.length - 1] * rho, FINE));
  }
  return { rho, low, high };
}

// [weights of the total of so many cells, by how much they are at most too small], up to a factor; `known` remembers them.
function cellsTogether(weights, cells, known) {
  const name = `${weights.length} ${cells}`;
  if (cells === 1) return [weights, 0n];
  if (known.has(name)) return known.get(name);
  const [mine, own] = cellsTogether(weights, Math.floor(cells / 2), known);
  const [theirs, other] = cellsTogether(weights, cells - Math.floor(cells / 2), known);
  const found = product(mine, theirs);
  const doubt = own * sum(theirs) + other * sum(mine) + own * other * BigInt(cells * weights.length);
  const shift = BigInt(Math.max(largest(found).toString(2).length - KEPT, 0));
  const kept = found.map((each) => each >> shift);
  const zeros = kept.findIndex((each) => each > 0n);
  known.set(name, [kept.slice(zeros, kept.length - zeros), shift > 0n ? (doubt >> shift) + 2n : doubt]);
  return known.get(name);
}

// The same of all cells but two, around the mean.
function otherCells(weights, answers, known) {
  const [numbers, doubt] = answers > 2 ? cellsTogether(weights, answers - 2, known) : [[1n], 0n];
  const reach = weights.length; // 2 h + 1
  const padded = [...Array(reach).fill(0n), ...numbers, ...Array(reach).fill(0n)];
  const middle = (padded.length - 1) / 2;
  return [padded.slice(middle - reach, middle + reach + 1), doubt];
}

// By how much neighbouring weights differ from those of a normal law at most, squared; refused where they are far from it.
function bendOf(side, { low, high }) {
  let [most, least] = [ONE, ONE];
  for (let t = 1; t < side.length && 2 * side.length - 1 < low.length; t++) {
    const [square, under] = [side[t - 1] ** 2n << (2n * FINE), side[t] ** 2n];
    most = largest([most, up(square, under * low[2 * t - 1])]);
    least = smaller(least, square / (under * high[2 * t - 1]));
  }
  const bend = largest([most, up(1n << (2n * FINE), largest([least, 1n]))]);
  if (2 * side.length - 1 >= low.length || bend > MOST_BEND) throw new Error("dummies");
  return bend;
}

// Weights of x + y, of one parity and absolute value: sums of the first 0, 1, ... of them, [from below, from above].
function sumsTo(shape, others, doubt, parity) {
  const [lower, upper, middle] = [[0n], [0n], (others.length - 1) / 2];
  shape.forEach((each, v) => {
    const s = 2 * v + parity;
    const twice = s > 0 ? 2n * each : each;
    const rest = others[middle + s] ?? 0n;
    lower.push(lower[v] + twice * rest);
    upper.push(upper[v] + twice * (rest + doubt));
  });
  return [lower, upper];
}

// The law of i - j without local noise: {bend, chances: [[i - j, chance], ...], infinite}, chances from above.
function unhidden(answers, side, ratios, known) {
  const h = side.length - 1;
  const bend = bendOf(side, ratios);
  const [others, doubt] = otherCells([...side.slice(1).reverse(), ...side], answers, known);
  const shapes = [side.map((each) => each * each), side.map((each, u) => each * (side[u + 1] ?? 0n))]; // of even x - y, odd ones
  const sums = shapes.map((shape, parity) => sumsTo(shape.map((each) => each * side[1 - parity]), others, doubt, parity));
  let [total, ends] = [0n, 0n];
  const found = [];
  for (let d = 1 - 2 * h; d <= 2 * h + 1; d++) {
    const apart = Math.abs(d - 1);
    const [half, parity, last] = [Math.floor(apart / 2), apart % 2, Math.floor((2 * h - apart) / 2)];
    const [lower, upper] = sums[parity];
    const shape = shapes[parity][half];
    total += shape * lower[last + 1];
    const inside = d > 0 ? last : last + 1; // else q is 0
    found.push([d, shape * upper[inside]]);
    ends += shape * (upper[last + 1] - upper[inside]);
  }
  const raised = (one, two) => shiftedUp(one * two, FINE);
  const bent = multiplyAll(powers(bend, 4 * h + 2, raised), raised);
  const chances = found.filter(([, mass]) => mass > 0n).map(([d, mass]) => [d, up(mass * bent, total)]);
  return { bend, chances, infinite: up(ends * bent, total) };
}

// How many numbers of an ascending list lie below a value, or are at most it.
function countBelow(numbers, value, orEqual) {
  let [low, high] = [0, numbers.length];
  while (low < high) {
    const middle = (low + high) >> 1;
    if (numbers[middle] < value || (orEqual && numbers[middle] === value)) low = middle + 1;
    else high = middle;
  }
  return low;
}

const part = (gap, rho) => smaller(up(gap * rho, rho - ONE), ONE);

// [n, part that goes to n + 1] for a ratio of about rho^n to rho^(n + 1); null beyond all powers.
function splitAbove(ratio, { rho, low }) {
  const n = countBelow(low, ratio, true) - 1;
  return n + 1 >= low.length ? null : [n, part(ONE - (low[n] << FINE) / ratio, rho)];
}

function splitBelow(inverse, { rho, high }) {
  const n = countBelow(high, inverse, false);
  return n >= high.length ? [1 - n, 0n] : [-n, part(ONE - (inverse << FINE) / high[n], rho)];
}

// The law of losses of one report that is the answer's own with chance keep/2^64.
function lossesOf({ bend, chances, infinite }, ratios, keep) {
  const { low, high } = ratios;
  const hide = WHOLE - keep;
  let [level, lost] = [hide * infinite, keep * infinite];
  const found = new Map([[0, 0n]]);
  const add = (n, mass) => found.set(n, (found.get(n) ?? 0n) + mass);
  for (const [d, mass] of chances) {
    const [above, under] = d >= 0 ? [high[d], low[d]] : [up(1n << (2n * FINE), low[-d]), (1n << (2n * FINE)) / high[-d]];
    const ratio = shiftedUp(bend * above, FINE);
    let [own, split] = [mass, null];
    if (ratio > ONE) {
      const share = smaller(ONE, up(bend << FINE, under));
      own = shiftedUp(mass * (keep * ONE + hide * share), FINE + 64n);
      level += hide * up(mass * (ratio - ONE), ratio);
      split = splitAbove(ONE + shiftedUp(keep * (ratio - ONE), 64n), ratios);
    } else split = splitBelow(ONE + ((keep * ((1n << (2n * FINE)) / ratio - ONE)) >> 64n), ratios);
    if (split === null) lost += own << 64n;
    else {
      const higher = shiftedUp(own * split[1], FINE);
      add(split[0] + 1, higher);
      add(split[0], (own > higher ? own - higher : 0n) + SPLIT);
    }
  }
  add(0, shiftedUp(level, 64n));
  const places = [...found.keys()];
  const start = Math.min(...places);
  const listed = Array.from({ length: Math.max(...places) - start + 1 }, (_, i) => shiftedUp(found.get(start + i) ?? 0n, FINE - MASS));
  return windowOf(start, listed, shiftedUp(lost, 64n + FINE - MASS));
}

// The chance, times 2^MASS and from above, that two reports of all columns tell records apart at e^epsilon = factor/2^FINE,
// for each level: `levelOf(level)` is a function of the factor.
export function normalFloor(task) {
  const side = task.dummies.weights.map(BigInt);
  const ratios = ratiosOf(side);
  const [kinds, known] = [new Map(), new Map()]; // columns of one kind and centre are counted once
  for (const { question, family, centre } of task.columns) {
    const name = `${family.records} ${centre}`;
    if (!kinds.has(name)) kinds.set(name, { law: unhidden(family.records, side.slice(0, centre + 1), ratios, known), columns: [] });
    kinds.get(name).columns.push(question);
  }
  return (level) => {
    const laws = [];
    for (const { law, columns } of kinds.values()) {
      const times = new Map();
      for (const question of columns) times.set(level.draw[question], (times.get(level.draw[question]) ?? 0) + 1);
      for (const [keep, count] of times) {
        laws.push(...powers(lossesOf(law, ratios, keep), count, together));
      }
    }
    const all = multiplyAll(laws, together);
    return (factor) => {
      let found = all.infinite;
      all.chances.forEach((chance, i) => {
        const n = all.start + i;
        if (n >= ratios.high.length) found += chance;
        else if (n >= 0 && ratios.high[n] > factor) found += up(chance * (ratios.high[n] - factor), ratios.high[n]);
      });
      return found;
    };
  };
}

export const NORMAL = { fine: FINE, mass: MASS };
