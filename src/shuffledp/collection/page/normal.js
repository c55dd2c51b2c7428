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

const bitsOf = (value) => value.toString(2).length;

// Numbers of so many binary digits each, from `start` to before `end`, side by side in one long number.
function packed(numbers, bits, start = 0, end = numbers.length) {
  if (end - start === 1) return numbers[start];
  const middle = (start + end) >> 1;
  return packed(numbers, bits, start, middle) | (packed(numbers, bits, middle, end) << BigInt((middle - start) * bits));
}

// The first so many of them again, added to a list.
function unpack(long, bits, count, found) {
  if (count === 1) found.push(long);
  else {
    const half = count >> 1;
    unpack(BigInt.asUintN(half * bits, long), bits, half, found);
    unpack(long >> BigInt(half * bits), bits, count - half, found);
  }
  return found;
}

// Coefficients of the product of two polynomials, none negative, from the one of x^first on: one product of two long
// numbers gives them all.
function product(one, two, first = 0) {
  const bits = bitsOf(largest(one)) + bitsOf(largest(two)) + bitsOf(Math.min(one.length, two.length));
  const long = packed(one, bits) * packed(two, bits);
  return unpack(long >> BigInt(first * bits), bits, one.length + two.length - 1 - first, []);
}

// Powers of `base` whose product is its power of that exponent: squares of squares.
export function powers(base, exponent, multiplied) {
  const found = [];
  for (let square = base, left = exponent; left > 0; left = Math.floor(left / 2)) {
    if (left % 2 === 1) found.push(square);
    if (left > 1) square = multiplied(square, square);
  }
  return found;
}

