# pyright: reportMissingImports=false, reportUnknownParameterType=false
"""The clients' side of a round with a torch module: gradients and clipping on the module's device, noise from here."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from shuffledp.learning.rounds import Sender
from shuffledp.learning.sketches import Sketcher
from shuffledp.learning.torch.gradients import Gradients, Model, bounded
from shuffledp.numerics.interval import FloatArray

_MANY = 64
"""Clients with more examples than this are handled one by one; the others together."""
_NUMBERS_AT_ONCE = {"cpu": 1 << 20, "cuda": 1 << 25}
"""Numbers of single gradients that are in memory together, by kind of device."""


@dataclass(frozen=True, eq=False)
class TorchSender(Sender):
    """A `Sender` whose gradients are those of a torch module; grid, noise and plan are the same.

    Parameters
    ----------
    model : Model
        The module; also given as ``network``.
    gradients : Gradients
        Of single examples.
    rows, targets : Tensor, first axis examples
        In place of ``features`` and ``labels``, on any device; parts are moved to the module's.
    """

    model: Model
    gradients: Gradients
    rows: Tensor
    targets: Tensor

    def gradient(self, client: int, weights: FloatArray) -> FloatArray:
        """One client's clipped average gradient, shape (size,)."""
        self.model.load(weights)
        return self._bounded(client).cpu().numpy()

    def clipped(self, clients: NDArray[np.int64], weights: FloatArray) -> Tensor:
        """Several clients' clipped averages, shape (clients, size); clients of few examples together."""
        self.model.load(weights)
        if (self.clients.sizes[clients] > _MANY).any():
            return torch.stack([self._bounded(int(client)) for client in clients])
        return self._bounded_together(clients)

    def rounded(self, clients: NDArray[np.int64], weights: FloatArray) -> NDArray[np.int64]:
        """Several clients' messages before noise, shape (clients, size)."""
        whole = self.clipped(clients, weights)
        whole *= torch.from_numpy(self.plan.gains[clients] / self.plan.grid).to(whole.device)[:, None]
        return whole.round_().cpu().numpy().astype(np.int64)

    @property
    def at_once(self) -> int:
        """How many clients' messages may be in memory together."""
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
            found = self.gradients.each(*self._examples(examples[start : start + chunk]))
            if clip.clipped == "examples":
                found = bounded(found, clip.bound, clip.order)
            total.index_add_(0, owner[start : start + chunk], found)
        return self._finished(total, sizes)

    def _finished(self, totals: Tensor, sizes: NDArray[np.int64]) -> Tensor:
        """Averages over each client's examples, clipped as wholes if that was asked for."""
        totals /= torch.from_numpy(sizes).to(totals.device)[:, None]
        if self.clipping.clipped == "message":
            totals = bounded(totals, self.clipping.bound, self.clipping.order)
        return totals


@dataclass(frozen=True, eq=False)
class TorchSketcher(Sketcher):
    """A `Sketcher` whose gradients are those of a torch module; seeds, bits and plan are the same.

    Parameters
    ----------
    sender : TorchSender
        Gives the clipped gradients; its noise is not used.
    """

    sender: TorchSender

    @property
    def model(self) -> Model:
        """The module that is trained."""
        return self.sender.model

    def _projected(
        self, clients: NDArray[np.int64], weights: FloatArray, z: NDArray[np.float32]
    ) -> tuple[FloatArray, FloatArray]:
        """See `Sketcher._projected`: a gradient that is not finite is zero here, so its bit is fair."""
        sent = self.sender.clipped(clients, weights).cpu().numpy()
        return np.einsum("ij,ij->i", z, sent), np.linalg.norm(sent, axis=1)
