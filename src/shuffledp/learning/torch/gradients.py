# pyright: reportMissingImports=false, reportUnknownParameterType=false, reportUnknownLambdaType=false
"""Gradients of single examples of any torch module: by the layers' rules in one pass, or by torch.func."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property
from typing import Protocol

import numpy as np
import torch
from torch import Tensor, nn
from torch.func import functional_call, grad, vmap
from torch.nn import functional

from shuffledp.errors import InvalidInput
from shuffledp.learning.clipping import shrink
from shuffledp.learning.torch.layers import LAYERS, ROW_BY_ROW, LayerPass, supported
from shuffledp.numerics.interval import FloatArray

Loss = Callable[[Tensor, Tensor], Tensor]
"""Outputs (n, ...) and targets (n, ...) -> each example's own loss, shape (n,)."""

LOSSES: dict[str, Loss] = {
    "cross-entropy": lambda outputs, targets: functional.cross_entropy(outputs, targets, reduction="none"),
    "squared": lambda outputs, targets: (outputs - targets.reshape(outputs.shape)).square().flatten(1).sum(1),
    "binary": lambda outputs, targets: (
        functional.binary_cross_entropy_with_logits(
            outputs, targets.reshape(outputs.shape).to(outputs.dtype), reduction="none"
        )
        .flatten(1)
        .sum(1)
    ),
}
"""Losses that are known to treat each example alone."""


@dataclass(frozen=True, eq=False)
class Model:
    """A module whose trainable numbers are one flat vector in double precision.

    Parameters
    ----------
    module : nn.Module
        In training or evaluation mode as the caller left it.
    loss : callable
        Each example's own loss.
    """

    module: nn.Module
    loss: Loss

    @cached_property
    def parameters(self) -> dict[str, Tensor]:
        """What is trained, by name."""
        return {name: p for name, p in self.module.named_parameters() if p.requires_grad}

    @cached_property
    def widths(self) -> tuple[int, ...]:
        """Numbers in each parameter."""
        return tuple(p.numel() for p in self.parameters.values())

    @cached_property
    def size(self) -> int:
        """How many numbers a message has."""
        return sum(self.widths)

    @property
    def device(self) -> torch.device:
        """Where the parameters are."""
        return next(iter(self.parameters.values())).device

    @property
    def weights(self) -> FloatArray:
        """All trained numbers, shape (size,)."""
        return torch.cat([p.detach().double().flatten() for p in self.parameters.values()]).cpu().numpy()

    def load(self, weights: FloatArray) -> None:
        """Put a flat vector of shape (size,) into the parameters, rounded to what they hold."""
        given = torch.from_numpy(np.ascontiguousarray(weights))
        with torch.no_grad():
            for parameter, part in zip(self.parameters.values(), given.split(self.widths), strict=True):
                parameter.copy_(part.reshape(parameter.shape))

    def losses(self, rows: Tensor, targets: Tensor) -> Tensor:
        """Each example's loss, shape (n,)."""
        found = self.loss(self.module(rows), targets)
        if found.shape != (rows.shape[0],):
            raise InvalidInput(
                f"the loss must give one number per example, shape ({rows.shape[0]},); got {tuple(found.shape)}: "
                "use reduction='none'"
            )
        return found

    def plain_sum(self, rows: Tensor, targets: Tensor) -> Tensor:
        """Sum of the examples' gradients, shape (size,), double precision."""
        found = torch.autograd.grad(self.losses(rows, targets).sum(), list(self.parameters.values()))
        return torch.cat([part.double().flatten() for part in found])

    def probabilities(self, weights: FloatArray, rows: FloatArray) -> FloatArray:
        """Softmax of the outputs, shape (n, classes); leaves these weights in the module."""
        self.load(weights)
        with torch.no_grad():
            given = torch.from_numpy(rows).to(self.device, next(iter(self.parameters.values())).dtype)
            return self.module(given).double().softmax(1).cpu().numpy()


class Gradients(Protocol):
    """A way to the gradients of single examples; each example's must not depend on the others."""

    def clipped_sum(self, rows: Tensor, targets: Tensor, bound: float, order: int) -> Tensor:
        """Sum of the gradients, each brought to the norm ``bound`` at most; shape (size,), double precision.

        A gradient whose norm is not finite contributes zero.
        """
        ...

    def each(self, rows: Tensor, targets: Tensor) -> Tensor:
        """Gradient of each example, shape (n, size), double precision."""
        ...

    def at_once(self, numbers: int) -> int:
        """How many examples fit, if so many numbers may be in memory."""
        ...


def shrunk(norms: Tensor, bound: float) -> Tensor:
    """`shrink` for a tensor of norms."""
    return torch.from_numpy(shrink(norms.cpu().numpy(), bound)).to(norms.device)