// The product of a list, two by two, so that most products are short.
export function multiplyAll(list, multiplied) {
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

// {rho, low, high, reach}: powers of rho = (W_0/W_1)^2 from below and from above, as many as were asked for. `reach(done)`
// computes more of them until there are enough, or all.
function ratiosOf(side) {
  const least = ONE + (1n << (FINE - 40n));
  const exact = (side[0] ** 2n << FINE) / side[1] ** 2n;
  const rho = exact > least ? exact : least;
  const [low, high] = [[ONE], [ONE]];
  const reach = (done) => {
    while (!done() && low.length <= MOST_POWER && low[low.length - 1] >> FINE < 1n << 92n) {
      low.push((low[low.length - 1] * rho) >> FINE);
      high.push(shiftedUp(high[high.length - 1] * rho, FINE));
    }
  };
  return { rho, low, high, reach };
}

// [weights of the total of so many cells, from the middle one to the last that is not 0, by how much they are at most too
// small], up to a factor; `known` remembers them. They do not increase away from the middle, and are symmetric around it.
function cellsTogether(side, cells, known) {
  const name = `${side.length} ${cells}`;
  if (cells === 1) return [side, 0n];
  if (known.has(name)) return known.get(name);
  const [mine, own] = cellsTogether(side, Math.floor(cells / 2), known);
  const [theirs, other] = cellsTogether(side, cells - Math.floor(cells / 2), known);
  const found = product(bothSides(mine), bothSides(theirs), mine.length + theirs.length - 2);
  const doubt = own * sumOfBoth(theirs) + other * sumOfBoth(mine) + own * other * BigInt(cells * (2 * side.length - 1));
  const shift = BigInt(Math.max(bitsOf(found[0]) - KEPT, 0));
  const kept = found.map((each) => each >> shift);
  while (kept[kept.length - 1] === 0n) kept.pop();
  known.set(name, [kept, shift > 0n ? (doubt >> shift) + 2n : doubt]);
  return known.get(name);
}

const bothSides = (half) => [...half.slice(1).reverse(), ...half];
const sumOfBoth = (half) => 2n * sum(half) - half[0];

// By how much neighbouring weights differ from those of a normal law at most, squared; refused where they are far from it.
function bendOf(side, { low, high, reach }) {
  const last = 2 * side.length - 1;
  reach(() => low.length > last);
  let [most, least] = [ONE, ONE];
  for (let t = 1; t < side.length && last < low.length; t++) {
    const [square, under] = [side[t - 1] ** 2n << (2n * FINE), side[t] ** 2n];
    most = largest([most, up(square, under * low[2 * t - 1])]);
    least = smaller(least, square / (under * high[2 * t - 1]));
  }
  const bend = largest([most, up(1n << (2n * FINE), largest([least, 1n]))]);
  if (last >= low.length || bend > MOST_BEND) throw new Error("dummies");
  return bend;
}

// What questions with the same weights have in common, however many answers there are: {side, bent: bend^(4h + 2), weights
// of even and of odd x - y; ratios: for each i - j from 1 - 2h on {above: the largest p/q, share: the largest q/p} where p/q
// may exceed 1, else {below: the least q/p}}.
function shapeOf(side, ratios) {
  const bend = bendOf(side, ratios);
  const { low, high } = ratios;
  const square = 1n << (2n * FINE);
  const raised = (one, two) => shiftedUp(one * two, FINE);
  const found = [];
  for (let d = 3 - 2 * side.length; d < 2 * side.length; d++) {
    const [power, under] = d >= 0 ? [high[d], low[d]] : [up(square, low[-d]), square / high[-d]];
    const above = raised(bend, power);
    found.push(above > ONE ? { above, share: smaller(ONE, up(bend << FINE, under)) } : { below: square / above });
  }
  ratios.reach(() => low[low.length - 1] > found[found.length - 1].above);
  const bent = multiplyAll(powers(bend, 4 * side.length - 2, raised), raised);
  const weights = [side.map((each) => each * each), side.map((each, u) => each * (side[u + 1] ?? 0n))];
  return { side, bent, weights, ratios: found };
}

// Weights of x + y, of one parity and absolute value: sums of the first 0, 1, ... of them, [from below, from above].
function sumsTo(shape, others, doubt, parity) {
  const [lower, upper] = [[0n], [0n]];
  shape.forEach((each, v) => {
    const s = 2 * v + parity;
    const twice = s > 0 ? 2n * each : each;
    const rest = others[s] ?? 0n;
    lower.push(lower[v] + twice * rest);
    upper.push(upper[v] + twice * (rest + doubt));
  });
  return [lower, upper];
}

// The law of i - j without local noise: {chances of 1 - 2h, 2 - 2h, ..., infinite}, from above.
function unhidden(answers, { side, bent, weights }, known) {
  const h = side.length - 1;
  const [others, doubt] = answers > 2 ? cellsTogether(side, answers - 2, known) : [[1n], 0n]; // all cells but two
  const sums = weights.map((shape, parity) => sumsTo(shape.map((each) => each * side[1 - parity]), others, doubt, parity));
  const found = Array(4 * h + 1).fill(0n);
  let [total, ends] = [0n, 0n];
  for (let apart = 0; apart <= 2 * h; apart++) { // |x - y|, where i - j = x - y + 1
    const [half, parity] = [apart >> 1, apart & 1];
    const last = h - half - parity; // |x + y| = 2 last + parity at most
    const [lower, upper] = sums[parity];
    const all = weights[parity][half] * upper[last + 1];
    const inside = weights[parity][half] * upper[last]; // x = h or y = -h is left out: then q is 0
    total += weights[parity][half] * lower[last + 1] * (apart > 0 ? 2n : 1n);
    found[2 * h - apart] = all;
    found[2 * h + apart] = inside;
    ends += all - inside;
  }
  return { chances: found.map((mass) => up(mass * bent, total)), infinite: up(ends * bent, total) };
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
function lossesOf({ shape, hidden: { chances, infinite } }, ratios, keep) {
  const hide = WHOLE - keep;
  let [level, lost] = [infinite, keep * infinite]; // level: of the loss 0, to be hidden
  const found = new Map([[0, 0n]]);
  const add = (n, mass) => found.set(n, (found.get(n) ?? 0n) + mass);
  chances.forEach((mass, place) => {
    if (mass === 0n) return;
    const { above, share, below } = shape.ratios[place];
    let [own, split] = [mass, null];
    if (below === undefined) {
      own = shiftedUp(mass * ((keep << FINE) + hide * share), FINE + 64n);
      level += up(mass * (above - ONE), above);
      split = splitAbove(ONE + shiftedUp(keep * (above - ONE), 64n), ratios);
    } else split = splitBelow(ONE + ((keep * (below - ONE)) >> 64n), ratios);
    if (split === null) lost += own << 64n;
    else {
      const higher = shiftedUp(own * split[1], FINE);
      add(split[0] + 1, higher);
      add(split[0], (own > higher ? own - higher : 0n) + SPLIT);
    }
  });
  add(0, shiftedUp(hide * level, 64n));
  const places = [...found.keys()];
  const start = Math.min(...places);
  const listed = Array.from({ length: Math.max(...places) - start + 1 }, (_, i) => shiftedUp(found.get(start + i) ?? 0n, FINE - MASS));
  return windowOf(start, listed, shiftedUp(lost, 64n + FINE - MASS));
}

// What the columns of a task have in common: {ratios, kinds: [{answers, shape, columns}]}; those of one number of answers and
// centre are one kind, which lists their questions.
export function kindsOf(task) {
  const side = task.dummies.weights.map(BigInt);
  const ratios = ratiosOf(side);
  const [kinds, shapes] = [new Map(), new Map()];
  for (const { question, family, centre } of task.columns) {
    if (!shapes.has(centre)) shapes.set(centre, shapeOf(side.slice(0, centre + 1), ratios));
    const [name, shape] = [`${family.records} ${centre}`, shapes.get(centre)];
    if (!kinds.has(name)) kinds.set(name, { answers: family.records, shape, columns: [] });
    kinds.get(name).columns.push(question);
  }
  return { ratios, kinds: [...kinds.values()] };
}

// K of a kind's columns at a level, and how many columns have it.
export function timesOf({ columns }, level) {
  const times = new Map();
  for (const question of columns) times.set(level.draw[question], (times.get(level.draw[question]) ?? 0) + 1);
  return [...times];
}

// The chance, times 2^MASS and from above, that two reports of all columns tell records apart at e^epsilon = factor/2^FINE,
// for each level: `levelOf(level)` is a function of the factor.
export function normalFloor({ ratios, kinds }) {
  const known = new Map();
  const laws = kinds.map((kind) => ({ ...kind, hidden: unhidden(kind.answers, kind.shape, known) }));
  return (level) => {
    const all = multiplyAll(
      laws.flatMap((law) => timesOf(law, level).flatMap(([keep, count]) => powers(lossesOf(law, ratios, keep), count, together))),
      together,
    );
    ratios.reach(() => ratios.low.length > all.start + all.chances.length);
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
