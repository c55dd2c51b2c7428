"""The torch trainer: the same clipped sums as the NumPy core, the same runs, and refusals."""

from __future__ import annotations

from itertools import pairwise

import numpy as np
import pytest

torch = pytest.importorskip("torch", reason="needs the extra shuffledp[torch]")

from torch import nn  # noqa: E402

from shuffledp.errors import InvalidInput  # noqa: E402
from shuffledp.learning import ShuffledSGDClassifier  # noqa: E402
from shuffledp.learning.messages import Clipping  # noqa: E402
from shuffledp.learning.network import Network  # noqa: E402
from shuffledp.learning.torch import ShuffledSGD  # noqa: E402
from shuffledp.learning.torch.gradients import (  # noqa: E402
    LOSSES,
    FunctionalGradients,
    LayerGradients,
    Model,
    treats_examples_alone,
)
from shuffledp.numerics.randomness import simulation_random  # noqa: E402

CROSS = LOSSES["cross-entropy"]


def dense(widths: tuple[int, ...], kind: torch.dtype = torch.float64) -> nn.Sequential:
    parts: list[nn.Module] = []
    for a, b in pairwise(widths):
        parts += [nn.Linear(a, b), nn.ReLU()]
    return nn.Sequential(*parts[:-1]).to(kind)


class Softmax(nn.Module):
    """One dense layer whose weights lie in memory as the NumPy network's do."""

    def __init__(self, weights: np.ndarray, inputs: int, classes: int) -> None:
        super().__init__()
        self.matrix = nn.Parameter(torch.tensor(weights[: inputs * classes].reshape(inputs, classes)))
        self.bias = nn.Parameter(torch.tensor(weights[inputs * classes :]))

    def forward(self, rows):
        return rows @ self.matrix + self.bias


def data(n: int = 24, inputs: int = 4, classes: int = 3, seed: int = 0) -> tuple[np.ndarray, np.ndarray]:
    draw = np.random.default_rng(seed)
    return draw.standard_normal((n, inputs)), draw.integers(classes, size=n)


def core_layout(module: nn.Sequential, flat: np.ndarray) -> np.ndarray:
    """A torch flat vector in the NumPy network's order: matrices (in, out)."""
    parts, at = [], 0
    for parameter in module.parameters():
        part = flat[at : at + parameter.numel()].reshape(parameter.shape)
        parts.append(part.T.ravel())
        at += parameter.numel()
    return np.concatenate(parts)


@pytest.mark.parametrize("widths", [(4, 3), (4, 6, 3), (4, 5, 6, 3)])
@pytest.mark.parametrize("order", [1, 2])
@pytest.mark.parametrize("way", [LayerGradients, FunctionalGradients])
def test_clipped_sums_are_those_of_the_numpy_core(widths, order, way):
    torch.manual_seed(1)
    module, (X, y) = dense(widths), data()
    model = Model(module, CROSS)
    found = way(model).clipped_sum(torch.tensor(X), torch.tensor(y), 0.7, order).numpy()
    network = Network(widths)
    clipping = Clipping("example", "examples", 0.7, order)
    wanted = clipping.message(network, core_layout(module, model.weights), X, y) * y.size
    np.testing.assert_allclose(core_layout(module, found), wanted, rtol=0, atol=1e-13)
    bound = 0.7 * y.size * (1 + 1e-12)
    assert np.linalg.norm(found, ord=order) <= bound


MODULES = {
    "image": lambda: (
        nn.Sequential(
            nn.Conv2d(1, 4, 3, padding=1, stride=2),
            nn.GroupNorm(2, 4),
            nn.Tanh(),
            nn.Flatten(),
            nn.LayerNorm(36),
            nn.Linear(36, 3, bias=False),
        ),
        torch.randn(8, 1, 6, 6).double(),
    ),
    "text": lambda: (
        nn.Sequential(
            nn.Embedding(7, 5, padding_idx=0),
            nn.Linear(5, 4),
            nn.LayerNorm(4),
            nn.ReLU(),
            nn.Flatten(),
            nn.Linear(12, 3),
        ),
        torch.randint(7, (8, 3)),
    ),
    "dense": lambda: (dense((4, 5, 3)), torch.randn(8, 4).double()),
}


