# pyright: reportMissingImports=false, reportUnknownParameterType=false
"""`ShuffledSGD`: private training of a torch module on locally clipped and noised messages of clients."""

from __future__ import annotations

import hashlib
import operator
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Self

import numpy as np
import torch
from numpy.typing import ArrayLike, NDArray
from torch import Tensor, fx, nn
from torch.nn import functional
from torch.optim import Optimizer
from torch.utils.data import DataLoader

from shuffledp.errors import InvalidInput, choice
from shuffledp.learning.accounting import TrainingAccountant, TrainingGuarantee
from shuffledp.learning.inputs import Clients
from shuffledp.learning.messages import mechanism_of
from shuffledp.learning.rounds import Sender, Server, Sketcher
from shuffledp.learning.settings import Progress, RoundReport, Settings, accountant_of, aimed, assumptions, plan_run
from shuffledp.learning.torch.gradients import (
    LOSSES,
    ROW_BY_ROW,
    FunctionalGradients,
    Gradients,
    LayerGradients,
    Loss,
    Model,
    bounded,
    supported,
    treats_examples_alone,
)
from shuffledp.learning.training import Run
from shuffledp.ledger import EVERYBODY, Ledger
from shuffledp.numerics.floats import FloatArray
from shuffledp.numerics.randomness import Randomness, secure_random
from shuffledp.releases.run import Entering

# The server's side with torch's own optimizers, and datasets behind a DataLoader.


@dataclass
class OptimizerServer(Server):
    """Server whose steps a torch optimizer takes, given only the noisy mean as gradient.

    Each step is therefore a function of released messages. The schedule of ``decay`` multiplies its learning rates.

    Parameters
    ----------
    model : Model
        Model whose parameters the optimizer moves.
    optimizer : Optimizer
        Optimizer of exactly the model's trained parameters.
    """

    model: Model = field(kw_only=True)
    optimizer: Optimizer = field(kw_only=True)

    def __post_init__(self) -> None:
        """Keep the learning rates as they were given."""
        super().__post_init__()
        held = [p for group in self.optimizer.param_groups for p in group["params"]]
        wanted = {id(p) for p in self.model.parameters.values()}
        if {id(p) for p in held} != wanted or len(held) != len(wanted):
            raise InvalidInput(
                "the optimizer must hold just the parameters of the module that are trained; make it from "
                "[p for p in module.parameters() if p.requires_grad]"
            )
        self._rates = [group["lr"] for group in self.optimizer.param_groups]

    def move(self, direction: FloatArray, factor: float, *, average: bool) -> None:
        """Let the optimizer take one step against a direction (a noisy gradient); see `Server.move`."""
        self.model.load(self.weights)
        parts = torch.from_numpy(direction).split(self.model.widths)
        for parameter, part in zip(self.model.parameters.values(), parts, strict=True):
            parameter.grad = part.reshape(parameter.shape).to(parameter.device, parameter.dtype)
        for group, rate in zip(self.optimizer.param_groups, self._rates, strict=True):
            group["lr"] = rate * factor
        try:
            self.optimizer.step()
        finally:
            for group, rate in zip(self.optimizer.param_groups, self._rates, strict=True):
                group["lr"] = rate
            self.optimizer.zero_grad(set_to_none=True)
        self.weights = self.model.weights
        if average:
            self.total += self.weights
            self.averaged += 1


def whole_dataset(X: Any, y: Any) -> tuple[Any, Any]:
    """Return all rows and targets; for a DataLoader those of its dataset, each once and in its order.

    Parameters
    ----------
    X : DataLoader, Tensor or array_like
        A loader's batch size, order and sampler are ignored: rounds and clients decide who sends what.
    y : Tensor, array_like or None
        None with a loader.

    Raises
    ------
    InvalidInput
        If a loader comes with targets, or its dataset has no length or no pairs of a row and a target.
    """
    if not isinstance(X, DataLoader):
        return X, y
    if y is not None:
        raise InvalidInput("a DataLoader brings its own targets; leave y out")
    data: Any = X.dataset
    try:
        pairs = [data[i] for i in range(len(data))]
        rows, targets = zip(*pairs, strict=True)
        return _stacked(rows), _stacked(targets)
    except (TypeError, ValueError, RuntimeError):
        raise InvalidInput(
            "the DataLoader's dataset must have a length, and give a pair of row and target, all rows of one shape"
        ) from None


