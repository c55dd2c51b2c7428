# pyright: reportMissingImports=false, reportUnknownParameterType=false
# pyright: reportMissingImports=false, reportUnknownParameterType=false, reportUnknownLambdaType=false
"""Gradients of single examples of any torch module: by the layers' rules in one pass, or by torch.func."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property
from typing import Any, Protocol

import numpy as np
import torch
from torch import Tensor, nn
from torch.func import functional_call, grad, vmap
from torch.nn import functional

from shuffledp.errors import InvalidInput
from shuffledp.learning.messages import shrink
from shuffledp.learning.network import LARGEST
from shuffledp.numerics.floats import FloatArray

# One layer's part in the gradients of single examples, from what it was given and the slopes at its output.
#
# A dense layer on one vector per example has the outer product of its input and its slope as gradient: the norm is a
# product of two norms, and the clipped sum one matrix product (Goodfellow 2015, "Efficient per-example gradient
# computations"). Other layers add up several such products per example, whose terms may cancel; there the gradient of
# each example is built, layer by layer, so that the norm belongs to the very numbers that are added.
#
# All of it is double precision, whatever the module computes in: then a clipped sum is as exact as the sensitivity
# counts (`shuffledp.learning.messages.Clipping.sensitivity`).


class LayerPass(Protocol):
    """Interface of one layer's contribution to the gradients of a batch of n examples.

    Parameters are listed in the order in which the layer has them.
    """

    def powers(self, order: int) -> Tensor:
        """Return each example's sum of |gradient|^order over the layer's parameters, shape (n,); order is 1 or 2."""
        ...

    def weighted(self, factors: Tensor) -> list[Tensor]:
        """Return the sum over examples of factor times gradient, one tensor per parameter.

        An example of factor 0 contributes 0.
        """
        ...

    def each(self) -> list[Tensor]:
        """Return the gradient of each example, shape (n, numbers of the parameter), one tensor per parameter."""
        ...


@dataclass(frozen=True)
class OuterPass:
    """A dense layer on one vector per example: gradients are outer products and are never built for norms and sums.

    Parameters
    ----------
    inputs : Tensor, shape (n, inputs)
        Input of the layer, double precision.
    slopes : Tensor, shape (n, outputs)
        Derivative of each example's own loss by the layer's output.
    bias : bool
        True if the layer has a bias, which is one more input, constant 1.
    """

    inputs: Tensor
    slopes: Tensor
    bias: bool

    def powers(self, order: int) -> Tensor:
        """Return each example's sum of |gradient|^order, shape (n,): the product of the sums over its two factors."""
        given, slope = self.inputs.abs().pow(order).sum(1), self.slopes.abs().pow(order).sum(1)
        fine = (given <= LARGEST**order) & (slope <= LARGEST**order)
        return torch.where(fine, (given + float(self.bias)) * slope, torch.inf)

    def weighted(self, factors: Tensor) -> list[Tensor]:
        """Return the sum over examples of factor times gradient, one tensor per parameter."""
        gone = (factors == 0.0)[:, None]
        scaled = (self.slopes * factors[:, None]).masked_fill_(gone, 0.0)
        whole = scaled.T @ self.inputs.masked_fill(gone, 0.0)
        return [whole, scaled.sum(0)] if self.bias else [whole]

    def each(self) -> list[Tensor]:
        """Return the gradient of each example, shape (n, numbers of the parameter), one tensor per parameter."""
        products = torch.einsum("no,ni->noi", self.slopes, self.inputs).flatten(1)
        return [products, self.slopes] if self.bias else [products]


@dataclass(frozen=True)
class BuiltPass:
    """Contribution of a layer for which the gradient of each example was built in memory.

    Parameters
    ----------
    gradients : tuple of Tensor
        One per parameter, shape (n, numbers of the parameter), double precision.
    """

    gradients: tuple[Tensor, ...]

    def powers(self, order: int) -> Tensor:
        """Return each example's sum of |gradient|^order over the layer's parameters, shape (n,)."""
        parts = [g.abs().pow(order).sum(1) for g in self.gradients]
        return torch.stack(parts).sum(0)

    def weighted(self, factors: Tensor) -> list[Tensor]:
        """Return the sum over examples of factor times gradient, one tensor per parameter."""
        gone = (factors == 0.0)[:, None]
        return [factors @ g.masked_fill(gone, 0.0) for g in self.gradients]

    def each(self) -> list[Tensor]:
        """Return the gradient of each example, shape (n, numbers of the parameter), one tensor per parameter."""
        return list(self.gradients)