@pytest.mark.parametrize("name", MODULES)
def test_rules_of_layers_give_the_gradients_of_torch_func(name):
    torch.manual_seed(2)
    module, rows = MODULES[name]()
    targets, model = torch.randint(3, (8,)), Model(module.double(), CROSS)
    rules, functional = LayerGradients(model), FunctionalGradients(model)
    assert treats_examples_alone(module, "cross-entropy")
    wanted = functional.each(rows, targets)
    torch.testing.assert_close(rules.each(rows, targets), wanted, rtol=0, atol=1e-12)
    torch.testing.assert_close(wanted.sum(0), model.plain_sum(rows, targets), rtol=0, atol=1e-12)
    for order in (1, 2):
        bound = float(torch.linalg.vector_norm(wanted, ord=order, dim=1).median())
        both = [way.clipped_sum(rows, targets, bound, order) for way in (rules, functional)]
        torch.testing.assert_close(*both, rtol=0, atol=1e-12)


def tied() -> nn.Module:
    layer = nn.Linear(4, 4)
    return nn.Sequential(layer, nn.ReLU(), layer)


@pytest.mark.parametrize(
    "module",
    [
        nn.Sequential(nn.Linear(4, 4), nn.ReLU(inplace=True), nn.Linear(4, 3)),
        nn.Sequential(nn.Linear(4, 4), nn.BatchNorm1d(4), nn.Linear(4, 3)),
        nn.Sequential(nn.Conv2d(2, 2, 1, groups=2)),
        nn.Sequential(nn.Flatten(0), nn.Linear(4, 3)),
        Softmax(np.zeros(15), 4, 3),
        tied(),
    ],
)
def test_what_is_not_known_to_keep_examples_apart_goes_one_by_one(module):
    assert not treats_examples_alone(module, "cross-entropy")


@pytest.mark.parametrize("decay", ["none", "linear"])
def test_sgd_of_torch_is_the_servers_own_step(decay):
    X, y = data(24)
    one, other = dense((4, 5, 3)), dense((4, 5, 3))
    other.load_state_dict(one.state_dict())
    common = {"seen": "sum", "decay": decay, "rounds": 4}
    optimizer = torch.optim.SGD(other.parameters(), lr=0.3)
    ShuffledSGD(one, step=0.3, **settings(random=simulation_random(5), **common)).fit(X, y)
    fitted = ShuffledSGD(other, optimizer=optimizer, **settings(random=simulation_random(5), **common)).fit(X, y)
    torch.testing.assert_close(Model(other, CROSS).weights, Model(one, CROSS).weights, rtol=0, atol=1e-12)
    assert optimizer.param_groups[0]["lr"] == 0.3
    assert fitted.guarantee_.rounds == 4


def test_adam_moves_every_number_by_its_rate():
    """Adam's first step is the learning rate along each number's sign, whatever the noise."""
    X, y = data(24)
    module = dense((4, 3))
    before = Model(module, CROSS).weights
    adam = torch.optim.Adam(module.parameters(), lr=0.01)
    ShuffledSGD(module, optimizer=adam, **settings(rounds=1, decay="none")).fit(X, y)
    np.testing.assert_allclose(np.abs(Model(module, CROSS).weights - before), 0.01, rtol=1e-4)


def test_optimizers_that_do_not_fit_are_refused(tmp_path):
    X, y = data(24)
    module = dense((4, 5, 3))
    some = torch.optim.SGD(list(module.parameters())[:2], lr=0.1)
    with pytest.raises(InvalidInput, match="must hold just the parameters"):
        ShuffledSGD(module, optimizer=some, **settings()).fit(X, y)
    whole = torch.optim.SGD(module.parameters(), lr=0.1)
    with pytest.raises(InvalidInput, match="does not keep an optimizer's state"):
        ShuffledSGD(module, optimizer=whole, **settings(checkpoint=tmp_path / "x.npz")).fit(X, y)


def test_a_dataloader_is_its_dataset():
    X, y = data(24)
    rows, targets = torch.tensor(X), torch.tensor(y)
    loader = torch.utils.data.DataLoader(torch.utils.data.TensorDataset(rows, targets), batch_size=7, shuffle=True)
    one, other = dense((4, 3)), dense((4, 3))
    other.load_state_dict(one.state_dict())
    ShuffledSGD(one, **settings(random=simulation_random(5))).fit(X, y)
    ShuffledSGD(other, **settings(random=simulation_random(5))).fit(loader)
    assert np.array_equal(Model(one, CROSS).weights, Model(other, CROSS).weights)
    with pytest.raises(InvalidInput, match="brings its own targets"):
        ShuffledSGD(other, **settings()).fit(loader, y)
    alone = torch.utils.data.DataLoader(rows)
    with pytest.raises(InvalidInput, match="a pair of row and target"):
        ShuffledSGD(other, **settings()).fit(alone)


