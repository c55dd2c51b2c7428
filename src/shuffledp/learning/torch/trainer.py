# pyright: reportMissingImports=false, reportUnknownParameterType=false
"""`ShuffledSGD`: private training of a torch module on locally clipped and noised messages of clients."""

from __future__ import annotations

import hashlib
from collections.abc import Callable
from pathlib import Path
from typing import Any, Self

import numpy as np
import torch
from numpy.typing import ArrayLike, NDArray
from torch import Tensor, nn
from torch.utils.data import DataLoader

from shuffledp.errors import InvalidInput
from shuffledp.learning.accounting import TrainingAccountant
from shuffledp.learning.guarantee import TrainingGuarantee
from shuffledp.learning.inputs import Clients, one_of
from shuffledp.learning.noise import mechanism_of
from shuffledp.learning.plans import accountant_of, plan_run
from shuffledp.learning.progress import Progress, RoundReport
from shuffledp.learning.rounds import Server
from shuffledp.learning.settings import Settings, assumptions
from shuffledp.learning.target import aimed
from shuffledp.learning.torch.gradients import (
    LOSSES,
    FunctionalGradients,
    Gradients,
    LayerGradients,
    Loss,
    Model,
    treats_examples_alone,
)
from shuffledp.learning.torch.optimizing import OptimizerServer, whole_dataset
from shuffledp.learning.torch.sender import TorchSender, TorchSketcher
from shuffledp.learning.torch.tracing import traced
from shuffledp.learning.training import Run
from shuffledp.ledger import EVERYBODY, Ledger
from shuffledp.numerics.randomness import Randomness, secure_random
from shuffledp.releases.entering import Entering

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
        """Train the module in place; after an error it is as it was before.

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
            validation=self._shown(validation),
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
        one_of("norms", self.norms, NORMS)
        if isinstance(self.loss, str):
            one_of("loss", self.loss, tuple(LOSSES))
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

    def _shown(self, validation: Any) -> tuple[NDArray[np.generic], NDArray[np.int64]] | None:
        if validation is None:
            return None
        if self.loss != "cross-entropy":
            raise InvalidInput("validation is for classifiers with `loss = 'cross-entropy'`; leave it out")
        return np.asarray(validation[0]), np.asarray(validation[1], dtype=np.int64)


def _tensor(values: Any) -> Tensor:
    """Return ``values`` as a tensor; an array that may not be written is copied, since torch warns of it otherwise."""
    fixed = isinstance(values, np.ndarray) and not values.flags.writeable
    return torch.tensor(values) if fixed else torch.as_tensor(values)
