"""Parameters by name: those of constructors, as scikit-learn expects them without importing it; and renamed ones."""

from __future__ import annotations

import inspect
import warnings
from collections.abc import Callable, Mapping
from functools import wraps
from typing import Any, ParamSpec, Self, TypeVar

from shuffledp.errors import InvalidInput, shown

P = ParamSpec("P")
Result = TypeVar("Result")


def renamed(now: Mapping[str, str], *, when: str | None = None) -> Callable[[Callable[P, Result]], Callable[P, Result]]:
    """Return a decorator by which a function accepts keywords of the last version, with a FutureWarning.

    Parameters
    ----------
    now : mapping of str to str
        Old names and their present ones. They are replaced together, so that two may change places.
    when : str, optional
        The old name without which none is replaced; for names that have another meaning now.

    Examples
    --------
    >>> @renamed({"epsilon0": "budgets"})
    ... def ask(*, budgets):
    ...     return budgets
    >>> ask(budgets=1.0)
    1.0
    """

    def accepting(function: Callable[P, Result]) -> Callable[P, Result]:
        @wraps(function)
        def called(*args: P.args, **words: P.kwargs) -> Result:
            given = [name for name in now if name in words] if when is None or when in words else []
            if given:
                name = function.__name__
                presents: dict[str, Any] = {}
                for word, value in words.items():
                    present = now.get(word, word)
                    if present in presents:
                        raise TypeError(f"{name}() got `{present}` twice: by this name and by the old one")
                    presents[present] = value
                changes = ", ".join(f"`{old}` is now `{now[old]}`" for old in given)
                warnings.warn(f"{name}(): the argument {changes}", FutureWarning, stacklevel=2)
                return function(*args, **presents)  # type: ignore[arg-type]
            return function(*args, **words)

        return called

    return accepting


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
