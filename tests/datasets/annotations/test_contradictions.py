"""Files of tools that contradict themselves, or hold several layers: read or refused."""

from __future__ import annotations

import json

import pytest

from skdice.datasets import read_annotations, read_dataset, write_annotations
from tests.datasets.annotations.test_columns_and_passages import put, webanno


def test_entities_in_the_cells_of_a_table(tmp_path):
    spans = "text,entities\nAda sings,\"[(0, 3, 'PER')]\"\nIt rains,[]\n"
    assert read_dataset(put(tmp_path, "a.csv", spans)).y == [[(0, 3, "PER")], []]
    region = '[{"start":0,"end":3,"text":"Ada","labels":["PER"]}]'
    tsv = f"id\ttext\tlabel\n1\tAda sings\t{region}\n"
    data = read_dataset(put(tmp_path, "a.tsv", tsv))
    assert (data.task, data.y) == ("entities", [[(0, 3, "PER")]])


def chosen(text, *labels, kind="choices", **more):
    tags = {"from_name": "s", "to_name": "text", "type": kind}
    result = [{**tags, "value": {kind: [label]}} for label in labels]
    return {"data": {"text": text}, "annotations": [{"result": result, **more}]}


def test_one_odd_task_does_not_turn_a_file_of_choices(tmp_path):
    for odd, told in (
        (chosen("c"), "without a label"),
        (chosen("c", was_cancelled=True), "cancelled"),
        ({"data": {"text": "c"}, "annotations": []}, "not annotated"),
    ):
        path = put(tmp_path, "a.json", json.dumps([odd, chosen("a", "Pos"), chosen("b", "Neg")]))
        with pytest.warns(UserWarning, match=f"left out 1 {told}; 2 texts read"):
            data = read_dataset(path)
        assert (data.task, data.X, data.y) == ("classification", ["a", "b"], ["Pos", "Neg"])


def test_answers_that_are_no_choices_are_named(tmp_path):
    for kind in ("taxonomy", "rating"):
        path = put(tmp_path, "a.json", json.dumps([chosen("a", "x", kind=kind)]))
        with pytest.raises(ValueError, match=f"answers of the type {kind} alone"):
            read_dataset(path)


def test_json_min_of_a_text_of_another_name(tmp_path):
    more = {"annotator": 1, "annotation_id": 3, "lead_time": 2.5}
    rows = [{"id": i, "review": t, "mood": m, **more} for i, (t, m) in enumerate(["ax", "by"])]
    path = put(tmp_path, "a.json", json.dumps(rows))
    assert read_dataset(path).X == ["a", "b"]
    rows = [{"note": row.pop("review"), **row} for row in rows]
    path = put(tmp_path, "b.json", json.dumps(rows))
    with pytest.raises(ValueError, match="text_column"):
        read_dataset(path)
    data = read_dataset(path, text_columns="note")
    assert (data.X, data.y) == (["a", "b"], ["x", "y"])


def test_dialogues_are_no_texts(tmp_path):
    turns = [{"author": "Ann", "text": "Hello Bo"}]
    tags = {"from_name": "t", "to_name": "dialogue", "type": "choices"}
    choice = {**tags, "value": {"choices": ["x"]}}
    task = {"data": {"dialogue": turns, "title": "t"}, "annotations": [{"result": [choice]}]}
    with pytest.raises(ValueError, match="'dialogue' is a dialogue, which is not read"):
        read_dataset(put(tmp_path, "a.json", json.dumps([task])))


SLOTS = (
    "webanno.custom.Actor|",
    "webanno.custom.Event|ROLE_webanno.custom.Event:args_x.Link|webanno.custom.Actor|kind",
)
ROLES = webanno(
    "#Text=Ada paints walls\n1-1\t0-3\tAda\t*\t_\t_\t_\t\n"
    "1-2\t4-10\tpaints\t_\tagent;thing\t1-1;1-3\tWork\t\n1-3\t11-16\twalls\t*\t_\t_\t_\t\n",
    layers=SLOTS,
)


