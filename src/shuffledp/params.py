"""Parameters as scikit-learn expects them, without importing it: set in the constructor, read and changed by name."""

from __future__ import annotations

import inspect
from typing import Any, Self

from shuffledp.errors import InvalidInput, shown


class Parameters:
    """Base of the sklearn-shaped classes: their parameters are the arguments of their constructor.

    A subclass stores each argument under its own name, unchanged and unchecked; `fit` checks them. So
    `sklearn.base.clone`, grid searches and pipelines take it as one of theirs.
    """

    @classmethod
    def parameter_names(cls) -> list[str]:
        """Names of the constructor's arguments, in order."""
        return list(inspect.signature(cls).parameters)

    def get_params(self, deep: bool = True) -> dict[str, Any]:
        """Parameters by name.

        Parameters
        ----------
        deep : bool
            For scikit-learn; there are no nested estimators here.

        Returns
        -------
        dict
            Each as it was given.
        """
        del deep
        return {name: getattr(self, name) for name in self.parameter_names()}

    def set_params(self, **parameters: Any) -> Self:
        """Change parameters by name.

        Returns
        -------
        self

        Raises
        ------
        InvalidInput
            If there is no such parameter; nothing is changed then.
        """
        known = self.parameter_names()
        for name in parameters:
            if name not in known:
                raise InvalidInput(f"{type(self).__name__} has no parameter {shown(name)}; it has {', '.join(known)}")
        for name, value in parameters.items():
            setattr(self, name, value)
        return self

    def __repr__(self) -> str:
        """Only the parameters that are not the default."""
        defaults = {name: p.default for name, p in inspect.signature(type(self)).parameters.items()}
        changed = [f"{n}={v!r}" for n, v in self.get_params().items() if repr(v) != repr(defaults[n])]
        return f"{type(self).__name__}({', '.join(changed)})"