def _stacked(parts: Any) -> Tensor:
    return torch.stack([torch.as_tensor(part) for part in parts])


# The clients' side of a round with a torch module: gradients and clipping on the module's device, noise from here.

_MANY = 64
"""Largest number of examples of a client that is handled together with others; larger ones are handled one by one."""
_NUMBERS_AT_ONCE = {"cpu": 1 << 20, "cuda": 1 << 25}
"""Largest number of values of single gradients held in memory together, by kind of device."""


@dataclass(frozen=True, eq=False)
class TorchSender(Sender):
    """Clients that send noisy gradients of a torch module; grid, noise and plan are those of `Sender`.

    Parameters
    ----------
    model : Model
        The module; also given as ``network``.
    gradients : Gradients
        Method that computes the gradients of single examples.
    rows, targets : Tensor, first axis examples
        In place of ``features`` and ``labels``, on any device; parts are moved to the module's.
    """

    model: Model
    gradients: Gradients
    rows: Tensor
    targets: Tensor

    def gradient(self, client: int, weights: FloatArray) -> FloatArray:
        """Return the clipped average gradient of one client, shape (size,); see `Clientele.gradient`."""
        self.model.load(weights)
        return self._bounded(client).cpu().numpy()

    def clipped(self, clients: NDArray[np.int64], weights: FloatArray) -> Tensor:
        """Return the clipped average gradients of several clients, shape (clients, size).

        Parameters
        ----------
        clients : ndarray of int64
            Indices of the clients.
        weights : ndarray, shape (size,)
            Weights of the model.
        """
        self.model.load(weights)
        if (self.clients.sizes[clients] > _MANY).any():
            return torch.stack([self._bounded(int(client)) for client in clients])
        return self._bounded_together(clients)

    def rounded(self, clients: NDArray[np.int64], weights: FloatArray) -> NDArray[np.int64]:
        """Return several clients' messages before noise, in grid steps, shape (clients, size).

        See `Sender.messages`.
        """
        whole = self.clipped(clients, weights)
        whole *= torch.from_numpy(self.plan.gains[clients] / self.plan.grid).to(whole.device)[:, None]
        return whole.round_().cpu().numpy().astype(np.int64)

    @property
    def at_once(self) -> int:
        """Largest number of clients whose messages are held in memory together."""
        return max(1, self._numbers // self.model.size)

    @property
    def _numbers(self) -> int:
        return _NUMBERS_AT_ONCE.get(self.model.device.type, _NUMBERS_AT_ONCE["cpu"])

    def _examples(self, some: NDArray[np.int64]) -> tuple[Tensor, Tensor]:
        """Rows and targets of some examples, on the module's device."""
        at = torch.from_numpy(some).to(self.rows.device)
        return self.rows[at].to(self.model.device), self.targets[at.to(self.targets.device)].to(self.model.device)

    def _bounded(self, client: int) -> Tensor:
        """Like `Clipping.message`, at the weights that are loaded; shape (size,)."""
        owned, clip = self.clients.examples(client), self.clipping
        total = torch.zeros(self.model.size, dtype=torch.float64, device=self.model.device)
        chunk = self.gradients.at_once(self._numbers)
        for start in range(0, owned.size, chunk):
            rows, targets = self._examples(owned[start : start + chunk])
            if clip.clipped == "examples":
                total += self.gradients.clipped_sum(rows, targets, clip.bound, clip.order)
            else:
                total += self.model.plain_sum(rows, targets)
        return self._finished(total[None], np.array([owned.size]))[0]

    def _bounded_together(self, clients: NDArray[np.int64]) -> Tensor:
        """Return the same for several clients of few examples each, shape (clients, size)."""
        sizes, clip, device = self.clients.sizes[clients], self.clipping, self.model.device
        examples = np.concatenate([self.clients.examples(int(client)) for client in clients])
        owner = torch.from_numpy(np.repeat(np.arange(clients.size), sizes)).to(device)
        total = torch.zeros(clients.size, self.model.size, dtype=torch.float64, device=device)
        chunk = self.at_once
        for start in range(0, examples.size, chunk):
            chunk_gradients = self.gradients.each(*self._examples(examples[start : start + chunk]))
            if clip.clipped == "examples":
                chunk_gradients = bounded(chunk_gradients, clip.bound, clip.order)
            total.index_add_(0, owner[start : start + chunk], chunk_gradients)
        return self._finished(total, sizes)

    def _finished(self, totals: Tensor, sizes: NDArray[np.int64]) -> Tensor:
        """Averages over each client's examples, clipped as wholes if that was asked for."""
        totals /= torch.from_numpy(sizes).to(totals.device)[:, None]
        if self.clipping.clipped == "message":
            totals = bounded(totals, self.clipping.bound, self.clipping.order)
        return totals


@dataclass(frozen=True, eq=False)
class TorchSketcher(Sketcher):
    """Clients that send one private bit of a torch module's gradient; seeds and plan are those of `Sketcher`.

    Parameters
    ----------
    sender : TorchSender
        Gives the clipped gradients; its noise is not used.
    """

    sender: TorchSender

    @property
    def model(self) -> Model:
        """The torch module that is trained."""
        return self.sender.model

    def _projected(
        self, clients: NDArray[np.int64], weights: FloatArray, z: NDArray[np.float32]
    ) -> tuple[FloatArray, FloatArray]:
        """See `Sketcher._projected`: a gradient that is not finite is zero here, so its bit is fair."""
        sent = self.sender.clipped(clients, weights).cpu().numpy()
        return np.einsum("ij,ij->i", z, sent), np.linalg.norm(sent, axis=1)


# Modules of one's own on the fast path: their forward is traced, and every operation must keep examples apart.
#
# What is run afterwards is the traced graph itself, not the forward it came from. So a forward that would do
# something else at its next call changes nothing: each output row is computed by operations that are known to look at
# one row.

_ELEMENTWISE = {
    torch.relu, torch.tanh, torch.sigmoid, torch.exp, functional.relu, functional.gelu, functional.silu,
    functional.elu, functional.leaky_relu, functional.softplus, functional.tanh, functional.sigmoid,
    operator.add, operator.sub, operator.mul, operator.neg, torch.add, torch.sub, torch.mul,
}  # fmt: skip
"""Functions that give each number from the number in its own place, and fixed ones."""
_METHODS = {"relu", "tanh", "sigmoid", "exp", "add", "sub", "mul", "neg"}


def traced(module: nn.Module) -> nn.Module | None:
    """Return the module as a graph in which every operation treats examples separately; None if that is unknown.

    Parameters
    ----------
    module : nn.Module
        Any module with one input. Operations that join two tensors, such as a residual connection, are not known to
        keep examples
        apart, since shapes may be spread over each other; such a module takes the slow path.
    """
    try:
        graph = fx.symbolic_trace(module)
    except Exception:  # a forward that asks about its input cannot be traced: whatever it raises, the slow path serves
        return None
    parts, used = dict(graph.named_modules()), list[str]()
    inputs = 0
    for node in graph.graph.nodes:
        if node.op == "placeholder":
            inputs += 1
        elif node.op == "call_module":
            part = parts[str(node.target)]
            used.append(str(node.target))
            if not _keeps_rows(part) or len(node.args) != 1 or node.kwargs or not isinstance(node.args[0], fx.Node):
                return None
        elif node.op == "output":
            if not isinstance(node.args[0], fx.Node):
                return None
        elif not _alone(node):
            return None
    trained = [part for name in used for part in [parts[name]] if any(p.requires_grad for p in part.parameters())]
    numbers = [id(p) for part in trained for p in part.parameters() if p.requires_grad]
    wanted = {id(p) for p in module.parameters() if p.requires_grad}
    if inputs != 1 or len(set(numbers)) != len(numbers) or set(numbers) != wanted:
        return None
    return graph


def _keeps_rows(part: nn.Module) -> bool:
    """Whether one layer looks at one row at a time."""
    row = type(part) in ROW_BY_ROW and getattr(part, "start_dim", 1) >= 1
    return (row or supported(part)) and not getattr(part, "inplace", False)


def _alone(node: Any) -> bool:
    """Whether an operation that is no layer keeps examples apart."""
    if "out" in node.kwargs or node.kwargs.get("inplace"):
        return False
    given = [each for each in node.args if isinstance(each, fx.Node)]
    fixed = [each for each in node.args if not isinstance(each, fx.Node)]
    if node.target is torch.flatten or (node.op == "call_method" and node.target == "flatten"):
        start = fixed[0] if fixed else node.kwargs.get("start_dim", 0)
        return len(given) == 1 and isinstance(start, int) and start >= 1
    elementwise = node.target in (_ELEMENTWISE if node.op == "call_function" else _METHODS)
    plain = all(isinstance(each, int | float) for each in fixed)
    return node.op in ("call_function", "call_method") and elementwise and plain and len(given) == 1


NORMS = ("auto", "layers", "functional")
_MIXING = (nn.BatchNorm1d, nn.BatchNorm2d, nn.BatchNorm3d, nn.SyncBatchNorm)
_REMEMBERING = (nn.InstanceNorm1d, nn.InstanceNorm2d, nn.InstanceNorm3d)


class ShuffledSGD:
    """Private training of any torch module whose gradients of single examples torch.func can give.

    Rounds, noise, budgets and accounting are those of `shuffledp.learning.ShuffledSGDClassifier`. No default for what
    only the caller can choose: the unit, what the server sees, budgets, delta, clip and rounds.

    Parameters
    ----------
    module : nn.Module
        What is trained, on the device where its parameters are. Its first weights are public: they must not come from
        the protected data. Parameters with requires_grad=False are left alone.
    loss : {"cross-entropy", "squared", "binary"} or callable
        Each example's own loss; a callable takes (outputs, targets) and gives shape (n,): no reduction.
    norms : {"auto", "layers", "functional"}
        "functional": torch.func, one example at a time by construction. "layers": rules for Linear, Conv2d, Embedding,
        LayerNorm, GroupNorm in one pass, without building gradients of dense layers; choosing it states that no
        example changes another's loss. "auto" takes the rules only where the module's parts are known to comply; a
        class of your own complies if its traced forward (torch.fx) is made of such layers and of functions that give
        each number from the one in its place.
    optimizer : torch.optim.Optimizer or None
        Takes the server's steps, with the noisy mean as gradient, in place of ``step`` and ``momentum``; ``decay``
        multiplies its learning rates. It must hold just the module's trained parameters, and does not go with
        ``checkpoint``, which does not keep its state.
    unit, seen, epsilon0, delta, clip, rounds, mechanism, delta0, clipped, step, momentum, decay, averaging
        As in `shuffledp.learning.ShuffledSGDClassifier`.
    weighting, min_messages, max_epsilon, target_epsilon, patience, checkpoint, progress, random
        As in `shuffledp.learning.ShuffledSGDClassifier`.

    Attributes
    ----------
    guarantee_ : TrainingGuarantee
        What may be published about privacy.
    accountant_ : TrainingAccountant
        Rounds released, and their cost.
    history_, stopped_
        One `RoundReport` per round, and why training ended.

    Examples
    --------
    >>> from torch import nn
    >>> rows, labels = torch.randn(200, 4), torch.randint(3, (200,))
    >>> trainer = ShuffledSGD(
    ...     nn.Linear(4, 3), unit="client", seen="sum", epsilon0=4.0, delta=1e-5, clip=1.0, rounds=2
    ... ).fit(rows, labels)
    >>> 0.0 < trainer.guarantee_.epsilon.upper < 1.0
    True
    """

    def __init__(
        self,
        module: nn.Module,
        *,
        unit: str,
        seen: str,
        epsilon0: Any,
        delta: float,
        clip: float,
        rounds: int | None,
        loss: str | Loss = "cross-entropy",
        norms: str = "auto",
        optimizer: torch.optim.Optimizer | None = None,
        mechanism: str = "gaussian",
        delta0: Any = None,
        clipped: str | None = None,
        step: float = 0.5,
        momentum: float = 0.0,
        decay: str = "linear",
        averaging: float = 0.0,
        weighting: str = "auto",
        min_messages: int = 1,
        max_epsilon: float | None = None,
        target_epsilon: float | None = None,
        patience: int | None = None,
        checkpoint: str | Path | None = None,
        progress: Progress | None = None,
        random: Randomness | None = None,
    ) -> None:
        self.module = module
        self.loss = loss
        self.norms = norms
        self.optimizer = optimizer
        self.settings = Settings(
            unit=unit,
            seen=seen,
            epsilon0=epsilon0,
            delta=delta,
            clip=clip,
            rounds=rounds,
            hidden=(),
            mechanism=mechanism,
            delta0=delta0,
            clipped=clipped,
            step=step,
            momentum=momentum,
            decay=decay,
            averaging=averaging,
            weighting=weighting,
            min_messages=min_messages,
            classes=None,
            features=None,
            pca=None,
            pca_data=None,
            public_features=False,
            max_epsilon=max_epsilon,
            target_epsilon=target_epsilon,
            patience=patience,
            checkpoint=checkpoint,
            progress=progress,
            random=random,
        )

    def fit(
        self,
        X: Tensor | ArrayLike | DataLoader[Any],
        y: Tensor | ArrayLike | None = None,
        groups: ArrayLike | None = None,
        *,
        validation: tuple[ArrayLike, ArrayLike] | None = None,
        presence: Callable[[int], ArrayLike] | None = None,
        resume: bool = False,
        ledger: Ledger | str | Path | None = None,
        population: str = EVERYBODY,
        fixed_in_advance: str | None = None,
        title: str = "",
    ) -> Self:
        """Train the module in place and return the trainer; after an error the module is unchanged.

        Parameters
        ----------
        X : Tensor, array_like or DataLoader; first axis examples
            Of a loader the dataset is taken, each example once; its batches and order are ignored. What the module
            takes; floats are turned into the parameters' type. A record whose gradient is not finite
            contributes zero: an error, or a missing message, would tell that there is one.
        y : Tensor or array_like, first axis examples
            What the loss takes; None with a DataLoader, which brings it.
        groups : array_like, shape (examples,), optional
            Whose example each is; by default everybody has one.
        validation : (X, y), optional
            Public rows of numbers and labels, for loss and accuracy of a classifier while it trains.
        presence : callable, optional
            Who takes part in a round; it must not depend on the records.
        resume : bool
            Go on from the checkpoint file instead of starting.
        ledger, population, fixed_in_advance, title
            As in `shuffledp.ShuffledSGDClassifier`: all rounds are entered before the first message is computed.

        Raises
        ------
        InvalidInput
            On any bad argument or data, or if the ledger's limit has no room.
        NotConverged
            If training diverges.
        """
        entering = Entering.into(ledger, population, fixed_in_advance, title)
        run = self._run(X, y, groups, validation, presence)
        run.entering = entering
        model = run.sender.model
        first, kept = model.weights, {name: b.clone() for name, b in self.module.named_buffers()}
        done = False
        try:
            run.train(resume=resume)
            changed = [name for name, b in self.module.named_buffers() if not torch.equal(b, kept[name])]
            if changed:
                raise InvalidInput(
                    f"the module wrote the records into its buffer {changed[0]}, which nothing protects; "
                    "put that part into evaluation mode, or leave it out"
                )
            done = True
        finally:
            model.load(run.result if done else first)
            if not done:
                for name, buffer in self.module.named_buffers():
                    buffer.copy_(kept[name])
        self.accountant_: TrainingAccountant = run.accountant
        self.history_: list[RoundReport] = run.history
        self.stopped_: str = run.stopped
        self.guarantee_: TrainingGuarantee = run.guarantee()
        return self

    def _run(self, X: Any, y: Any, groups: Any, validation: Any, presence: Any) -> Any:
        """Check everything, and plan the messages."""
        s, random = self.settings.checked(), self.settings.random or secure_random()
        model, gradients, notes = self._prepared()
        rows, targets = self._examples(*whole_dataset(X, y), model)
        if groups is None and s.unit == "example":
            raise InvalidInput(
                "`unit = 'example'` needs `groups`, the client of each example; without, everybody has one example: "
                "say `unit = 'client'`, or spread them with assign_clients"
            )
        clients = Clients.of(groups, rows.shape[0])
        notes += assumptions(s, read_classes=False)
        s = aimed(s, clients, model.size, notes)
        plan, taking_part = plan_run(s, clients, model.size, notes)
        side: dict[str, Any] = {
            "network": model,
            "clipping": s.clipping,
            "plan": plan,
            "clients": clients,
            "features": np.empty(0),  # rows and targets are tensors
            "labels": np.empty(0, dtype=np.int64),
            "random": random,
        }
        noise = mechanism_of("gaussian" if s.mechanism == "sketch" else s.mechanism)
        sender = TorchSender(**side, mechanism=noise, model=model, gradients=gradients, rows=rows, targets=targets)
        sketcher = TorchSketcher(**side, sender=sender) if s.mechanism == "sketch" else None
        server = self._server(model)
        accountant = accountant_of(s, plan)
        return Run(
            settings=s,
            sender=sketcher or sender,
            server=server,
            accountant=accountant,
            inputs=int(rows[0].numel()),
            projection=None,
            taking_part=taking_part,
            random=random,
            notes=notes,
            validation=self._validation_arrays(validation),
            presence=presence,
            features=self._fingerprint(model),
            private=random.private,
        )

    def _server(self, model: Model) -> Server:
        """Build the server's side."""
        s = self.settings
        if self.optimizer is None:
            return Server(model.weights, float(s.step), float(s.momentum))
        if s.checkpoint is not None:
            raise InvalidInput("a checkpoint does not keep an optimizer's state; leave one of the two out")
        return OptimizerServer(model.weights, 1.0, 0.0, model=model, optimizer=self.optimizer)

    def _fingerprint(self, model: Model) -> str:
        """Return what a checkpoint must agree on besides the settings.

        These are the names and shapes of what is trained, and the loss.
        """
        loss = self.loss if isinstance(self.loss, str) else getattr(self.loss, "__qualname__", "a callable")
        shapes = [(name, tuple(p.shape)) for name, p in model.parameters.items()]
        return hashlib.sha256(repr((loss, shapes)).encode()).hexdigest()

    def _prepared(self) -> tuple[Model, Gradients, list[str]]:
        """Return the module and the way to its gradients, and what that rests on."""
        choice(self.norms, "norms", NORMS)
        if isinstance(self.loss, str):
            choice(self.loss, "loss", tuple(LOSSES))
        model = Model(self.module, LOSSES[self.loss] if isinstance(self.loss, str) else self.loss)
        if not model.parameters:
            raise InvalidInput("the module has no parameter to train; set requires_grad on some")
        if len({p.device for p in model.parameters.values()}) > 1:
            raise InvalidInput("the module's parameters are on several devices; move it to one")
        mixing = next((m for m in self.module.modules() if isinstance(m, _MIXING) and m.training), None)
        if mixing is not None:
            raise InvalidInput(
                f"{type(mixing).__name__} mixes the examples of a batch, so that no example's part is bounded; "
                "use GroupNorm or LayerNorm, or put it into evaluation mode"
            )
        remembering = next(
            (m for m in self.module.modules() if isinstance(m, _REMEMBERING) and m.track_running_stats and m.training),
            None,
        )
        if remembering is not None:
            raise InvalidInput(
                f"{type(remembering).__name__} with running statistics writes the records into its buffers, which "
                "nothing protects; set track_running_stats=False, or put it into evaluation mode"
            )
        notes = ["the module's first weights are public: no protected record made them"]
        alone = treats_examples_alone(self.module, self.loss)
        if self.norms == "layers" and not alone:
            notes.append("the caller states that no example changes another's loss in the module")
        if self.norms == "layers" or (self.norms == "auto" and alone):
            return model, LayerGradients(model), notes
        graph = traced(self.module) if self.norms == "auto" and isinstance(self.loss, str) else None
        if graph is not None:
            model = Model(graph, model.loss)  # what is run is what was looked at
            return model, LayerGradients(model), notes
        return model, FunctionalGradients(model), notes

    def _examples(self, X: Any, y: Any, model: Model) -> tuple[Tensor, Tensor]:
        rows, targets = _tensor(X), _tensor(y)
        if rows.ndim < 1 or rows.shape[0] == 0 or targets.ndim < 1 or targets.shape[0] != rows.shape[0]:
            raise InvalidInput(f"X and y need a row for each example; got {tuple(rows.shape)}, {tuple(targets.shape)}")
        kind = next(iter(model.parameters.values())).dtype
        rows = rows.to(kind) if rows.is_floating_point() else rows
        targets = targets.to(kind) if targets.is_floating_point() else targets
        return rows, targets

    def _validation_arrays(self, validation: Any) -> tuple[NDArray[np.generic], NDArray[np.int64]] | None:
        if validation is None:
            return None
        if self.loss != "cross-entropy":
            raise InvalidInput("validation is for classifiers with `loss = 'cross-entropy'`; leave it out")
        return np.asarray(validation[0]), np.asarray(validation[1], dtype=np.int64)


def _tensor(values: Any) -> Tensor:
    """Return ``values`` as a tensor; an array that may not be written is copied, since torch warns of it otherwise."""
    fixed = isinstance(values, np.ndarray) and not values.flags.writeable
    return torch.tensor(values) if fixed else torch.as_tensor(values)