def _built(layer: nn.Module, weight: Tensor, bias: Tensor) -> BuiltPass:
    """Build the pass of a layer whose parameters are a weight and, unless left out, a bias."""
    return BuiltPass((weight.flatten(1), bias.flatten(1)) if _has_bias(layer) else (weight.flatten(1),))


def _has_bias(layer: nn.Module) -> bool:
    return getattr(layer, "bias", None) is not None


def linear(layer: nn.Linear, given: Tensor, slopes: Tensor) -> LayerPass:
    """Return the gradient contribution of a dense layer: an outer product, or a sum of them over positions.

    Parameters
    ----------
    layer : nn.Linear
        The layer.
    given : Tensor, shape (n, ..., inputs)
        The layer's input.
    slopes : Tensor, shape (n, ..., outputs)
        Derivative of each example's own loss by the layer's output.
    """
    x, d = given.double(), slopes.double()
    if x.ndim == 2:
        return OuterPass(x, d, _has_bias(layer))
    x, d = x.reshape(x.shape[0], -1, x.shape[-1]), d.reshape(d.shape[0], -1, d.shape[-1])
    return _built(layer, torch.einsum("nto,nti->noi", d, x), d.sum(1))


def convolution(layer: nn.Conv2d, given: Tensor, slopes: Tensor) -> LayerPass:
    """Return the gradient contribution of an image convolution, whose input patches act as positions.

    Arguments are as for `linear`.
    """
    around = layer.padding if not isinstance(layer.padding, str) else 0  # `supported` refuses words
    patches = functional.unfold(given.double(), layer.kernel_size, layer.dilation, around, layer.stride)
    d = slopes.double().flatten(2)
    return _built(layer, torch.einsum("nol,nkl->nok", d, patches), d.sum(2))


def embedding(layer: nn.Embedding, given: Tensor, slopes: Tensor) -> LayerPass:
    """Return the gradient contribution of an embedding table: each token's slope is added to its row.

    Arguments are as for `linear`.
    """
    n, rows, width = given.shape[0], layer.num_embeddings, layer.embedding_dim
    tokens = given.reshape(n, -1) + torch.arange(n, device=given.device)[:, None] * rows
    d = slopes.double().reshape(-1, width)
    table = torch.zeros(n * rows, width, dtype=torch.float64, device=d.device).index_add_(0, tokens.flatten(), d)
    table = table.reshape(n, rows, width)
    if layer.padding_idx is not None:
        table[:, layer.padding_idx] = 0.0
    return BuiltPass((table.flatten(1),))


def layer_norm(layer: nn.LayerNorm, given: Tensor, slopes: Tensor) -> LayerPass:
    """Return the gradient contribution of the scale and shift of a LayerNorm layer; arguments are as for `linear`."""
    if given.ndim <= len(layer.normalized_shape):
        raise InvalidInput(f"{layer} would normalise over the examples of a batch; normalise within an example")
    normal = functional.layer_norm(given.double(), layer.normalized_shape, None, None, layer.eps)
    shape = (given.shape[0], -1, *layer.normalized_shape)
    d = slopes.double()
    return _built(layer, (d * normal).reshape(shape).sum(1), d.reshape(shape).sum(1))


def group_norm(layer: nn.GroupNorm, given: Tensor, slopes: Tensor) -> LayerPass:
    """Return the gradient contribution of the scale and shift of a GroupNorm layer; arguments are as for `linear`."""
    normal = functional.group_norm(given.double(), layer.num_groups, None, None, layer.eps)
    d, shape = slopes.double(), (given.shape[0], given.shape[1], -1)
    return _built(layer, (d * normal).reshape(shape).sum(2), d.reshape(shape).sum(2))


LAYERS: dict[type[nn.Module], Callable[..., LayerPass]] = {
    nn.Linear: linear,
    nn.Conv2d: convolution,
    nn.Embedding: embedding,
    nn.LayerNorm: layer_norm,
    nn.GroupNorm: group_norm,
}
"""Layers with parameters whose gradients for single examples come from one pass through the whole batch."""

ROW_BY_ROW: tuple[type[nn.Module], ...] = (
    nn.Sequential,
    nn.Identity,
    nn.ReLU,
    nn.LeakyReLU,
    nn.ELU,
    nn.GELU,
    nn.SiLU,
    nn.Tanh,
    nn.Sigmoid,
    nn.Softplus,
    nn.Dropout,
    nn.Flatten,
    nn.MaxPool2d,
    nn.AvgPool2d,
    nn.AdaptiveAvgPool2d,
)
"""Modules without parameters that treat each example alone."""