class Own(nn.Module):
    """A class as people write it, with a forward of its own."""

    def __init__(self, middle) -> None:
        super().__init__()
        self.first, self.last, self.middle = nn.Linear(4, 5), nn.Linear(5, 3), middle

    def forward(self, rows):
        return self.last(self.middle(self.first(torch.flatten(rows, 1))))


@pytest.mark.parametrize(
    ("middle", "fast"),
    [
        (nn.functional.relu, True),
        (lambda x: torch.tanh(x * 0.5 + 1.0).relu(), True),
        (lambda x: x.flatten(1), True),
        (lambda x: x - x.mean(0), False),
        (lambda x: x + x, False),
        (lambda x: x.T.T, False),
        (lambda x: x.flatten(0).reshape(-1, 5), False),
        (lambda x: x if x.sum() > 0 else -x, False),
        (lambda x: torch.relu(x) * torch.ones(5), False),
    ],
)
def test_a_class_of_ones_own_takes_the_fast_path_if_its_forward_keeps_examples_apart(middle, fast):
    module = Own(middle).double()
    X, y = data(24)
    model, gradients, _ = ShuffledSGD(module, **settings())._prepared()
    assert isinstance(gradients, LayerGradients if fast else FunctionalGradients)
    assert {id(p) for p in model.parameters.values()} == {id(p) for p in module.parameters()}
    if fast:
        rows, targets = torch.tensor(X), torch.tensor(y)
        wanted = FunctionalGradients(model).each(rows, targets)
        torch.testing.assert_close(gradients.each(rows, targets), wanted, rtol=0, atol=1e-12)
        before = module.last.weight.detach().clone()
        ShuffledSGD(module, **settings()).fit(X, y)
        assert not torch.equal(before, module.last.weight)


def test_an_own_loss_goes_one_by_one():
    assert treats_examples_alone(dense((4, 3)), "cross-entropy")
    assert not treats_examples_alone(dense((4, 3)), CROSS)


def settings(**more):
    return {"unit": "client", "seen": "levels", "epsilon0": 2.0, "delta": 1e-5, "clip": 0.5, "rounds": 3} | more


@pytest.mark.parametrize(
    "more",
    [
        {},
        {"seen": "sum"},
        {"seen": "sum", "mechanism": "laplace"},
        {"seen": "users", "unit": "example"},
        {"seen": "reports", "mechanism": "sketch", "epsilon0": [0.5] * 6 + [2.0] * 6},
        {"clipped": "examples", "momentum": 0.5, "averaging": 0.5},
    ],
)
def test_a_run_is_that_of_the_numpy_classifier(more):
    """Same seed, same layout of weights: the same permutations, noise, steps and guarantee."""
    X, y = data(60)
    groups, first = np.arange(60) % 12, simulation_random(3)
    module = Softmax(Network((4, 3)).initial(first), 4, 3)
    mine = ShuffledSGD(module, **settings(random=first, **more)).fit(X, y, groups)
    theirs = ShuffledSGDClassifier(hidden=(), random=simulation_random(3), classes=3, **settings(**more))
    theirs.fit(X, y, groups)
    np.testing.assert_allclose(Model(module, CROSS).weights, theirs.weights_, rtol=0, atol=1e-9)
    assert mine.guarantee_.epsilon == theirs.guarantee_.epsilon
    assert not mine.guarantee_.private


@pytest.mark.parametrize("clipped", ["examples", "message"])
def test_clients_together_send_what_each_sends_alone(clipped):
    X, y = data(40)
    trainer = ShuffledSGD(dense((4, 5, 3)), **settings(clipped=clipped))
    sender = trainer._run(X, y, np.repeat(np.arange(10), np.arange(10) % 4 + 1)[:25].repeat(2)[:40], None, None).sender
    who = np.arange(sender.clients.count)
    weights = sender.model.weights
    alone = np.stack([sender.gradient(int(client), weights) for client in who])
    together = sender.rounded(who, weights)
    np.testing.assert_allclose(together, alone * (sender.plan.gains / sender.plan.grid)[:, None], rtol=0, atol=0.500001)
    assert (np.linalg.norm(alone, axis=1) <= 0.5 * (1 + 1e-12)).all()


