"""The tasks, the formats of annotation tools, and names that are gone: a line for each.

None is imported here, so that the command line can list them before torch is loaded.
"""

from __future__ import annotations

from importlib import import_module
from typing import Any, NoReturn

# What a file may hold, as in ``--task``.
TASKS = {
    "classification": "classification.Classification",
    "entities": "entities.Entities",
    "mrc-ner": "mrc_ner.MRC",
    "multi-span-qa": "multi_span_qa.MultiSpanReading",
    "qa": "qa.Reading",
    "tagging": "tagging.Tagging",
}
FORMATS = {
    "bioc": "bioc.BioC",
    "brat": "brat.Brat",
    "conll": "conll.Conll",
    "doccano": "doccano.Doccano",
    "jsonl": "jsonl.JsonLines",
    "label-studio": "label_studio.LabelStudio",
    "prodigy": "prodigy.Prodigy",
    "pubtator": "pubtator.PubTator",
    "spacy": "spacy.Spacy",
    "webanno": "webanno.WebAnno",
}
# The formats that are read alone, and what makes their files.
NOT_WRITTEN = {
    "bioc": "the package bioc writes it",
    "pubtator": "the package bioc writes it",
    "spacy": "`python -m spacy convert --converter ner` reads the columns of 'conll'",
    "webanno": "INCEpTION imports 'conll' as CoNLL 2002, with a space for each tab",
}
TASK_NAMES, TOOLS = tuple(TASKS), tuple(FORMATS)
WRITTEN = tuple(name for name in FORMATS if name not in NOT_WRITTEN)


def made(folder: str, place: str) -> Any:
    """An object of a class of this table, which stands in a package of skdice."""
    module, _, name = place.partition(".")
    return getattr(import_module(f"skdice.{folder}.{module}"), name)()


# Public names that are gone, and what takes their place.
OLD_NAMES = {
    "skdice.datasets": {
        "read_mrc_ner": "read_dataset(path, task='mrc-ner') has X, y and queries",
    },
    "skdice.exceptions": {
        old: f"{now} takes its place"
        for now, names in {
            "CollapseWarning": ("BackgroundWarning", "LiteralLossWarning"),
            "DataWarning": (
                *("FewRowsWarning", "LayersWarning", "MissingLabelWarning"),
                *("SwappedPairWarning", "ValidationWarning"),
            ),
            "DecisionWarning": (
                *("PriorShiftWarning", "UnkeptBoundWarning", "UnweightedScoreWarning"),
            ),
            "ServingWarning": (
                *("CheckpointWarning", "LostParameterWarning", "UnnamedLabelsWarning"),
            ),
            "SkippedRowsWarning": ("UnwrittenWarning",),
        }.items()
        for old in names
    },
    "skdice.export": {
        "with_onnx": "onnxruntime.InferenceSession(path).run(None, inputs) gives the logits",
    },
    "skdice.inspection": {
        "ClassFrequencyDisplay": "examples/entities_and_answers/plot_rare_types.py draws it",
        "LossGradientDisplay": "examples/losses/plot_loss_slopes.py draws it",
        "TverskySweepDisplay": "examples/losses/plot_loss_slopes.py draws it",
        "reading_imbalance": "an answer is two positives, its start and end, among the tokens",
        "span_hits": "compare predict_spans with the true spans, as in "
        "[(span[:3] in there, span.score) for there, row in zip(y, spans) for span in row]",
    },
    "skdice.losses": {
        **dict.fromkeys(
            (
                *("functional", "asymmetric_loss", "dice_loss", "dsc_loss", "focal_loss"),
                *("mom_loss", "sigmoid_f1_loss", "tversky_loss", "weighted_cross_entropy"),
            ),
            "call the class, as in DiceLoss(smooth=0.1)(logits, target)",
        ),
        "HeadsLoss": "DiceMRCTagger makes it from the losses that it is given",
        "SpanEndsLoss": "DiceQuestionAnswerer makes it from the loss that it is given",
        "OneMinus": "give LossSearchCV a function, lambda params: 1 - params['loss__alpha']",
        "Range": "search_space() holds them, as in DiceLoss.search_space()['smooth'].low",
        "resolve_loss": "LOSSES has the classes by name, as in LOSSES['dice']()",
    },
    "skdice.metrics": {
        "ClassScorer": "take class_f1_scorer, class_precision_scorer or class_recall_scorer; for "
        "another positive class make_scorer(f1_score, pos_label=...) of scikit-learn",
        **{
            f"{name}_scorer": f"take make_scorer({score}) of scikit-learn"
            for name, score in {
                "answer_exact_match": "answer_exact_match_score",
                "answer_f1": "answer_f1_score",
                "span_macro_f1": "span_f1_score, average='macro'",
                "span_precision": "span_precision_score",
                "span_recall": "span_recall_score",
                "token_f1": "span_f1_score, scheme='plain'",
            }.items()
        },
        "token_f1_score": "span_f1_score(y_true, y_pred, scheme='plain') is the same",
        "convert_scheme": "import it from skdice.tags",
        "normalize_answer": "answer_exact_match_score compares answers without case and signs",
        "positive_class": "give pos_label, or read positive_ of a fitted classifier",
    },
    "skdice.model_selection": {
        "OneMinus": "give a function of the other parameters, as in "
        '{"loss__beta": lambda params: 1 - params["loss__alpha"]}',
    },
    "skdice.resampling": {
        "BalancedBatchSampler": "give sampler= to an estimator, or torch's WeightedRandomSampler "
        "to a DataLoader",
        **dict.fromkeys(
            ("TextOverSampler", "TextUnderSampler"),
            "give sampler=RandomOverSampler() or RandomUnderSampler() of imblearn to an "
            "estimator; in a pipeline these take texts as a column: a frame, or an array (n, 1)",
        ),
        "build_gazetteer": "fit_resample of EntityReplacement sets gazetteer_",
        "Pipeline": "take imblearn.pipeline.Pipeline",
        "make_pipeline": "take imblearn.pipeline.make_pipeline",
    },
    "skdice.text": {
        "plain_words": r"re.finditer(r'\w+|[^\w\s]', text) splits a text much alike",
    },
}


def refuse_old_name(package: str, name: str) -> NoReturn:
    """Raise for a name that a package lacks, and tell what takes the place of an old one."""
    if name in OLD_NAMES[package]:  # an AttributeError would lose its message in an import
        raise ImportError(f"{package} has no {name} any more: {OLD_NAMES[package][name]}")
    raise AttributeError(f"module {package!r} has no attribute {name!r}")
