"""The learning rate and the number of epochs that a fit chooses where the user gives none.

Rates of full fine-tuning, by the width of the encoder:

- 384 (MiniLM), by a grid (``examples/paper/recipe.py``): 3e-4 for tags, 1e-4 for texts and pairs
  of two classes. Those of many classes, of which no class has many rows, need the higher rate.
- up to 512: the BERT miniatures (Turc et al. 2019) were tuned among 3e-4 to 3e-5, and ELECTRA-Small
  (Clark et al. 2020, Table 8) is trained at 3e-4. Not measured here.
- 768 and 1,024, by their authors, not measured here: BERT (Devlin et al. 2019, A.3) among
  2e-5 to 5e-5. RoBERTa (Liu et al. 2019, Table 10) among 1e-5 to 3e-5. ELECTRA (Clark et al. 2020)
  1e-4, and 5e-5 if large. XLNet (scripts of zihangdai/xlnet) 2e-5, and 2e-5 to 3e-5 if large.
  DeBERTa (scripts of microsoft/DeBERTa) 2e-5 to 3e-5, 7e-6 to 1e-5 if large; version 3 1.5e-5, and
  7e-6 if large. ModernBERT (its notebook on GLUE) 8e-5; for the large one we found none.

An adapter learns best at about ten times the rate: LoRA (Hu et al. 2022, Table 9) trains
RoBERTa-base at 5e-4 and RoBERTa-large at 2e-4 to 4e-4. That few rows need many epochs was found by
Mosbach et al. 2021 and Zhang et al. 2021.
"""

from __future__ import annotations

from typing import Any

# Width up to which it holds: rate of full fine-tuning, the same for texts of two classes, and
# rate with an adapter.
RATES: dict[float, tuple[float, float, float]] = {
    512: (3e-4, 1e-4, 1e-3),
    768: (5e-5, 5e-5, 5e-4),
    float("inf"): (2e-5, 2e-5, 3e-4),
}
# Of full fine-tuning at 768 and above, where the authors of an architecture use another.
RATES_OF_KINDS: dict[str, tuple[float, float]] = {
    **dict.fromkeys(("roberta", "xlm-roberta", "camembert"), (3e-5, 2e-5)),
    "deberta": (2e-5, 1e-5),
    "deberta-v2": (2e-5, 7e-6),  # version 3 too
    "electra": (1e-4, 5e-5),
    "modernbert": (8e-5, 2e-5),
    "xlnet": (2e-5, 2e-5),
}
RATE_OF_HEAD = 1e-2  # of a linear head on a frozen encoder
UPDATES = 500  # of a fit on few rows
MOST_UPDATES = 6000  # of a fit that makes no more than `LEAST_EPOCHS`
LEAST_EPOCHS, MOST_EPOCHS = 3, 30
# Of texts of two classes: rows of the rarer one that all epochs see together. More passes learn
# wrong labels by heart, and gain little where labels are right (`examples/paper/length.py`).
RARE_ROWS = 100
LEAST_UPDATES = 40  # at `RATE_OF_LEAST`, and more at a lower rate
RATE_OF_LEAST = 1e-4


def choose_rate(
    width: int,
    frozen: Any = "none",
    *,
    kind: str = "bert",
    two_classes: bool = False,
    adapted: bool = False,
    constant: bool = False,
) -> float:
    """The peak learning rate for an encoder of this width.

    Parameters
    ----------
    width : int
        Its hidden size.
    frozen : {"none", "embeddings", "encoder"} or int, default="none"
    kind : str, default="bert"
        The architecture: ``model_type`` of its configuration.
    two_classes : bool, default=False
        Whether each text or pair has one of two labels.
    adapted : bool, default=False
        Whether an adapter is trained in place of the encoder's weights.
    constant : bool, default=False
        Whether the rate does not fall, as in `partial_fit`: it is then lower.

    Examples
    --------
    >>> from skdice.engine.recipe import choose_rate
    >>> choose_rate(384), choose_rate(768), choose_rate(768, adapted=True)
    (0.0003, 5e-05, 0.0005)
    >>> choose_rate(768, kind="xlnet"), choose_rate(384, two_classes=True)
    (2e-05, 0.0001)
    """
    of_many, of_two, of_adapter = next(rates for most, rates in RATES.items() if width <= most)
    of_weights = of_two if two_classes else of_many
    if width > 512 and kind in RATES_OF_KINDS:
        of_weights = RATES_OF_KINDS[kind][width > 768]
    rate = RATE_OF_HEAD if frozen == "encoder" else of_adapter if adapted else of_weights
    return float(f"{rate / 3:.1g}") if constant else rate


def is_adam(optimizer: Any) -> bool:
    """Return True if an optimiser is one that the rates are for: Adam or one of its kin."""
    name = getattr(getattr(optimizer, "func", optimizer), "__name__", "")
    return "adam" in name.lower()


def choose_epochs(
    n_rows: int, rows_of_update: int, n_rare: float | None = None, rate: float = RATE_OF_LEAST
) -> int:
    """The number of epochs for so many rows.

    They make about `UPDATES` updates together. No row is seen more than `MOST_EPOCHS` times, and
    each `LEAST_EPOCHS` times unless those make more than `MOST_UPDATES` updates. With `n_rare`
    they end once `RARE_ROWS` rows of the rarer class are seen, but not before `LEAST_EPOCHS`, or
    before the updates that a fit needs at this rate.

    Parameters
    ----------
    n_rows : int
        Training rows (windows), without rows held out.
    rows_of_update : int
        Rows of one update, over all processes.
    n_rare : float or None, default=None
        Rows of the rarer of two classes.
    rate : float, default=1e-4
        The peak learning rate.

    Examples
    --------
    >>> from skdice.engine.recipe import choose_epochs
    >>> [choose_epochs(n, 32) for n in (10, 100, 1_000, 10_000, 100_000, 1_000_000)]
    [30, 30, 16, 3, 2, 1]
    >>> [choose_epochs(n, 32, n_rare=n / 10) for n in (10, 100, 1_000, 10_000, 100_000)]
    [30, 10, 3, 3, 2]
    """
    updates = max(-(-n_rows // rows_of_update), 1)  # of an epoch
    few, many = UPDATES / updates, min(LEAST_EPOCHS, MOST_UPDATES / updates)
    if n_rare is not None:
        least = LEAST_UPDATES * max(RATE_OF_LEAST / rate, 1)
        few = min(few, max(RARE_ROWS / max(n_rare, 1), least / updates))
    return max(round(min(max(few, many), MOST_EPOCHS)), 1)
