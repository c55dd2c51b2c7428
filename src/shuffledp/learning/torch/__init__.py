"""Shuffled private SGD for torch modules; needs the extra shuffledp[torch]."""

from shuffledp.errors import naming_the_extra

with naming_the_extra("shuffledp.learning.torch", "torch"):
    from shuffledp.learning.torch.trainer import ShuffledSGD

__all__ = ["ShuffledSGD"]
