"""A fit that was interrupted ends where an uninterrupted one ends, or says why it cannot."""

from __future__ import annotations

import time
import warnings
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pandas as pd
import pytest
import torch
from sklearn.metrics import make_scorer
from sklearn.model_selection import GridSearchCV

from skdice import (
    DiceClassifier,
    DiceMRCTagger,
    DiceQuestionAnswerer,
    DiceSequenceClassifier,
    DiceTokenClassifier,
)
from skdice._digest import digest
from skdice._fitting import draft_of
from skdice.engine import checkpoints, used_embeddings
from skdice.engine.fit_plan import plan_fit
from skdice.engine.module import trained_state
from skdice.losses import DiceLoss
from tests.fits import Tells, assert_same_fit, each_update, killed_at, tensors_of
from tests.processes import forkserver


@pytest.fixture(scope="module")
def numbers():
    generator = np.random.default_rng(0)
    X = generator.normal(size=(60, 5)).astype(np.float32)
    return X, (X[:, 0] + 0.3 * generator.normal(size=60) > 1).astype(int)


def classifier(folder=None, **params):
    settings = dict(
        loss=DiceLoss(), max_epochs=4, batch_size=16, hidden_layer_sizes=(4,),
        dropout=0.3, random_state=0, checkpoint_dir=folder, checkpoint_every=0,
    )  # fmt: skip
    return DiceClassifier(**settings | params)


@pytest.fixture(scope="module")
def whole(numbers):
    """A fit that nothing interrupted."""
    return classifier().fit(*numbers)


# The first update and the last, in the middle of an epoch of four and around its end.
@pytest.mark.parametrize("moment", [1, 3, 4, 5, 8, 15])
def test_classifier_goes_on_from_any_update(tmp_path, numbers, whole, moment):
    with killed_at(moment):
        classifier(tmp_path).fit(*numbers)
    steps = []
    with each_update(lambda: steps.append(1)):
        assert_same_fit(whole, classifier(tmp_path).fit(*numbers))
    assert len(steps) == 16 - moment


@pytest.mark.parametrize("moment", range(1, 15, 3))
def test_a_fit_that_stops_early_goes_on(tmp_path, numbers, moment):
    """The scores, the best weights and the epochs without a better score are kept."""
    stops = dict(early_stopping=True, validation_fraction=0.4, n_iter_no_change=2, max_epochs=30)
    whole = classifier(**stops).fit(*numbers)
    made = 3 * whole.n_iter_
    assert 9 <= made < 90
    with killed_at(moment):
        classifier(tmp_path, **stops).fit(*numbers)
    steps = []
    with each_update(lambda: steps.append(1)):
        assert_same_fit(whole, classifier(tmp_path, **stops).fit(*numbers))
    assert len(steps) == made - moment


def test_a_fit_says_where_it_begins(tmp_path, numbers, capsys):
    with killed_at(5):
        classifier(tmp_path, verbose=1).fit(*numbers)
    assert "no checkpoint of these data and parameters yet" in capsys.readouterr().out
    classifier(tmp_path, verbose=1).fit(*numbers)
    assert "going on after update 5" in capsys.readouterr().out
    classifier(tmp_path, verbose=1).fit(*numbers)
    assert "this fit was finished before" in capsys.readouterr().out
    classifier(tmp_path, verbose=1, lr=0.01).fit(*numbers)
    assert "the fit begins anew" in capsys.readouterr().out


def test_another_kind_of_device_begins_anew(numbers, monkeypatch):
    model = classifier("folder")
    plan = plan_fit(model, *numbers)
    draft = draft_of(model)
    vars(draft).update(plan.fitted)
    draft._resolve_schedule(plan)
    found = []
    for device in ("cuda", "cuda:1", "cpu"):
        at = "skdice.estimators._net_estimator.resolve_device"
        monkeypatch.setattr(at, lambda _, d=device: d)
        found.append(draft._identity(plan))
    assert found[0] == found[1] != found[2]


def text_fits(backbone, sentences):
    """Estimators of text with data, each with something of its own to remember."""
    X, y = sentences
    texts = [" ".join(words) for words in X]
    labels = [int(any(tag != "O" for tag in row)) for row in y]
    common = dict(
        backbone=backbone, max_epochs=2, batch_size=2, lr=1e-3, random_state=0,
        checkpoint_every=0, dropout=0.2,
    )  # fmt: skip
    tagger = DiceTokenClassifier(loss=DiceLoss(), gradient_accumulation=2, **common)
    tagger.set_params(early_stopping=True, validation_fraction=0.5)
    questions = [("who sings?", "Ann sings in Rome."), ("who sleeps?", "the bus is late.")] * 4
    spans = [["Rowing", "Club", "of", "Oslo"], ["it", "rains"]] * 4
    return [
        (tagger, X, y),
        (DiceSequenceClassifier(adapter=None, frozen="embeddings", **common), texts, labels),
        (DiceQuestionAnswerer(loss="dsc", **common), questions, [(0, "Ann"), None] * 4),
        (DiceMRCTagger(loss="dsc", **common), spans, [[("LOC", 3, 4)], []] * 4),
    ]


