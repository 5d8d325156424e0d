"""The rule that decides the default loss, examples/paper/default_loss.py, by hand-made scores."""

from __future__ import annotations

import pytest

from tests.examples.scripts import PAPER, scripts


@pytest.fixture(scope="module")
def rule():
    with scripts(PAPER, "tasks", "run", "default_loss") as found:
        yield found["default_loss"]


def scores(**of_losses):
    """Of one decision: for each loss a list of sets, each with the scores of two seeds."""
    found = {}
    for loss, sets in of_losses.items():
        for i, seeds in enumerate(sets):
            for how in ("plain", "tuned"):
                found.setdefault((f"set{i}", how), {})[loss] = dict(enumerate(seeds))
    return found


def test_behind_is_an_interval_below_nought(rule):
    # By hand: t is 4.303 and the standard error 0.577, so the half is 2.48.
    assert rule.behind([-1.0, -2.0, -3.0]) == (-2.0, pytest.approx(2.484, abs=1e-3), False)
    assert rule.behind([-1.5, -2.0, -2.5])[2]


def test_a_loss_that_is_behind_is_out_and_the_least_bad_worst_set_decides(rule):
    # ce_dice leads; ce is behind by 2 in every fit; dsc is level, and worst on the second set.
    found = scores(
        ce=[(48, 48.2), (58, 58.1)], ce_dice=[(50, 50), (60, 60)], dsc=[(51, 52), (57, 59)]
    )
    kinds = {"tags": ("set0", "set1")}
    default, rows = rule.judged(kinds, found)
    assert default == "ce_dice"
    assert [row[:4] for row in rows] == [("tags", "2", how, "ce_dice") for how in rule.HOWS]
    ce, ce_dice, dsc = rows[0][4:]
    assert [cell.endswith("behind") for cell in (ce, dsc)] == [True, False]
    assert (ce_dice, dsc.split(", ")[:2]) == ("55.0, worst -1.5", ["54.8", "worst -2.0"])


def test_equal_losses_go_to_ce(rule):
    even = [(50.0, 51.0)]
    found = scores(ce=even, ce_dice=[(50.04, 51.0)], dsc=even)
    assert rule.judged({"tags": ("set0",)}, found)[0] == "ce"


def test_if_all_losses_are_out_somewhere_it_is_ce(rule):
    low, high = (50.0, 50.1), (60.0, 60.0)
    found = scores(ce=[low, high], ce_dice=[low, low], dsc=[high, low])
    assert rule.judged({"one": ("set0",), "two": ("set1",)}, found)[0] == "ce"


def test_a_set_counts_once_all_its_fits_have_run(rule):
    found = scores(ce=[(1, 1), (9, 9)], ce_dice=[(2, 2), (3, 3)], dsc=[(1, 1), (3, 3)])
    del found["set1", "plain"]["dsc"][1], found["set1", "tuned"]
    default, rows = rule.judged({"tags": ("set0", "set1")}, found)
    assert (default, [row[1] for row in rows]) == ("ce_dice", ["1", "1"])
    assert rule.judged({"tags": ("set1",)}, found) == (None, [])


def test_only_the_fits_that_the_rule_names_are_judged(rule):
    def record(score, **job):
        job = {"task": "wnut17", "seed": 0, "max_epochs": "auto", "loss": "ce", **job}
        return {"job": job, "plain": {"test": {"score": score}}}

    records = [record(0.5), record(0.1, max_epochs=3), record(0.1, start="zero")]
    assert rule.scores_of(records) == {("wnut17", "plain"): {"ce": {0: 50.0}}}


def test_the_sets_of_the_rule_exist_and_are_on_the_page(rule):
    import tasks

    names = {name for kinds in rule.KINDS.values() for of in kinds.values() for name in of}
    numbers = {*rule.NUMBERS, *rule.VECTORS}
    assert names - numbers <= set(tasks.TASKS)
    assert len(numbers) == 12
    assert numbers <= names
    text = " ".join(rule.lines({}))
    assert "`ce_dice`" in text


def test_a_fit_on_numbers_is_scored_as_it_is_and_tuned(rule, tmp_path):
    job = {"task": "diabetes, the highest 7 %", "seed": 0, "max_epochs": "auto", "loss": "ce"}
    found = rule.fit_numbers(job, tmp_path)
    assert found["rows"] == 294
    assert all(0 <= found[how]["test"]["score"] <= 1 for how in rule.HOWS)
