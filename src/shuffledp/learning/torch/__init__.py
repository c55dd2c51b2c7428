"""Shuffled private SGD for torch modules; needs the extra shuffledp[torch]."""

from shuffledp.learning.torch.trainer import ShuffledSGD

__all__ = ["ShuffledSGD"]
