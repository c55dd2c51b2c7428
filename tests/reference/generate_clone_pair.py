"""Independent high-precision reference values (mpmath, direct sums) for the accountant.

Writes clone_pair.json. Every number is a direct evaluation of its definition, in 40 digits,
with none of the shortcuts (blocking, FFT, windows) a fast implementation would use.
"""

import itertools
import json
import random
import sys
from pathlib import Path

from mpmath import binomial, exp, log, mp, mpf, power

mp.dps = 40


def poisson_binomial(ps):
    pmf = [mpf(1)]
    for p in ps:
        nxt = [mpf(0)] * (len(pmf) + 1)
        for k, v in enumerate(pmf):
            nxt[k] += v * (1 - p)
            nxt[k + 1] += v * p
        pmf = nxt
    return pmf


def binom_pmf(n, p):
    return [binomial(n, k) * p**k * (1 - p) ** (n - k) for k in range(n + 1)]


def pair_cells(eps_v, alpha, pc):
    """yield (P, Q) masses of the clone pair over (a, m); others' clone count has pmf pc."""
    e = exp(eps_v)
    u = 1 - (e + 1) * alpha
    top = len(pc) - 1
    for m in range(0, top + 2):
        pm = pc[m] if m <= top else mpf(0)
        pm1 = pc[m - 1] if m >= 1 else mpf(0)
        if m == 0:
            yield u * pm, u * pm
            continue
        h = power(mpf(2), -m)
        row = mpf(1) * h
        for a in range(m + 1):
            b = m - a
            w0 = u * pm + pm1 * (2 * alpha / m) * (e * a + b)
            w1 = u * pm + pm1 * (2 * alpha / m) * (a + e * b)
            yield row * w0, row * w1
            row = row * (m - a) / (a + 1)


def delta_of(cells, eps):
    t = exp(mpf(eps))
    s = mpf(0)
    for P, Q in cells:
        d = P - t * Q
        if d > 0:
            s += d
    return s


def renyi(cells, lam):
    s = mpf(0)
    for P, Q in cells:
        if P > 0 and Q > 0:
            s += P**lam * Q ** (1 - lam)
    return log(s) / (lam - 1)


def eps_at(cells, delta, hi):
    lo, hi = mpf(0), mpf(hi)
    if delta_of(cells, 0) <= delta:
        return mpf(0)
    for _ in range(60):
        mid = (lo + hi) / 2
        if delta_of(cells, mid) > delta:
            lo = mid
        else:
            hi = mid
    return hi


def f(x):
    return float(mp.nstr(x, 17))


def uniform_case(n, e0, epss, lams, deltas):
    e = exp(mpf(e0))
    a = 1 / (1 + e)
    cells = list(pair_cells(mpf(e0), a, binom_pmf(n - 1, 2 * a)))
    return {
        "kind": "uniform clone pair",
        "n": n,
        "epsilon0": e0,
        "profile": [[x, f(delta_of(cells, x))] for x in epss],
        "epsilon": [[d, f(eps_at(cells, mpf(d), e0))] for d in deltas],
        "renyi": [[order, f(renyi(cells, mpf(order)))] for order in lams],
    }


def personal_case(budgets, victim, epss, lams, deltas):
    r = [1 / (1 + exp(mpf(x))) for x in budgets]
    pc = poisson_binomial([2 * x for i, x in enumerate(r) if i != victim])
    cells = list(pair_cells(mpf(budgets[victim]), r[victim], pc))
    return {
        "kind": "personalized clone pair (binary randomized response)",
        "epsilons": budgets,
        "victim": victim,
        "profile": [[x, f(delta_of(cells, x))] for x in epss],
        "epsilon": [[d, f(eps_at(cells, mpf(d), budgets[victim]))] for d in deltas],
        "renyi": [[order, f(renyi(cells, mpf(order)))] for order in lams],
    }


def krr_case(n, k, e0, epss, lams, deltas):
    e = exp(mpf(e0))
    a = 1 / (e + k - 1)
    cells = list(pair_cells(mpf(e0), a, binom_pmf(n - 1, 2 * a)))
    return {
        "kind": "witness: counts of two symbols of k-ary randomized response, "
        "others on third symbols (exact for k = 3)",
        "n": n,
        "k": k,
        "epsilon0": e0,
        "alpha": f(a),
        "profile": [[x, f(delta_of(cells, x))] for x in epss],
        "epsilon": [[d, f(eps_at(cells, mpf(d), e0))] for d in deltas],
        "renyi": [[order, f(renyi(cells, mpf(order)))] for order in lams],
    }


