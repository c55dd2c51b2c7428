"""Constructor parameters as scikit-learn expects them, without importing it: read and changed by name."""

from __future__ import annotations

import inspect
from typing import Any, Self

from shuffledp.errors import InvalidInput, shown


class Parameters:
    """Base of classes with scikit-learn's interface: their parameters are the arguments of their constructor.

    A subclass stores each argument under its own name, unchanged and unchecked; `fit` checks them. So
    `sklearn.base.clone`, grid searches and pipelines accept its instances as estimators.
    """

    @classmethod
    def parameter_names(cls) -> list[str]:
        """Return the names of the constructor's arguments, in order."""
        return list(inspect.signature(cls).parameters)

    def get_params(self, deep: bool = True) -> dict[str, Any]:
        """Return the parameters of this estimator by name, as scikit-learn's method of that name does.

        Parameters
        ----------
        deep : bool
            Accepted for scikit-learn and without effect: there are no nested estimators.

        Returns
        -------
        dict
            The value of each parameter as it was given, by its name.
        """
        del deep
        return {name: getattr(self, name) for name in self.parameter_names()}

    def set_params(self, **parameters: Any) -> Self:
        """Change parameters by name and return this estimator.

        Returns
        -------
        self
            This estimator.

        Raises
        ------
        InvalidInput
            If some name is no parameter; nothing is changed then.
        """
        names = self.parameter_names()
        for name in parameters:
            if name not in names:
                raise InvalidInput(f"{type(self).__name__} has no parameter {shown(name)}; it has {', '.join(names)}")
        for name, value in parameters.items():
            setattr(self, name, value)
        return self

    def __repr__(self) -> str:
        """Only the parameters that are not the default."""
        defaults = {name: p.default for name, p in inspect.signature(type(self)).parameters.items()}
        changed = [f"{n}={v!r}" for n, v in self.get_params().items() if repr(v) != repr(defaults[n])]
        return f"{type(self).__name__}({', '.join(changed)})"
