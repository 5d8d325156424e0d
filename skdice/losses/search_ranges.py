"""Search spaces of losses, independent of any search library."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, NamedTuple


class Range(NamedTuple):
    """Numbers that a search may try for a loss's parameter.

    Parameters
    ----------
    low, high : float
    log : bool, default=False
        Search on a logarithmic scale.

    Examples
    --------
    >>> from skdice.losses import TverskyLoss
    >>> from skdice.losses.search_ranges import Range
    >>> TverskyLoss.search_space()["alpha"] == Range(0.1, 0.9)
    True
    """

    low: float
    high: float
    log: bool = False


@dataclass(frozen=True)
class OneMinus:
    """A parameter that is one minus another, so that their sum stays one.

    Parameters
    ----------
    name : str
        The other parameter, as in ``loss__alpha``.

    Examples
    --------
    >>> from skdice.losses.search_ranges import OneMinus
    >>> print(OneMinus("loss__alpha")({"loss__alpha": 0.3}))
    0.7
    """

    name: str

    def __call__(self, params: Mapping[str, Any]) -> float:
        """One minus the other parameter, among values by name."""
        if not isinstance(params, Mapping) or self.name not in params:
            raise ValueError(f"params={params!r:.80} must be a dict that holds {self.name!r}")
        return 1.0 - params[self.name]


Ranges = dict[str, Range | OneMinus]  # by parameter