def bounded(vectors: Tensor, bound: float, order: int) -> Tensor:
    """Clip the rows of a table, shape (n, numbers), in place; a row whose norm is not finite becomes zero."""
    factors = shrunk(torch.linalg.vector_norm(vectors, ord=order, dim=1), bound)[:, None]
    vectors *= factors
    return vectors.masked_fill_(factors == 0.0, 0.0)


@dataclass(frozen=True, eq=False)
class FunctionalGradients:
    """torch.func: vmap(grad) of one example's loss. An example cannot see another, by construction."""

    model: Model

    @cached_property
    def _of_all(self) -> Callable[..., dict[str, Tensor]]:
        module, loss = self.model.module, self.model.loss

        def alone(parameters: dict[str, Tensor], row: Tensor, target: Tensor) -> Tensor:
            return loss(functional_call(module, parameters, (row[None],)), target[None]).sum()

        return vmap(grad(alone), in_dims=(None, 0, 0), randomness="different")

    def each(self, rows: Tensor, targets: Tensor) -> Tensor:
        """See `Gradients.each`."""
        known = {name: p.detach() for name, p in self.model.parameters.items()}
        found = self._of_all(known, rows, targets)
        return torch.cat([found[name].flatten(1).double() for name in known], dim=1)

    def clipped_sum(self, rows: Tensor, targets: Tensor, bound: float, order: int) -> Tensor:
        """See `Gradients.clipped_sum`."""
        return bounded(self.each(rows, targets), bound, order).sum(0)

    def at_once(self, numbers: int) -> int:
        """See `Gradients.at_once`."""
        return max(1, numbers // self.model.size)


@dataclass(frozen=True, eq=False)
class LayerGradients:
    """The layers' rules: one pass for the batch. The module must treat each example alone."""

    model: Model

    @cached_property
    def layers(self) -> list[nn.Module]:
        """Those with trained parameters, in the order of `Model.parameters`."""
        found = [m for m in self.model.module.modules() if any(p.requires_grad for p in m.parameters(recurse=False))]
        bad = next((m for m in found if not supported(m)), None)
        if bad is not None:
            raise InvalidInput(f"there is no rule for the layer {bad}; use `norms = 'functional'`")
        return found

    @cached_property
    def outer_only(self) -> bool:
        """Whether all layers are dense."""
        return all(type(layer) is nn.Linear for layer in self.layers)

    def passes(self, rows: Tensor, targets: Tensor) -> list[LayerPass]:
        """Pass a batch forward and backward; what each layer saw."""
        seen: dict[nn.Module, tuple[Tensor, Tensor]] = {}

        def keep(layer: nn.Module, given: tuple[Tensor, ...], output: Tensor) -> None:
            if layer in seen:
                raise InvalidInput(f"the layer {layer} is used twice in one pass; use `norms = 'functional'`")
            seen[layer] = given[0].detach(), output

        hooks = [layer.register_forward_hook(keep) for layer in self.layers]
        try:
            losses = self.model.losses(rows, targets)
        finally:
            for hook in hooks:
                hook.remove()
        unused = next((layer for layer in self.layers if layer not in seen), None)
        if unused is not None:
            raise InvalidInput(f"the layer {unused} was not called in the pass; use `norms = 'functional'`")
        outputs = [seen[layer][1] for layer in self.layers]
        slopes = torch.autograd.grad(losses.sum(), outputs)
        return [
            LAYERS[type(layer)](layer, seen[layer][0], slope) for layer, slope in zip(self.layers, slopes, strict=True)
        ]

    def each(self, rows: Tensor, targets: Tensor) -> Tensor:
        """See `Gradients.each`."""
        return torch.cat([part for found in self.passes(rows, targets) for part in found.each()], dim=1)

    def clipped_sum(self, rows: Tensor, targets: Tensor, bound: float, order: int) -> Tensor:
        """See `Gradients.clipped_sum`."""
        found = self.passes(rows, targets)
        norms = torch.stack([part.powers(order) for part in found]).sum(0).pow(1.0 / order)
        factors = shrunk(norms, bound)
        return torch.cat([part.flatten() for layer in found for part in layer.weighted(factors)])

    def at_once(self, numbers: int) -> int:
        """See `Gradients.at_once`; dense layers never build a gradient."""
        return 1024 if self.outer_only else max(1, numbers // self.model.size)


def treats_examples_alone(module: nn.Module, loss: str | Loss) -> bool:
    """Whether module and loss are built of parts known to treat each example alone, and all have rules."""
    if not isinstance(loss, str):
        return False
    # remove_duplicate=False lists a module as often as it is used
    parts = [part for _, part in module.named_modules(remove_duplicate=False)]
    own = [part for part in parts if any(True for _ in part.parameters(recurse=False))]
    known = all(
        (type(part) in ROW_BY_ROW and not getattr(part, "inplace", False) and getattr(part, "start_dim", 1) >= 1)
        or supported(part)
        for part in parts
    )
    parameters = [id(p) for part in own for p in part.parameters(recurse=False)]
    return known and len(set(parameters)) == len(parameters)