def test_a_large_cohort_of_clients_takes_part_in_one_round():
    X, y = data(2000, inputs=8)
    trainer = ShuffledSGD(dense((8, 3), torch.float32), **settings(rounds=1, seen="sum", min_messages=2000)).fit(X, y)
    assert trainer.history_[0].messages == 2000
    assert trainer.guarantee_.private
    assert trainer.guarantee_.epsilon.upper < 0.2


def test_training_learns_and_shows_loss_on_public_data(tmp_path):
    draw = np.random.default_rng(0)
    y = draw.integers(3, size=600)
    X = draw.standard_normal((600, 4)) + 3.0 * np.eye(3, 4)[y]
    module, lines = dense((4, 3), torch.float32), []
    with torch.no_grad():
        module[0].weight.zero_()
    ShuffledSGD(module, **settings(epsilon0=8.0, seen="sum", rounds=10, step=1.0, progress=lines.append)).fit(
        X, y, validation=(X, y)
    )
    assert lines[-1].accuracy > 0.8
    assert lines[-1].epsilon > 0.0


def test_stopping_and_going_on(tmp_path):
    X, y = data(60)
    file = tmp_path / "run.npz"
    common = settings(checkpoint=file, rounds=4, seen="sum")
    whole = ShuffledSGD(dense((4, 3)), **settings(rounds=4, seen="sum")).fit(X, y)
    cheap = whole.guarantee_.epsilon.upper * 0.8
    first = ShuffledSGD(dense((4, 3)), **common, max_epsilon=cheap).fit(X, y)
    assert "exceed" in first.stopped_
    assert 0 < first.accountant_.rounds < 4
    rest = ShuffledSGD(dense((4, 3)), **common).fit(X, y, resume=True)
    assert rest.accountant_.rounds == 4
    with pytest.raises(InvalidInput, match="another model"):
        ShuffledSGD(dense((4, 5, 3)), **common).fit(X, y, resume=True)


class Remembers(nn.Module):
    """A layer that writes what it sees into a buffer."""

    def __init__(self) -> None:
        super().__init__()
        self.layer = nn.Linear(4, 3).double()
        self.register_buffer("last", torch.zeros(4).double())

    def forward(self, rows):
        self.last.copy_(rows[0].detach())
        return self.layer(rows)


def mean_loss(outputs, targets):
    return nn.functional.cross_entropy(outputs, targets)


@pytest.mark.parametrize(
    ("module", "more", "message"),
    [
        (nn.Sequential(nn.Linear(4, 3), nn.BatchNorm1d(3)), {}, "BatchNorm1d mixes the examples"),
        (nn.ReLU(), {}, "no parameter to train"),
        (dense((4, 3)), {"loss": mean_loss, "norms": "layers"}, "one number per example"),
        (dense((4, 3)), {"norms": "ghost"}, "norms must be one of"),
        (dense((4, 3)), {"loss": "hinge"}, "loss must be one of"),
        (nn.Sequential(nn.Conv2d(2, 2, 1, groups=2)), {"norms": "layers"}, "no rule for the layer"),
        (dense((4, 3)), {"unit": "example", "clipped": "message"}, "clipping the average"),
        (dense((4, 3)), {"epsilon0": 0.0}, "nothing can be learned"),
        (Remembers(), {"norms": "layers"}, "buffer last"),
        (tied().double(), {"norms": "layers"}, "used twice"),
    ],
)
def test_refusals_leave_the_module_as_it_was(module, more, message):
    X, y = data(24)
    before = {name: value.clone() for name, value in module.state_dict().items()}
    asked = settings(clipped="examples") | more
    with pytest.raises(InvalidInput, match=message):
        ShuffledSGD(module, **asked).fit(X, y, groups=np.arange(24) % 6)
    after = module.state_dict()
    assert all(torch.equal(after[name], value) for name, value in before.items())


def test_bad_data():
    X, y = data(24)
    trainer = ShuffledSGD(dense((4, 3)), **settings())
    with pytest.raises(InvalidInput, match="a row for each example"):
        trainer.fit(X, y[:-1])


def test_arrays_that_may_not_be_written_are_no_reason_to_warn(recwarn):
    """As numpy.frombuffer gives them, and so `read_digits`."""
    draw = np.random.default_rng(0)
    rows, labels = draw.standard_normal((20, 4)), draw.integers(2, size=20)
    rows.flags.writeable = labels.flags.writeable = False
    ShuffledSGD(
        dense((4, 2)), unit="client", seen="sum", epsilon0=2.0, delta=1e-3, clip=1.0, rounds=1
    ).fit(rows, labels)  # fmt: skip
    assert not [warned for warned in recwarn if "writable" in str(warned.message)]