@pytest.mark.parametrize("which", [0, 1, 2, 3])
@pytest.mark.parametrize(("moment", "compact"), [(1, False), (3, True)])
def test_text_estimators_go_on(
    tmp_path, monkeypatch, tiny_backbone, sentences, which, moment, compact
):
    if compact:  # the word table is trained in part, as in backbones of real size
        monkeypatch.setattr(used_embeddings, "LEAST", 1)
    model, X, y = text_fits(tiny_backbone, sentences)[which]
    whole = model.fit(X, y)
    resumed = text_fits(tiny_backbone, sentences)[which][0].set_params(checkpoint_dir=tmp_path)
    with killed_at(moment):
        resumed.fit(X, y)
    assert_same_fit(whole, resumed.fit(X, y))


def test_finished_fit_is_not_made_again(tmp_path, numbers):
    whole = classifier(tmp_path).fit(*numbers)
    with each_update(lambda: pytest.fail("an update was made")):
        assert_same_fit(whole, classifier(tmp_path).fit(*numbers))


@pytest.mark.parametrize(
    ("name", "value"),
    [
        *(("lr", 0.01), ("loss", "ce"), ("random_state", 1), ("max_epochs", 5), ("batch_size", 8)),
        *(("rows", 59), ("a label", None), ("a number", None)),
    ],
)
def test_other_data_or_parameters_are_another_fit(tmp_path, numbers, name, value):
    X, y = numbers[0].copy(), numbers[1].copy()
    with killed_at(9):
        classifier(tmp_path).fit(X, y)
    change = {name: value} if name in DiceClassifier().get_params() else {}
    if name == "rows":
        X, y = X[:value], y[:value]
    elif name == "a label":
        y[0] = 1 - y[0]
    elif name == "a number":
        X[-1, -1] += 1e-6
    expected = classifier(**change).fit(X, y)
    assert_same_fit(expected, classifier(tmp_path, **change).fit(X, y))
    assert len(list(tmp_path.iterdir())) == 2


