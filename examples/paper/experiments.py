"""The data sets, rows and settings of each table.

A row has one setting, or several that compete on the development rows with seed 0. The winner runs
with every seed, and only its runs are in the tables. A rival has four settings: of gamma, K or tau,
or of the learning rate for cross-entropy with and without a sampler. The overlap losses have one
setting, their default.

In the table of the rivals, all other rows use the learning rate that cross-entropy chose. In the
paper's tables every row uses the rate in `SETTINGS`. Readers and answerers use each loss with its
default, except the answerers' `weighted_ce`, which has four settings.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import Any

RATES = (1e-4, 3e-4, 3e-5, 1e-3)

# Epochs and sentences (texts, questions) in a batch, for every row alike. Most data sets are
# trained on some of their rows, drawn once, so that two cores do a fit in minutes.
SETTINGS: dict[str, dict[str, Any]] = {
    "wnut17": {"max_epochs": 3, "batch_size": 16, "lr": 3e-4, "train_rows": 1700},
    "wnut17_all": {"max_epochs": 3, "batch_size": 16, "lr": 3e-4},
    "bc5cdr": {"max_epochs": 3, "batch_size": 16, "lr": 3e-4, "train_rows": 1000},
    "weibo": {"max_epochs": 3, "batch_size": 16, "lr": 3e-4},
    "ud_en": {"max_epochs": 2, "batch_size": 16, "lr": 3e-4, "train_rows": 2000},
    "ud_zh": {"max_epochs": 2, "batch_size": 16, "lr": 3e-4, "train_rows": 1500},
    "mrpc": {"max_epochs": 3, "batch_size": 16, "lr": 1e-4, "train_rows": 1500},
    "sms": {"max_epochs": 2, "batch_size": 32, "lr": 1e-4},
    "sms_rare": {"max_epochs": 3, "batch_size": 16, "lr": 1e-4, "train_rows": 600},
    "clinc_oos": {"max_epochs": 2, "batch_size": 16, "lr": 1e-4, "train_rows": 3500},
    "clinc_intents": {"max_epochs": 5, "batch_size": 16, "lr": 3e-4, "train_rows": 3000},
    "squad1": {"max_epochs": 3, "batch_size": 16, "lr": 3e-4},
    "squad2": {"max_epochs": 3, "batch_size": 16, "lr": 3e-4, "train_rows": 1500},
}


@dataclass(frozen=True)
class Row:
    """A row of a table.

    Attributes
    ----------
    label : str
    candidates : list of dict
        Parameters of the estimator; several compete on the development rows.
    decision : {"plain", "tuned"}
        Tuned adds a bias for each class, for a reader a threshold, chosen on the development rows.
    sampler : str or None
        "over" or "under".
    reader : bool
        Tag by asking (`DiceMRCTagger`).
    train_set : str or None
        One of the five of the paper's Table 8.
    """

    label: str
    candidates: list[dict[str, Any]]
    decision: str = "plain"
    sampler: str | None = None
    reader: bool = False
    train_set: str | None = None


@dataclass(frozen=True)
class Experiment:
    """A table: which rows on which data sets.

    Attributes
    ----------
    title : str
    tasks : list of str
    rows : list of Row
    measure : {"f1", "accuracy"}
    rate_of_ce : bool
        Rows without a learning rate of their own take the one that cross-entropy chose.
    missing : dict
        What the paper has and we have not, and what would run it; of a data set that we have, why
        not all of it has run.
    """

    title: str
    tasks: list[str]
    rows: list[Row]
    measure: str = "f1"
    rate_of_ce: bool = False
    missing: dict[str, str] = field(default_factory=dict)


def losses(*names: str, **options: Any) -> list[Row]:
    """One row a loss, with its defaults."""
    return [Row(name, [{"loss": name}], **options) for name in names]


def tuned(row: Row) -> Row:
    """The row with a tuned decision, which costs no fit of its own."""
    return replace(row, label=f"{row.label}, tuned", decision="tuned")


def at_rates(row: Row) -> Row:
    """The row with a choice of learning rates."""
    rated = [{**params, "lr": lr} for params in row.candidates for lr in RATES]
    return replace(row, candidates=rated)


TUNED = tuned(*losses("ce"))
# What costs no more than another fit, tuned on the development rows. Focal loss's default gamma, 2,
# is the first of four.
FOCAL = Row(
    "focal",
    [{"loss": "focal"}, *({"loss": "focal", "loss__gamma": gamma} for gamma in (1.0, 0.5, 5.0))],
)
WEIGHTED = Row("weighted_ce", [{"loss": "weighted_ce", "loss__K": float(K)} for K in (1, 2, 5, 10)])
# On balanced rows every tau is the same fit, and of equals the first is taken.
TAUS = (0.5, 0.25, 1.0, 0.75)
LOG_PRIOR = Row("ce with log-prior", [{"loss": "ce", "loss__tau": tau} for tau in TAUS])
PRIOR = tuned(LOG_PRIOR)
OVERLAP = losses("ce_dice", "dice", "tversky", "dsc")
# The paper's own rows.
PAPER = [*losses("ce"), FOCAL, *losses("dice", "dsc")]
SAMPLED = [
    Row("ce, over-sampling", [{"loss": "ce"}], sampler="over"),
    Row("ce, under-sampling", [{"loss": "ce"}], sampler="under"),
]
CE, *SAMPLED_AT_RATES = map(at_rates, (*losses("ce"), *SAMPLED))
RIVALS = [
    CE,
    tuned(CE),
    WEIGHTED,
    FOCAL,
    PRIOR,
    *SAMPLED_AT_RATES,
    *OVERLAP,
    *map(tuned, (WEIGHTED, FOCAL, *SAMPLED_AT_RATES, *OVERLAP)),
]
READING = [
    Row(f"reading, {name}", [{"loss": name}], reader=True)
    for name in ("ce", "focal", "dice", "dsc")
]

# The budget curve: each budget is a fit of its own, with its own schedule, scored as it ends. Every
# data set has the rate and rows of `SETTINGS`, but for WNUT17's rows.
BUDGETS = (1, 2, 4, 8, 16)
BUDGET_SETTINGS = {"wnut17": {"train_rows": 1500}}


def at_budgets(row: Row, budgets: tuple[int, ...] = BUDGETS) -> list[Row]:
    """The row once for each number of epochs, the last weights kept."""
    return [
        replace(
            row,
            label=f"{row.label}, {epochs} epochs",
            candidates=[{**p, "max_epochs": epochs, "keep": "last"} for p in row.candidates],
        )
        for epochs in budgets
    ]


CURVES = [
    *losses("ce", "focal", "ce_dice", "dsc"),
    Row("ce, twice the rate", [{"loss": "ce", "faster": 2}]),
]
# The same losses from another start of the head's bias.
FROM_PRIOR = [
    Row(f"{name} from the log-prior", [{"loss": name, "start": "log_prior"}])
    for name in ("ce", "focal", "ce_dice", "dsc")
]
FIVE_SETS = ("original", "+ positive", "+ negative", "- negative", "+ positive & negative")
BERT = "--backbone bert-base-chinese"
QQP = "--text-columns question1,question2 --label-column is_duplicate"

EXPERIMENTS: dict[str, Experiment] = {
    "budget": Experiment(
        "F1 against the length of training",
        ["wnut17", "sms_rare", "clinc_oos", "bc5cdr"],
        [made for budget in BUDGETS for row in CURVES for made in at_budgets(row, (budget,))],
    ),
    "budget_all": Experiment(
        "F1 against the length of training, on all rows of WNUT17",
        ["wnut17_all"],
        [
            made
            for budget in BUDGETS[:4]
            for row in CURVES[:4]
            for made in at_budgets(row, (budget,))
        ],
    ),
    "starts": Experiment(
        "The budget curve with the head's bias at the log-prior",
        ["wnut17", "sms_rare", "clinc_oos", "bc5cdr"],
        [made for b in BUDGETS[:4] for row in FROM_PRIOR for made in at_budgets(row, (b,))],
    ),
    "rivals": Experiment(
        "Overlap losses by default beside their cheap rivals, which are tuned on development rows",
        ["wnut17", "clinc_oos", "sms_rare", "bc5cdr"],
        RIVALS,
        rate_of_ce=True,
    ),
    "table3": Experiment(
        "Table 3: part-of-speech tagging, Chinese",
        ["ud_zh"],
        [*PAPER, TUNED, WEIGHTED, PRIOR],
        missing={
            "CTB5, CTB6": "licensed by the LDC",
            "a Chinese backbone": f"`run.py table3 --data FOLDER {BERT}`, then "
            f"`report.py {BERT} --out ANOTHER`",
        },
    ),
    "table4": Experiment(
        "Table 4: part-of-speech tagging, English",
        ["ud_en"],
        [*PAPER, TUNED, WEIGHTED, PRIOR],
        missing={"WSJ": "licensed by the LDC", "Ritter's tweets": "not at hand"},
    ),
    "table5": Experiment(
        "Table 5: named entity recognition, as tagging and as reading",
        ["wnut17", "bc5cdr", "weibo"],
        [
            *PAPER,
            *(TUNED, WEIGHTED, PRIOR, *SAMPLED),
            *READING,
            *map(tuned, READING),
        ],
        missing={
            "weibo": "the vocabulary of the default backbone has few Chinese characters; "
            f"`run.py table5 --data FOLDER --tasks weibo {BERT}`, then "
            f"`report.py {BERT} --out ANOTHER`",
            "CoNLL 2003, OntoNotes 4 and 5, MSRA": "licensed; for any CoNLL file `skdice compare "
            "--task tagging --train train.conll --test test.conll`, and `--task mrc-ner` to read",
        },
    ),
    "table6": Experiment(
        "Table 6: reading comprehension",
        ["squad1", "squad2"],
        # No decision or log-prior to tune: the threshold of no answer is tuned in every row.
        [*losses("ce", "focal", "dice", "dsc"), WEIGHTED],
        missing={
            "SQuAD 1.1 and 2.0 in full, Quoref": "not at hand; `skdice compare --task qa "
            "--train train-v2.0.json --test dev-v2.0.json`",
        },
    ),
    "table7": Experiment(
        "Table 7: paraphrase identification",
        ["mrpc"],
        [*PAPER, TUNED, WEIGHTED, PRIOR, *SAMPLED],
        missing={"QQP": f"not at hand; `skdice compare --train qqp.tsv {QQP}`"},
    ),
    "table8": Experiment(
        "Table 8: training sets of other sizes and balances",
        ["clinc_oos"],
        [
            replace(row, label=f"{row.label}, {chosen}", train_set=chosen)
            for row in (*PAPER, TUNED, tuned(FOCAL), WEIGHTED, PRIOR)
            for chosen in FIVE_SETS
        ],
        missing={"QQP": "not at hand"},
    ),
    "table9": Experiment(
        "Table 9: a task judged by accuracy",
        ["clinc_intents"],
        [*PAPER, WEIGHTED, LOG_PRIOR, *SAMPLED],
        measure="accuracy",
        missing={"SST-2, SST-5": "not at hand; `skdice compare --train sst2.tsv`"},
    ),
    "table10": Experiment(
        "Table 10: Tversky's alpha, beta = 1 - alpha",
        ["wnut17", "sms_rare"],
        [
            Row(
                f"{alpha:.1f}",
                [
                    {
                        "loss": "tversky",
                        "loss__alpha": round(alpha, 1),
                        "loss__beta": round(1 - alpha, 1),
                    }
                ],
            )
            for alpha in (0.1, 0.2, 0.3, 0.4, 0.5, 0.6, 0.7, 0.8, 0.9)
        ],
    ),
}
