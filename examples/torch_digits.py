"""Train a small convolutional network privately with PyTorch (extra shuffledp[torch]).

    python examples/torch_digits.py [FOLDER WITH MNIST'S IDX FILES]

Clients hold digits, clip every digit's gradient, add noise to their average, and send it. The server sees every
message; nothing is claimed from shuffling. On a machine with a CUDA device, gradients and clipping run there.
"""

from __future__ import annotations

import sys

import torch
from torch import nn

from shuffledp.learning import assign_clients, print_progress, read_digits, sample_folder
from shuffledp.learning.torch import ShuffledSGD


def images(rows: object) -> torch.Tensor:
    """Digits as the network takes them."""
    return torch.tensor(rows).reshape(-1, 1, 28, 28).float() / 255.0


def main(folder: str | None = None) -> None:
    """Train, and say how good and how private the model is."""
    train, test = (read_digits(folder or sample_folder(), part) for part in ("train", "test"))
    device = "cuda" if torch.cuda.is_available() else "cpu"
    module = nn.Sequential(
        nn.Conv2d(1, 8, 5, stride=3), nn.ReLU(), nn.AvgPool2d(2), nn.Flatten(), nn.Linear(128, 10)
    ).to(device)
    clients = 100 if folder else 20
    trainer = ShuffledSGD(
        module,
        unit="example",
        seen="users",
        epsilon0=0.5 if folder else 4.0,  # one round's budget of every client
        delta=1e-5,
        clip=0.2,
        rounds=20,
        step=2.0,
        progress=print_progress,
    )
    trainer.fit(images(train.images), train.labels, groups=assign_clients(train.labels.size, clients))
    with torch.no_grad():
        found = module(images(test.images).to(device)).argmax(1).cpu().numpy()
    print(f"accuracy on {test.labels.size} other digits: {100 * (found == test.labels).mean():.1f} %")
    print(trainer.guarantee_.describe())


if __name__ == "__main__":
    main(*sys.argv[1:2])