def test_layers_and_features_of_webanno(tmp_path):
    path = put(tmp_path, "a.tsv", ROLES)
    with pytest.warns(UserWarning, match=r"Actor'.*Event'.* read together: give layer="):
        found = read_dataset(path).y[0]
    assert sorted(found) == [(0, 3, "Actor"), (4, 10, "Work"), (11, 16, "Actor")]
    assert read_dataset(path, layer="Event").y == [[(4, 10, "Work")]]
    with pytest.raises(ValueError, match=r"layer='Other' is not in .*Actor"):
        read_annotations(path, layer="Other")
    two = webanno(
        "#Text=Ada naps\n1-1\t0-3\tAda\thigh\tPER\t\n1-2\t4-8\tnaps\t_\t_\t\n",
        layers=("webanno.custom.Entity|certainty|kind",),
    )
    path = put(tmp_path, "b.tsv", two)
    with pytest.raises(ValueError, match=r"give feature= for .*\['certainty', 'kind'\]"):
        read_annotations(path)
    assert read_annotations(path, feature="kind").entities == [[(0, 3, "PER")]]


def test_chains_and_version_2_of_webanno_are_refused(tmp_path):
    chain = (
        "#FORMAT=WebAnno TSV 3.3\n#T_CH=webanno.custom.Coref|relation|type\n\n\n"
        "#Text=Ada naps\n1-1\t0-3\tAda\t*->1-1\tnam[1]\t\n1-2\t4-8\tnaps\t_\t_\t\n"
    )
    with pytest.raises(ValueError, match="holds chains, relations or nothing, and spans are read"):
        read_dataset(put(tmp_path, "a.tsv", chain))
    old = "# webanno.custom.Span | value\n#id=1\n#text=Ada naps\n1-1\tAda\tB-PER\n1-2\tnaps\tO\n"
    with pytest.raises(ValueError, match="export as WebAnno TSV 3"):
        read_dataset(put(tmp_path, "b.tsv", old))


LEE = "1-2\t3-6\tLee\t*[1]\tPER[1]\t\n"
GOOD = (
    f"#Text=Bo Lee naps\n1-1\t0-2\tBo\t*[1]\tPER[1]\t\n{LEE}"
    "1-3\t7-11\tnaps\t_\t_\t\n\n#Text=So\n2-1\t12-14\tSo\t_\t_\t\n"
)


@pytest.mark.parametrize(
    ("old", "new", "problem"),
    [
        ("\t_\t_\t\n\n", "\t_\n\n", "line 8: the token 'naps' has 1 cells for 2 features"),
        ("7-11", "7-10", "line 8: the token is 'naps', and its sentence has 'nap'"),
        ("\tLee\t", "\tLea\t", "line 7: the token is 'Lea'"),
        ("Lee\t*[1]", "Lee\t*[2]", "line 7: .* name other annotations"),
        ("Lee\t*[1]\tPER[1]", "Lee\t*[1]\tLOC[1]", "line 7: the annotation .* 'LOC' here"),
        ("#Text=Bo Lee naps\n", "#Text=Bo Lee naps\n#Text=Bo Lee naps\n", "no token holds"),
        ("\t_\t_\t\n\n", "\t__\t\n\n", "line 8: .* one without a value is _"),
        (GOOD[GOOD.index("2-1") :], "", "no token holds 'So' of its sentence"),
        (GOOD, "", "it holds no sentence"),
        (LEE + "1-3", "1-2", "line 7: ' Lee ' of its sentence"),
        ("#Text=Bo Lee naps\n", "", "line 5: a token without a line '#Text='"),
        ("1-1\t0-2\tBo\t", "A B C\n1-1\t0-2\tBo\t", "line 6: 'A B C' is no token"),
        ("0-2\tBo", "99999999-99999999\tBo", "does not stand where"),
        ("2-1\t12-14", "2-1\t1-3", "does not stand where"),
    ],
)
def test_webanno_that_contradicts_itself(tmp_path, old, new, problem):
    assert read_annotations(put(tmp_path, "a.tsv", webanno(GOOD))).entities == [[(0, 6, "PER")]]
    text = webanno(GOOD)
    assert old in text
    with pytest.raises(ValueError, match=problem):
        read_annotations(put(tmp_path, "a.tsv", text.replace(old, new, 1)))


