# pyright: reportMissingImports=false, reportUnknownParameterType=false
"""The server's side with torch's own optimizers, and datasets behind a DataLoader."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import torch
from torch import Tensor
from torch.optim import Optimizer
from torch.utils.data import DataLoader

from shuffledp.errors import InvalidInput
from shuffledp.learning.rounds import Server
from shuffledp.learning.torch.gradients import Model
from shuffledp.numerics.interval import FloatArray


@dataclass
class OptimizerServer(Server):
    """A `Server` whose steps are an optimizer's: it is given the noisy mean as gradient, and nothing else.

    So whatever it does is a function of released messages. The schedule of ``decay`` multiplies its learning rates.

    Parameters
    ----------
    model : Model
        Whose parameters move.
    optimizer : Optimizer
        Of just these parameters.
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
        """Let the optimizer take one step; see `Server.move`."""
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
    """Return rows and targets; of a DataLoader those of its dataset, each once and in its order.

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
