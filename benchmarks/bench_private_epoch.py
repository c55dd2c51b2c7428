"""One honest epoch of private training against its peers, in the same run: NumPy, PyTorch, Opacus, torch.func.

    .venv-extras/bin/python benchmarks/bench_private_epoch.py [--hidden 128] [--examples 60000] [--repeats 5]

Random features of the size of 60 components of MNIST, blocks of 600, per-example clipping, noise on every block. Ours
draws exact secure noise; Opacus and torch.func draw a generator's normals. Needs torch; Opacus where it is installed.
Ways take turns. Each prints the median over the repeats of its wall seconds, and of its CPU seconds in its own code
(user) and in the kernel (system), and the median, least and largest of its ratios to ours in the same repeat, of which
five epochs are averaged, for they are short. The user ratio is the one that compares machines:
with 1,000 hidden units the gradients of one block's single examples are 170 MB, taken from the kernel and given back at
every block, and what their page faults cost (system) is the machine's, not the library's. Set OMP_NUM_THREADS=1.
"""

from __future__ import annotations

import argparse
import resource
import time
import warnings
from collections.abc import Callable

import numpy as np

from shuffledp.learning import ShuffledSGDClassifier, assign_clients
from shuffledp.numerics.randomness import secure_random, simulation_random

BLOCK, INPUTS, CLASSES, CLIP = 600, 60, 10, 0.2
OURS = 5
"""Epochs of ours in one turn."""
Epoch = Callable[[], None]
KINDS = ("wall", "user", "user and system")


def ours(hidden: int, features: np.ndarray, labels: np.ndarray) -> Epoch:
    groups = assign_clients(len(labels), len(labels) // BLOCK, simulation_random(0))

    def run() -> None:
        for _ in range(OURS):
            ShuffledSGDClassifier(
                unit="example", seen="users", epsilon0=0.5, delta=1e-5, clip=CLIP, rounds=1, hidden=(hidden,),
                classes=CLASSES, random=secure_random(),
            ).fit(features, labels, groups=groups)  # fmt: skip

    return run


def network(hidden: int):
    from torch import nn

    return nn.Sequential(nn.Linear(INPUTS, hidden), nn.ReLU(), nn.Linear(hidden, CLASSES))


def opacus(hidden: int, features: np.ndarray, labels: np.ndarray) -> Epoch:
    import torch
    from opacus import PrivacyEngine
    from torch.utils.data import DataLoader, TensorDataset

    module = network(hidden)
    optimizer = torch.optim.SGD(module.parameters(), lr=0.1)
    data = DataLoader(
        TensorDataset(torch.tensor(features, dtype=torch.float32), torch.tensor(labels)), batch_size=BLOCK
    )
    module, optimizer, data = PrivacyEngine().make_private(
        module=module, optimizer=optimizer, data_loader=data, noise_multiplier=1.0, max_grad_norm=CLIP
    )

    def run() -> None:
        for rows, known in data:
            optimizer.zero_grad()
            torch.nn.functional.cross_entropy(module(rows), known).backward()
            optimizer.step()

    return run


def vmapped(hidden: int, features: np.ndarray, labels: np.ndarray) -> Epoch:
    """Per-example gradients by torch.func, over a tenth of the blocks, for they take long."""
    import torch
    from torch.func import functional_call, grad, vmap

    module = network(hidden)
    rows, known = torch.tensor(features, dtype=torch.float32), torch.tensor(labels)
    weights = {name: value.detach() for name, value in module.named_parameters()}

    def loss(weights: dict, row, label):  # type: ignore[no-untyped-def]
        scores = functional_call(module, weights, (row[None],))
        return torch.nn.functional.cross_entropy(scores, label[None])

    each = vmap(grad(loss), in_dims=(None, 0, 0))

    def run() -> None:
        for start in range(0, len(labels) // 10, BLOCK):
            found = each(weights, rows[start : start + BLOCK], known[start : start + BLOCK])
            norms = sum((value.flatten(1) ** 2).sum(1) for value in found.values()).sqrt()
            factors = (CLIP / norms).clamp(max=1.0)
            for name, value in found.items():
                summed = torch.einsum("n,n...->...", factors, value) + torch.randn(weights[name].shape)
                weights[name] = weights[name] - 0.1 * summed / BLOCK

    return run


def clocks() -> np.ndarray:
    """Seconds on the wall, of this process's own code, and of that and the kernel's together."""
    used = resource.getrusage(resource.RUSAGE_SELF)
    return np.array([time.perf_counter(), used.ru_utime, used.ru_utime + used.ru_stime])


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--hidden", type=int, default=128)
    parser.add_argument("--examples", type=int, default=60_000)
    parser.add_argument("--repeats", type=int, default=5)
    asked = parser.parse_args()
    warnings.simplefilter("ignore")
    draw = np.random.default_rng(0)
    features = draw.standard_normal((asked.examples, INPUTS))
    labels = draw.integers(CLASSES, size=asked.examples)
    ways: dict[str, tuple[Epoch, float]] = {"shuffledp, NumPy": (ours(asked.hidden, features, labels), 1.0 / OURS)}
    for name, make, share in (("Opacus make_private", opacus, 1.0), ("torch vmap(grad)", vmapped, 10.0)):
        try:
            ways[name] = make(asked.hidden, features, labels), share
        except ImportError as missing:
            print(f"{name}: left out, {missing}")
    taken: dict[str, list[np.ndarray]] = {name: [] for name in ways}
    for _ in range(asked.repeats):
        for name, (epoch, share) in ways.items():
            before = clocks()
            epoch()
            taken[name].append(share * (clocks() - before))
    mine = np.array(taken["shuffledp, NumPy"])
    for name, found in taken.items():
        seconds, ratio = np.median(found, axis=0), np.array(found) / mine
        shown = (
            f"{kind} {s:.3f} s ({np.median(each):.1f} x, {each.min():.1f} to {each.max():.1f})"
            for kind, s, each in zip(KINDS, seconds, ratio.T, strict=True)
        )
        print(f"{name:20s} {asked.hidden:5d} hidden  {'  '.join(shown)}")


if __name__ == "__main__":
    main()
