"""Train a digit classifier whose guarantee is true, on the bundled sample or on all of MNIST.

    python examples/learning_digits.py [FOLDER WITH MNIST'S IDX FILES]

Clients hold digits, clip every digit's gradient, add noise to their average, and send it. The server sees every
message; nothing is claimed from shuffling. The features are made from no data.
"""

from __future__ import annotations

import sys

from shuffledp.learning import (
    OrientedGradients,
    ShuffledSGDClassifier,
    assign_clients,
    print_progress,
    read_digits,
    sample_folder,
)


def main(folder: str | None = None) -> None:
    """Train, and say how good and how private the model is."""
    train, test = (read_digits(folder or sample_folder(), part) for part in ("train", "test"))
    clients = 100 if folder else 20
    model = ShuffledSGDClassifier(
        unit="example",
        seen="users",
        epsilon0=0.5 if folder else 4.0,  # one round's budget of every client
        delta=1e-5,
        clip=0.2,
        rounds=50 if folder else 20,
        hidden=(),
        step=2.0,
        classes=10,
        features=OrientedGradients(28),
        progress=print_progress,
    )
    model.fit(train.images, train.labels, groups=assign_clients(train.labels.size, clients))
    print(f"accuracy on {test.labels.size} other digits: {100 * model.score(test.images, test.labels):.1f} %")
    print(model.guarantee_.describe())


if __name__ == "__main__":
    main(*sys.argv[1:2])
