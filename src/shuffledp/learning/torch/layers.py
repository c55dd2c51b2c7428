# pyright: reportMissingImports=false, reportUnknownParameterType=false
"""One layer's part in the gradients of single examples, from what it was given and the slopes at its output.

A dense layer on one vector per example has the outer product of its input and its slope as gradient: the norm is a
product of two norms, and the clipped sum one matrix product (Goodfellow 2015, "Efficient per-example gradient
computations"). Other layers add up several such products per example, whose terms may cancel; there the gradient of
each example is built, layer by layer, so that the norm belongs to the very numbers that are added.

All of it is double precision, whatever the module computes in: then a clipped sum is as exact as the sensitivity
counts (`shuffledp.learning.clipping.Clipping.sensitivity`).
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Protocol

import torch
from torch import Tensor, nn
from torch.nn import functional

from shuffledp.errors import InvalidInput
from shuffledp.learning.network import LARGEST


class LayerPass(Protocol):
    """What one layer contributes for a batch of n examples; parameters in the layer's own order."""

    def powers(self, order: int) -> Tensor:
        """Sum over the layer's numbers of their absolute value to the power ``order`` (1 or 2), shape (n,)."""
        ...

    def weighted(self, factors: Tensor) -> list[Tensor]:
        """Sum over examples of factor times gradient, one tensor per parameter; an example of factor 0 gives 0."""
        ...

    def each(self) -> list[Tensor]:
        """Gradient of each example, shape (n, numbers of the parameter), one tensor per parameter."""
        ...


@dataclass(frozen=True)
class OuterPass:
    """A dense layer on one vector per example: gradients are outer products and are never built for norms and sums.

    Parameters
    ----------
    inputs : Tensor, shape (n, inputs)
        What the layer was given, double precision.
    slopes : Tensor, shape (n, outputs)
        Derivative of each example's own loss by the layer's output.
    bias : bool
        Whether the layer has one: one more input, constant 1.
    """

    inputs: Tensor
    slopes: Tensor
    bias: bool

    def powers(self, order: int) -> Tensor:
        """See `LayerPass.powers`: the sum over a product is the product of the sums."""
        given, slope = self.inputs.abs().pow(order).sum(1), self.slopes.abs().pow(order).sum(1)
        fine = (given <= LARGEST**order) & (slope <= LARGEST**order)
        return torch.where(fine, (given + float(self.bias)) * slope, torch.inf)

    def weighted(self, factors: Tensor) -> list[Tensor]:
        """See `LayerPass.weighted`."""
        gone = (factors == 0.0)[:, None]
        scaled = (self.slopes * factors[:, None]).masked_fill_(gone, 0.0)
        whole = scaled.T @ self.inputs.masked_fill(gone, 0.0)
        return [whole, scaled.sum(0)] if self.bias else [whole]

    def each(self) -> list[Tensor]:
        """See `LayerPass.each`."""
        products = torch.einsum("no,ni->noi", self.slopes, self.inputs).flatten(1)
        return [products, self.slopes] if self.bias else [products]


@dataclass(frozen=True)
class BuiltPass:
    """A layer whose gradients of single examples were built.

    Parameters
    ----------
    gradients : tuple of Tensor
        One per parameter, shape (n, numbers of the parameter), double precision.
    """

    gradients: tuple[Tensor, ...]

    def powers(self, order: int) -> Tensor:
        """See `LayerPass.powers`."""
        parts = [g.abs().pow(order).sum(1) for g in self.gradients]
        return torch.stack(parts).sum(0)

    def weighted(self, factors: Tensor) -> list[Tensor]:
        """See `LayerPass.weighted`."""
        gone = (factors == 0.0)[:, None]
        return [factors @ g.masked_fill(gone, 0.0) for g in self.gradients]

    def each(self) -> list[Tensor]:
        """See `LayerPass.each`."""
        return list(self.gradients)


def _built(layer: nn.Module, weight: Tensor, bias: Tensor) -> BuiltPass:
    """Build the pass of a layer whose parameters are a weight and, unless left out, a bias."""
    return BuiltPass((weight.flatten(1), bias.flatten(1)) if _has_bias(layer) else (weight.flatten(1),))


def _has_bias(layer: nn.Module) -> bool:
    return getattr(layer, "bias", None) is not None


def linear(layer: nn.Linear, given: Tensor, slopes: Tensor) -> LayerPass:
    """Dense: an outer product, or a sum of them over positions."""
    x, d = given.double(), slopes.double()
    if x.ndim == 2:
        return OuterPass(x, d, _has_bias(layer))
    x, d = x.reshape(x.shape[0], -1, x.shape[-1]), d.reshape(d.shape[0], -1, d.shape[-1])
    return _built(layer, torch.einsum("nto,nti->noi", d, x), d.sum(1))


def convolution(layer: nn.Conv2d, given: Tensor, slopes: Tensor) -> LayerPass:
    """Convolution of images: the patches of the input take the place of positions."""
    around = layer.padding if not isinstance(layer.padding, str) else 0  # `supported` refuses words
    patches = functional.unfold(given.double(), layer.kernel_size, layer.dilation, around, layer.stride)
    d = slopes.double().flatten(2)
    return _built(layer, torch.einsum("nol,nkl->nok", d, patches), d.sum(2))


def embedding(layer: nn.Embedding, given: Tensor, slopes: Tensor) -> LayerPass:
    """Table of vectors: each token's slope goes to its row."""
    n, rows, width = given.shape[0], layer.num_embeddings, layer.embedding_dim
    tokens = given.reshape(n, -1) + torch.arange(n, device=given.device)[:, None] * rows
    d = slopes.double().reshape(-1, width)
    table = torch.zeros(n * rows, width, dtype=torch.float64, device=d.device).index_add_(0, tokens.flatten(), d)
    table = table.reshape(n, rows, width)
    if layer.padding_idx is not None:
        table[:, layer.padding_idx] = 0.0
    return BuiltPass((table.flatten(1),))


def layer_norm(layer: nn.LayerNorm, given: Tensor, slopes: Tensor) -> LayerPass:
    """Normalisation within an example: scale and shift only."""
    if given.ndim <= len(layer.normalized_shape):
        raise InvalidInput(f"{layer} would normalise over the examples of a batch; normalise within an example")
    normal = functional.layer_norm(given.double(), layer.normalized_shape, None, None, layer.eps)
    shape = (given.shape[0], -1, *layer.normalized_shape)
    d = slopes.double()
    return _built(layer, (d * normal).reshape(shape).sum(1), d.reshape(shape).sum(1))


def group_norm(layer: nn.GroupNorm, given: Tensor, slopes: Tensor) -> LayerPass:
    """Normalisation within an example, by groups of channels."""
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
"""Layers with parameters whose single gradients come from one pass through the whole batch."""

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
    """Whether a layer with parameters has a rule here, in the way it is set up."""
    if type(layer) not in LAYERS:
        return False
    trained = {parameter.requires_grad for parameter in layer.parameters(recurse=False)}
    return len(trained) <= 1 and _PLAIN.get(type(layer), lambda _: True)(layer)


_PLAIN: dict[type[nn.Module], Callable[[Any], bool]] = {
    nn.Conv2d: lambda m: m.groups == 1 and m.padding_mode == "zeros" and not isinstance(m.padding, str),
    nn.Embedding: lambda m: m.max_norm is None and not m.scale_grad_by_freq and not m.sparse,
}
"""Set up so that the rule holds."""