def supported(layer: nn.Module) -> bool:
    """Return whether a layer with parameters has a gradient rule in this module, as it is configured."""
    if type(layer) not in LAYERS:
        return False
    trained = {parameter.requires_grad for parameter in layer.parameters(recurse=False)}
    return len(trained) <= 1 and _PLAIN.get(type(layer), lambda _: True)(layer)


_PLAIN: dict[type[nn.Module], Callable[[Any], bool]] = {
    nn.Conv2d: lambda m: m.groups == 1 and m.padding_mode == "zeros" and not isinstance(m.padding, str),
    nn.Embedding: lambda m: m.max_norm is None and not m.scale_grad_by_freq and not m.sparse,
}
"""Functions that return whether a layer is configured such that its rule holds."""


Loss = Callable[[Tensor, Tensor], Tensor]
"""Function of outputs (n, ...) and targets (n, ...) that returns each example's own loss, shape (n,)."""

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
    """Torch module whose trainable parameters are read and set as one flat vector in double precision.

    Parameters
    ----------
    module : nn.Module
        In training or evaluation mode as the caller left it.
    loss : callable
        ``loss(outputs, targets)``, the loss of each example, shape (n,).
    """

    module: nn.Module
    loss: Loss

    @cached_property
    def parameters(self) -> dict[str, Tensor]:
        """Trainable parameters of the module, by name."""
        return {name: p for name, p in self.module.named_parameters() if p.requires_grad}

    @cached_property
    def widths(self) -> tuple[int, ...]:
        """Number of entries of each trainable parameter."""
        return tuple(p.numel() for p in self.parameters.values())

    @cached_property
    def size(self) -> int:
        """Number of all trainable entries, and so of the numbers in a message."""
        return sum(self.widths)

    @property
    def device(self) -> torch.device:
        """Device on which the parameters are."""
        return next(iter(self.parameters.values())).device

    @property
    def weights(self) -> FloatArray:
        """Return all trainable parameters as one vector, shape (size,)."""
        return torch.cat([p.detach().double().flatten() for p in self.parameters.values()]).cpu().numpy()

    def load(self, weights: FloatArray) -> None:
        """Set the parameters to a flat vector of shape (size,), rounded to their type."""
        given = torch.from_numpy(np.ascontiguousarray(weights))
        with torch.no_grad():
            for parameter, part in zip(self.parameters.values(), given.split(self.widths), strict=True):
                parameter.copy_(part.reshape(parameter.shape))

    def losses(self, rows: Tensor, targets: Tensor) -> Tensor:
        """Return the loss of each example, shape (n,)."""
        per_example = self.loss(self.module(rows), targets)
        if per_example.shape != (rows.shape[0],):
            raise InvalidInput(
                f"the loss must give one number per example, shape ({rows.shape[0]},); got {tuple(per_example.shape)}: "
                "use reduction='none'"
            )
        return per_example

    def plain_sum(self, rows: Tensor, targets: Tensor) -> Tensor:
        """Return the sum of the examples' gradients, shape (size,), double precision."""
        gradients = torch.autograd.grad(self.losses(rows, targets).sum(), list(self.parameters.values()))
        return torch.cat([part.double().flatten() for part in gradients])

    def probabilities(self, weights: FloatArray, rows: FloatArray) -> FloatArray:
        """Return the softmax of the outputs, shape (n, classes); the module keeps these weights."""
        self.load(weights)
        with torch.no_grad():
            given = torch.from_numpy(rows).to(self.device, next(iter(self.parameters.values())).dtype)
            return self.module(given).double().softmax(1).cpu().numpy()


class Gradients(Protocol):
    """Interface for gradients of single examples; an example's gradient must not depend on the others."""

    def clipped_sum(self, rows: Tensor, targets: Tensor, bound: float, order: int) -> Tensor:
        """Return the sum of the examples' gradients, each clipped; shape (size,), double precision.

        A gradient whose norm is not finite contributes zero.

        Parameters
        ----------
        rows, targets : Tensor, first axis examples
            The examples.
        bound : float
            Largest norm of a gradient.
        order : {1, 2}
            Norm: 1 sums absolute values, 2 is Euclidean.
        """
        ...

    def each(self, rows: Tensor, targets: Tensor) -> Tensor:
        """Return the gradient of each example, shape (n, size), double precision."""
        ...

    def at_once(self, numbers: int) -> int:
        """Return how many examples fit in memory if it may hold ``numbers`` entries of gradients."""
        ...


def shrunk(norms: Tensor, bound: float) -> Tensor:
    """Return factors min(1, bound/norm) for a tensor of norms; 0 for a norm that is not finite."""
    return torch.from_numpy(shrink(norms.cpu().numpy(), bound)).to(norms.device)