PUBTATOR = "7|t|Iron helps.\n7|a|We gave iron.\n7\t0\t4\tIron\tChemical\tD1\n"


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        (PUBTATOR.replace("7\t0", "8\t0"), "line 3: the line is of the document '8'"),
        (PUBTATOR.replace("7|a", "8|a"), "line 2: the abstract of '8' follows the title of '7'"),
        (PUBTATOR.replace("7|a|We gave iron.\n", ""), "line 1: the document has no line '7|a|'"),
        ("7|t|Iron.\n7|a|\n" + PUBTATOR, "line 3: the document '7' has two titles"),
        (PUBTATOR.replace("7\t0\t4\t", "7\t0 4\t"), "line 3"),
        (PUBTATOR.replace("\t", " "), "line 3"),
    ],
)
def test_pubtator_that_contradicts_itself(tmp_path, text, problem):
    with pytest.raises(ValueError, match=problem):
        read_annotations(put(tmp_path, "a.txt", text))


def test_relations_of_pubtator_are_read_past(tmp_path):
    path = put(tmp_path, "a.txt", PUBTATOR + "7\tAssociation\t19\tD1\tNovel\n")
    assert read_annotations(path).entities == [[(0, 4, "Chemical")]]


def test_bioc_of_inception_and_outside_its_passages(tmp_path):
    text = (
        "<collection><document><id>1</id><passage><offset>0</offset><text>Ada sings.</text>"
        '<annotation id="1"><infon key="type">webanno.custom.Names</infon>'
        '<infon key="kind">PER</infon><location offset="0" length="3"/><text>Ada</text>'
        "</annotation></passage></document></collection>"
    )
    assert read_annotations(put(tmp_path, "a.xml", text)).entities == [[(0, 3, "PER")]]
    bare = text.replace('<infon key="kind">PER</infon>', "")
    assert read_annotations(put(tmp_path, "bare.xml", bare)).entities == [[(0, 3, "Names")]]
    more = text.replace('<infon key="kind">', '<infon key="sure">no</infon><infon key="kind">')
    path = put(tmp_path, "b.xml", more)
    with pytest.raises(ValueError, match=r"\['sure', 'kind'\]: give feature="):
        read_annotations(path)
    assert read_annotations(path, feature="kind").entities == [[(0, 3, "PER")]]
    outside = text.replace("</passage>", "").replace("<annotation", "</passage><annotation", 1)
    with pytest.raises(ValueError, match=r"<annotation> stands in <document>, outside the pass"):
        read_annotations(put(tmp_path, "c.xml", outside))
    nested = text.replace("<passage>", "<document></document><passage>")
    with pytest.raises(ValueError, match=r"<document> stands in <document>"):
        read_annotations(put(tmp_path, "d.xml", nested))


def test_own_files_are_read(tmp_path):
    text = "17|t|x is so"
    path = write_annotations(tmp_path / "a.conll", [text], [[(0, 2, "X")]], "conll")
    assert read_annotations(path)[1] == read_annotations(path, "conll")[1] == [[(0, 2, "X")]]


def test_what_another_reader_would_take_is_under_one_key(tmp_path):
    metadata = [{"id": 1, "source": "x", "tokens": ["a"], "cats": {"A": 1.0}, "skdice": 2}]
    path = write_annotations(tmp_path / "a.jsonl", ["Ann"], [[(0, 3, "PER")]], "prodigy", metadata)
    value = json.loads(path.read_text())
    assert value["skdice"] == {"tokens": ["a"], "cats": {"A": 1.0}, "skdice": 2}
    assert {*value} == {"id", "source", "skdice", "text", "spans"}
    assert read_annotations(path).metadata == metadata