def binary_rr_case(budgets, victim, others_ones, epss, deltas):
    s = [1 / (1 + exp(mpf(x))) for x in budgets]
    others = [s[i] for i in range(len(budgets)) if i != victim]
    base = poisson_binomial([(1 - p) if j < others_ones else p for j, p in enumerate(others)])
    sv = s[victim]
    z = [mpf(0)]
    P = [x * (1 - sv) + y * sv for x, y in zip(base + z, z + base, strict=True)]
    Q = [x * sv + y * (1 - sv) for x, y in zip(base + z, z + base, strict=True)]
    cells = list(zip(P, Q, strict=True))
    rev = list(zip(Q, P, strict=True))
    return {
        "kind": "binary randomized response, exact shuffled count",
        "epsilons": budgets,
        "victim": victim,
        "others_ones": others_ones,
        "profile_pq": [[x, f(delta_of(cells, x))] for x in epss],
        "profile_qp": [[x, f(delta_of(rev, x))] for x in epss],
    }


def ordered_case(budgets, epss, lams):
    """users permuted, step t uses budgets[t], the analyst sees the outputs in order: enumerate {0,1,2}^n."""
    n = len(budgets)
    E = [exp(mpf(x)) for x in budgets]
    s = [1 / (1 + e) for e in E]
    cells = []
    for y in itertools.product((0, 1, 2), repeat=n):
        prior = mpf(1)
        w0 = w1 = mpf(0)
        for t, yt in enumerate(y):
            prior *= s[t] if yt < 2 else 1 - 2 * s[t]
        for t, yt in enumerate(y):
            if yt == 2:
                continue
            w0 += E[t] if yt == 0 else 1
            w1 += 1 if yt == 0 else E[t]
        cells.append((prior * w0 / n, prior * w1 / n))
    tot = sum(c[0] for c in cells)
    assert abs(tot - 1) < mpf(10) ** -30, tot
    return {
        "kind": "ordered outputs, personalized by step",
        "epsilons": budgets,
        "profile": [[x, f(delta_of(cells, x))] for x in epss],
        "renyi": [[order, f(renyi(cells, mpf(order)))] for order in lams],
    }


def main():
    rnd = random.Random(20261120)
    out = []
    grid = [(2, 0.5), (10, 0.1), (50, 1.0), (200, 2.0), (400, 4.0), (800, 0.5)]
    kgrid = [(50, 3, 1.0), (200, 10, 2.0)]
    orders = [[0.5, 0.5, 0.5], [0.01, 0.01, 2.0, 4.0], [0.1, 0.3, 0.7, 1.5, 3.0, 6.0]]
    pops = [[0.01, 0.5, 2.0], [round(rnd.uniform(0.01, 1), 4) for _ in range(60)], [0.5] * 60 + [0.01] * 60]
    for n, e0 in grid:
        out.append(
            uniform_case(
                n,
                e0,
                [round(e0 * q, 6) for q in (0, 0.05, 0.2, 0.5, 0.9)],
                [1.5, 2, 8, 32],
                [1e-3, 1e-6, 1e-9],
            )
        )
    for b in pops:
        v = max(range(len(b)), key=lambda i: b[i])
        out.append(
            personal_case(
                b,
                v,
                [round(b[v] * q, 6) for q in (0, 0.05, 0.2, 0.5, 0.9)],
                [1.5, 2, 8, 32],
                [1e-3, 1e-6, 1e-9],
            )
        )
        out.append(personal_case(b, 0, [round(b[0] * q, 6) for q in (0, 0.2, 0.5)], [2, 8], [1e-3, 1e-6]))
        out.append(binary_rr_case(b, v, 0, [round(b[v] * q, 6) for q in (0, 0.05, 0.2, 0.5, 0.9)], []))
        out.append(binary_rr_case(b, v, len(b) // 2, [round(b[v] * q, 6) for q in (0, 0.05, 0.2, 0.5, 0.9)], []))
    for n, k, e0 in kgrid:
        out.append(
            krr_case(
                n,
                k,
                e0,
                [round(e0 * q, 6) for q in (0, 0.05, 0.2, 0.5, 0.9)],
                [1.5, 2, 8, 32],
                [1e-3, 1e-6, 1e-9],
            )
        )
    for b in orders:
        out.append(ordered_case(b, [round(max(b) * q, 6) for q in (0, 0.05, 0.2, 0.5, 0.9)], [1.5, 2, 8]))
    return out


if __name__ == "__main__":
    path = Path(sys.argv[1])
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(json.dumps(main(), indent=1) + "\n")
    print(path, "written")
