"""skdice: scikit-learn estimators for text where the positive class is rare.

>>> import skdice
>>> "DiceTokenClassifier" in dir(skdice)
True
"""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

from skdice._version import __version__ as __version__

if TYPE_CHECKING:
    from skdice.estimators import *  # noqa: F403


# The estimators are loaded on first use: `import skdice` stays quick and imports no transformers.
def __getattr__(name: str) -> Any:
    if name == "__all__":
        return ["__version__", *importlib.import_module("skdice.estimators").__all__]
    if name[:1].isupper():  # the estimators are classes; a module is found by its import
        estimators = importlib.import_module("skdice.estimators")
        if name in estimators.__all__:
            return getattr(estimators, name)
    raise AttributeError(f"module 'skdice' has no attribute {name!r}")


def __dir__() -> list[str]:
    return sorted({*globals(), *__getattr__("__all__")})