def bounded(vectors: Tensor, bound: float, order: int) -> Tensor:
    """Clip the rows of a table, shape (n, numbers), in place to the norm ``bound``, and return it.

    A row whose norm is not finite becomes zero. ``order`` 1 sums absolute values, 2 is the Euclidean norm.
    """
    factors = shrunk(torch.linalg.vector_norm(vectors, ord=order, dim=1), bound)[:, None]
    vectors *= factors
    return vectors.masked_fill_(factors == 0.0, 0.0)


@dataclass(frozen=True, eq=False)
class FunctionalGradients:
    """Gradients by torch.func, vmap(grad) of one example's loss; an example cannot see another."""

    model: Model

    @cached_property
    def _of_all(self) -> Callable[..., dict[str, Tensor]]:
        module, loss = self.model.module, self.model.loss

        def alone(parameters: dict[str, Tensor], row: Tensor, target: Tensor) -> Tensor:
            return loss(functional_call(module, parameters, (row[None],)), target[None]).sum()

        return vmap(grad(alone), in_dims=(None, 0, 0), randomness="different")

    def each(self, rows: Tensor, targets: Tensor) -> Tensor:
        """Return the gradient of each example, shape (n, size), double precision."""
        detached = {name: p.detach() for name, p in self.model.parameters.items()}
        gradients = self._of_all(detached, rows, targets)
        return torch.cat([gradients[name].flatten(1).double() for name in detached], dim=1)

    def clipped_sum(self, rows: Tensor, targets: Tensor, bound: float, order: int) -> Tensor:
        """Return the sum of the gradients, each clipped to the norm ``bound``; see `Gradients.clipped_sum`."""
        return bounded(self.each(rows, targets), bound, order).sum(0)

    def at_once(self, numbers: int) -> int:
        """Return how many examples fit in memory if it may hold ``numbers`` entries of gradients."""
        return max(1, numbers // self.model.size)


@dataclass(frozen=True, eq=False)
class LayerGradients:
    """Gradients by rules of each layer, in one pass for the batch. The module must treat each example alone."""

    model: Model

    @cached_property
    def layers(self) -> list[nn.Module]:
        """Layers with trained parameters, in the order of `Model.parameters`."""
        trained = [m for m in self.model.module.modules() if any(p.requires_grad for p in m.parameters(recurse=False))]
        bad = next((m for m in trained if not supported(m)), None)
        if bad is not None:
            raise InvalidInput(f"there is no rule for the layer {bad}; use `norms = 'functional'`")
        return trained

    @cached_property
    def outer_only(self) -> bool:
        """True if all trained layers are dense, so that no example's gradient need be built."""
        return all(type(layer) is nn.Linear for layer in self.layers)

    def passes(self, rows: Tensor, targets: Tensor) -> list[LayerPass]:
        """Pass a batch forward and backward, and return each layer's gradient contribution."""
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
        """Return the gradient of each example, shape (n, size), double precision."""
        return torch.cat([part for layer in self.passes(rows, targets) for part in layer.each()], dim=1)

    def clipped_sum(self, rows: Tensor, targets: Tensor, bound: float, order: int) -> Tensor:
        """Return the sum of the gradients, each clipped to the norm ``bound``; see `Gradients.clipped_sum`."""
        layers = self.passes(rows, targets)
        norms = torch.stack([part.powers(order) for part in layers]).sum(0).pow(1.0 / order)
        factors = shrunk(norms, bound)
        return torch.cat([part.flatten() for layer in layers for part in layer.weighted(factors)])

    def at_once(self, numbers: int) -> int:
        """Return how many examples fit in memory if it may hold ``numbers`` entries of gradients.

        For dense layers it is 1024: no example's gradient is built.
        """
        return 1024 if self.outer_only else max(1, numbers // self.model.size)


def treats_examples_alone(module: nn.Module, loss: str | Loss) -> bool:
    """Return whether all parts of module and loss are known to treat each example alone and have rules."""
    if not isinstance(loss, str):
        return False
    # remove_duplicate=False lists a module as often as it is used
    parts = [part for _, part in module.named_modules(remove_duplicate=False)]
    own = [part for part in parts if any(True for _ in part.parameters(recurse=False))]
    row_by_row = all(
        (type(part) in ROW_BY_ROW and not getattr(part, "inplace", False) and getattr(part, "start_dim", 1) >= 1)
        or supported(part)
        for part in parts
    )
    parameters = [id(p) for part in own for p in part.parameters(recurse=False)]
    return row_by_row and len(set(parameters)) == len(parameters)