@pytest.mark.parametrize(
    "damage", [lambda data: data[: len(data) // 2], lambda data: b"", lambda data: b"hello " * 99]
)
def test_a_damaged_checkpoint_is_refused(tmp_path, numbers, whole, damage):
    with killed_at(9):
        classifier(tmp_path).fit(*numbers)
    (path,) = tmp_path.iterdir()
    path.write_bytes(damage(path.read_bytes()))
    with pytest.raises(ValueError, match=r"checkpoint_dir: .*pt is damaged .*Delete it"):
        classifier(tmp_path).fit(*numbers)
    path.unlink()
    assert_same_fit(whole, classifier(tmp_path).fit(*numbers))


def test_full_disk_costs_the_checkpoint_and_not_the_fit(tmp_path, monkeypatch, numbers, whole):
    with killed_at(5):
        classifier(tmp_path).fit(*numbers)
    (path,) = tmp_path.iterdir()
    before = path.read_bytes()

    def full(*args, **kwargs):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(checkpoints.torch, "save", full)
    with pytest.warns(UserWarning, match="no checkpoint after update .*No space left"):
        assert_same_fit(whole, classifier(tmp_path).fit(*numbers))
    assert list(tmp_path.iterdir()) == [path]
    assert path.read_bytes() == before


def test_folder_that_cannot_be_written_is_refused_first(tmp_path, numbers):
    (tmp_path / "file").write_text("")
    model = classifier(tmp_path / "file").set_params(loss="ce")
    with pytest.raises(FileExistsError, match="file'"):
        model.fit(*numbers)
    assert not hasattr(model, "net_")


@pytest.mark.parametrize(
    ("params", "message"),
    [
        (dict(random_state=None), "random_state is None: give an int"),
        (dict(checkpoint_dir=""), "checkpoint_dir=''"),
        (dict(checkpoint_dir="a\0b"), "checkpoint_dir="),
        (dict(callbacks=[("x", object)]), "callbacks"),
        (dict(checkpoint_every="60s"), "'checkpoint_every' parameter .* must be a float"),
        (dict(checkpoint_every=-1), "checkpoint_every"),
    ],
)
def test_bad_settings_are_refused(tmp_path, numbers, params, message):
    with pytest.raises((TypeError, ValueError), match=message):
        classifier(tmp_path, **params).fit(*numbers)
    assert not list(tmp_path.iterdir())


def test_folds_and_settings_of_a_grid_share_a_folder(tmp_path, numbers):
    grid = {"loss": ["ce", "dsc"]}
    whole = GridSearchCV(classifier(), grid, cv=2).fit(*numbers)
    with killed_at(20):
        GridSearchCV(classifier(tmp_path), grid, cv=2).fit(*numbers)
    found = GridSearchCV(classifier(tmp_path), grid, cv=2).fit(*numbers)
    scores = [search.cv_results_["mean_test_score"].tolist() for search in (whole, found)]
    assert scores[0] == scores[1]
    assert len(list(tmp_path.iterdir())) == 5
    assert_same_fit(whole.best_estimator_, found.best_estimator_)


def test_time_between_checkpoints(tmp_path, monkeypatch, numbers):
    now, written = [0.0], []
    monkeypatch.setattr(checkpoints.time, "monotonic", lambda: now[0])
    monkeypatch.setattr(checkpoints, "write", lambda path, state: written.append(state["done"]))

    def minute():
        now[0] += 60

    with each_update(minute):
        classifier(tmp_path, checkpoint_every=150).fit(*numbers)
    # After every third update, and after each epoch of four, from which the time is counted anew.
    assert written == [3, 4, 7, 8, 11, 12, 15, 16, 16]


def test_digest_knows_values_and_not_objects():
    assert digest(["a", 1], {"k": np.arange(3)}) == digest(["a", 1], {"k": np.arange(3)})
    different = [["ab"], ["a", "b"], [1], ["1"], [1.0], [np.float32(1)], [[1]], [None], []]
    assert len({digest(value) for value in different}) == len(different)
    one, other = {0, 8}, {8, 0}  # equal, and in another order
    assert str(one) != str(other)
    assert digest(one) == digest(other) != digest({0, 9})
    frames = [pd.DataFrame({"a": np.arange(100) == i}) for i in (50, 50, 51)]  # shown in short
    assert digest(frames[0]) == digest(frames[1]) != digest(frames[2])
    assert digest(frames[0]["a"]) == digest(frames[1]["a"]) != digest(frames[2]["a"])


def adds(number):
    return lambda value: value + number


def test_digest_knows_what_functions_do():
    same = [adds(1), adds(1)]
    assert digest(same[0]) == digest(same[1])
    different = [
        adds(2), adds("1"), lambda value: value + 1, lambda value: value + 2,
        lambda value, other=1: value, lambda value, other=2: value, lambda value, *, other=2: value,
        lambda value: value in {"a", "b"}, lambda value: value in {"a", "c"},
        lambda value: (0.1, 0.2)[value], lambda value: (0.1, 0.3)[value],
        lambda value: [i + 1 for i in value], lambda value: [i + 2 for i in value],
        make_scorer(adds(1)), make_scorer(adds(2)), make_scorer(adds(2), greater_is_better=False),
    ]  # fmt: skip
    assert len({digest(value) for value in [*same, *different]}) == len(different) + 1


def many_updates(folder=None):
    generator = np.random.default_rng(0)
    X = generator.normal(size=(600, 5))
    y = (X[:, 0] + 0.3 * generator.normal(size=600) > 1).astype(int)
    return classifier(folder, max_epochs=2, batch_size=4).fit(X, y)


@pytest.mark.slow
def test_killed_process_goes_on(tmp_path):
    """A real SIGKILL at random moments; a checkpoint is being written at most of them."""
    whole, generator, kills = many_updates(), np.random.default_rng(0), 0
    context = forkserver()
    for _ in range(3):
        process = context.Process(target=many_updates, args=(tmp_path,))
        process.start()
        while not list(tmp_path.glob("*.pt")) and process.is_alive():
            time.sleep(0.01)
        time.sleep(generator.random() / 2)
        kills += process.is_alive()
        process.kill()
        process.join()
        # What the next process begins with is whole.
        assert list(tmp_path.glob("*.pt"))
    assert kills
    assert_same_fit(whole, many_updates(tmp_path))


def test_two_fits_write_to_one_folder(tmp_path):
    """The files of one writer are neither those of the other, nor left by a killed process."""
    state = {"weights": torch.ones(20_000)}
    path = tmp_path / "fit.pt"
    with warnings.catch_warnings(), ThreadPoolExecutor(3) as pool:
        warnings.simplefilter("error")

        def write(i):
            checkpoints.write(path, state)
            return checkpoints.read(path)

        found = list(pool.map(write, range(60)))
    assert all(torch.equal(one["weights"], state["weights"]) for one in found)
    assert list(tmp_path.iterdir()) == [path]


def test_frozen_weights_are_in_no_checkpoint(tmp_path, tiny_backbone, sentences):
    common = dict(backbone=tiny_backbone, max_epochs=1, random_state=0, frozen="encoder")
    tagger = DiceTokenClassifier(**common, checkpoint_dir=tmp_path).fit(*sentences)
    names = trained_state(tagger.net_.module_)
    assert {name.split(".")[0] for name, p in names.items() if p.is_floating_point()} == {"head"}
    (path,) = tmp_path.iterdir()
    n_trained = sum(p.numel() for p in tagger.net_.module_.parameters() if p.requires_grad)
    assert path.stat().st_size < 4 * n_trained + 20_000
    assert_same_fit(tagger, DiceTokenClassifier(**common, checkpoint_dir=tmp_path).fit(*sentences))


@pytest.mark.parametrize("first", [True, False])
@pytest.mark.filterwarnings("error:Detected call of")
def test_a_skipped_update_steps_the_schedule(numbers, first):
    """As on a GPU, which does not wait to know whether it was skipped."""
    rates, calls = [], []

    class Spoiled(DiceLoss):
        def forward(self, *args, **kwargs):
            calls.append(1)
            skipped = len(calls) == (1 if first else 6)
            return super().forward(*args, **kwargs) * (torch.nan if skipped else 1)

    tells = Tells(before=lambda net, batch: rates.append(net.optimizer_.param_groups[0]["lr"]))
    model = classifier(loss=Spoiled(), warmup=0.0, lr=1.0, checkpoint_every=60)
    model.set_params(callbacks=[tells]).fit(*numbers)
    assert sum(epoch["skipped_updates"] for epoch in model.history_) == 1
    assert rates == pytest.approx([1 - i / 16 for i in range(16)])


@pytest.mark.parametrize("where", ["loss", "gradient"])
def test_update_with_bad_numbers_is_skipped(numbers, where):
    calls = []

    class Spoiled(DiceLoss):
        def forward(self, *args, **kwargs):
            loss = super().forward(*args, **kwargs)
            calls.append(1)
            if len(calls) == 6:
                if where == "loss":
                    return loss * torch.nan
                loss.register_hook(lambda gradient: gradient * torch.inf)
            return loss

    X, y = numbers
    model = classifier(loss=Spoiled(), dropout=0.0).fit(X, y)
    assert [epoch["skipped_updates"] for epoch in model.history_] == [0, 1, 0, 0]
    assert np.isfinite([epoch["train_loss"] for epoch in model.history_]).all()
    assert all(value.isfinite().all() for value in tensors_of(model).values())


class NoNumber(DiceLoss):
    """A loss that is NaN."""

    def forward(self, *args, **kwargs):
        return super().forward(*args, **kwargs) * torch.nan


def test_bad_numbers_without_end_stop_the_fit(numbers):
    model = classifier(batch_size=4, loss=NoNumber())
    message = r"the last 10 updates were skipped.* training rows \[\d+, .* lower lr"
    with pytest.raises(ValueError, match=message):
        model.fit(*numbers)
    assert not hasattr(model, "net_")


def test_an_epoch_without_an_update_stops_the_fit():
    """Nine epochs of one update each: all are skipped, and fewer than ten in a row."""
    X, y = np.full((20, 3), 1e25, dtype=np.float32), [0, 1] * 10
    X[::2] *= -1
    model = DiceClassifier(max_epochs=9, loss=NoNumber(), random_state=0)
    with pytest.raises(ValueError, match=r"the last 1 updates were skipped.* training rows"):
        model.fit(X, y)
    assert not hasattr(model, "net_")


def test_a_checkpoint_of_another_format_is_left_alone(tmp_path, numbers, whole):
    with pytest.MonkeyPatch.context() as patch, killed_at(9):
        patch.setattr("skdice.estimators._net_estimator.FORMAT", 1)
        classifier(tmp_path).fit(*numbers)
    steps = []
    with each_update(lambda: steps.append(1)):
        model = classifier(tmp_path).fit(*numbers)
    assert len(steps) == 16
    assert_same_fit(model, whole)
