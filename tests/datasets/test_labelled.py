"""Labels of whole texts in the files of annotation tools, and several labels in a cell."""

from __future__ import annotations

import json

import pytest

from skdice.datasets import read_annotations, read_dataset, read_table, read_texts
from skdice.datasets.dataset import Learned, read_inputs
from skdice.datasets.source import Source
from skdice.inputs.labels import read_labels
from tests.datasets.files import put_json as put


def asked(i, label, answer, **more):
    return {"text": f"text {i}", "label": label, "answer": answer, "_task_hash": i, **more}


def test_prodigys_answers_about_one_label(tmp_path):
    rows = [asked(0, "A", "accept"), asked(1, "A", "reject"), asked(2, None, "ignore", spans=[]),
            asked(3, "B", "accept"), asked(0, "B", "reject"), asked(3, "A", "accept")]  # fmt: skip
    path = put(tmp_path, *rows)
    told = "left out 1 whose answer is ignore, 2 rows kept without the labels that were rejected; 3"
    with pytest.warns(UserWarning, match=told):
        data = read_dataset(path)
    assert data.task == "classification"
    assert (data.X, data.y) == (["text 0", "text 1", "text 3"], [["A"], [], ["B", "A"]])
    path = put(tmp_path, asked(0, "A", "accept", spans=[]), asked(1, "B", "accept", spans=[]))
    assert read_table(path) == (["text 0", "text 1"], ["A", "B"])


def test_prodigys_choices(tmp_path):
    def chosen(i, *labels, answer="accept"):
        options = [{"id": name, "text": name.lower()} for name in "ABC"]
        return {"text": f"text {i}", "options": options, "accept": [*labels], "answer": answer}

    one = put(tmp_path, chosen(0, "A"), chosen(1, "B"))
    assert read_table(one) == (["text 0", "text 1"], ["A", "B"])
    several = put(tmp_path, chosen(0, "A", "C"), chosen(0), chosen(2, "B", answer="ignore"))
    with pytest.warns(UserWarning, match="1 whose answer is ignore"):
        assert read_table(several) == (["text 0", "text 0"], [["A", "C"], []])
    with pytest.warns(UserWarning, match="1 row kept without the labels"):
        found = read_table(put(tmp_path, chosen(0, "A"), chosen(1, "B", answer="reject")))
    assert found == (["text 0", "text 1"], [["A"], []])


def test_answers_are_obeyed_beside_other_labels(tmp_path):
    rows = [{"text": f"t{i} is long", "label": i, "answer": answer}
            for i, answer in enumerate(["accept", "reject", "accept"])]  # fmt: skip
    with pytest.warns(UserWarning, match="1 row kept without the labels"):
        assert read_table(put(tmp_path, *rows))[1] == [["0"], [], ["2"]]
    span = {"start": 0, "end": 3, "label": "PER"}
    for row in (
        {"tokens": ["Ann"], "tags": ["B-PER"]},
        {"text": "Ann", "entities": [[0, 3, "PER"]]},
        {"text": "Ann", "ents": [span]},
    ):
        for refused in ("reject", "ignore"):
            path = put(tmp_path, {**row, "answer": "accept"}, {**row, "answer": refused})
            with pytest.warns(UserWarning, match=f"1 whose answer is {refused}"):
                assert read_annotations(path).entities == [[(0, 3, "PER")]]
            with pytest.warns(UserWarning, match=f"1 whose answer is {refused}"):
                assert len(read_dataset(path)) == 1
        other = put(tmp_path, *[{**row, "answer": "yes"}] * 2)  # of another question than Prodigy's
        assert len(read_annotations(other).texts) == 2


ANSWERED = {
    "a.csv": "text,label,answer\na b,x,accept\nc d,x,reject\ne f,,ignore\n",
    "a.tsv": "text\tp\tq\tanswer\na b\t1\t0\taccept\nc d\t1\t1\treject\ne f\t1\t1\tignore\n",
    "a.jsonl": [{"text": t, "labels": ["x"], "answer": a}
                for t, a in (("a b", "accept"), ("c d", "reject"), ("e f", "ignore"))],
    "b.jsonl": [{"text": t, "cats": {"x": 1.0, "y": 0.0}, "answer": a}
                for t, a in (("a b", "accept"), ("c d", "reject"), ("e f", "ignore"))],
}  # fmt: skip


@pytest.mark.parametrize("name", ANSWERED)
def test_answers_are_obeyed_in_every_table_and_are_no_text(tmp_path, name):
    content, several = ANSWERED[name], ["p", "q"] if name == "a.tsv" else None
    path = tmp_path / name
    path.write_text(content if isinstance(content, str) else "\n".join(map(json.dumps, content)))
    with pytest.warns(UserWarning, match=r"left out 1 whose answer is ignore, 1 row kept"):
        X, y = read_table(path, label_columns=several)
    assert (X, y) == (["a b", "c d"], [["p" if several else "x"], []])
    if several:
        assert y.columns == several
    else:
        assert read_texts(path) == ["a b", "c d", "e f"]


@pytest.mark.parametrize("name", ["spans", "entities", "ents"])
@pytest.mark.parametrize("label", ["x", 1, ["x", "y"]])
def test_an_empty_list_of_spans_beside_a_label_holds_no_entities(tmp_path, name, label):
    rows = [{"text": f"a b {i}", "label": label, name: []} for i in range(2)]
    data = read_dataset(put(tmp_path, *rows))
    assert (data.task, data.y) == ("classification", [label if label != 1 else "1"] * 2)
    found = {**rows[0], name: [{"start": 0, "end": 1, "label": "Q"}]}
    path = put(tmp_path, found, *rows)
    told = r"line 1: the record holds entities .* and classification .*task="
    with pytest.raises(ValueError, match=told):
        read_dataset(path)
    assert read_dataset(path, task="entities").y == [[(0, 1, "Q")], [], []]
    assert read_dataset(path, task="classification").y == [label if label != 1 else "1"] * 3


def test_a_span_that_was_rejected_is_no_entity(tmp_path):
    spans = [{"start": i, "end": i + 1, "label": "X", "answer": answer}
             for i, answer in enumerate(["accept", "reject", "ignore"])]  # fmt: skip
    with pytest.warns(UserWarning, match="left out 2 spans that were rejected or ignored"):
        found = read_annotations(put(tmp_path, {"text": "abc", "spans": spans, "answer": "accept"}))
    assert found.entities == [[(0, 1, "X")]]


def task_of(text, *results, **data):
    return {"id": 1, "data": {"text": text, **data}, "annotations": [{"result": [*results]}]}


def choice(name, *labels):
    tags = {"from_name": name, "to_name": "text", "type": "choices"}
    return {**tags, "value": {"choices": [*labels]}}


def test_choices_of_label_studio(tmp_path):
    path = put(tmp_path, task_of("a", choice("mood", "good")), task_of("b", choice("mood", "bad")),
               name="a.json")  # fmt: skip
    data = read_dataset(path)
    assert (data.task, data.X, data.y) == ("classification", ["a", "b"], ["good", "bad"])
    with pytest.raises(ValueError, match=r"labels of whole texts and no entities: .*task='class"):
        read_annotations(path)
    assert [row.x for row in read_inputs(Source(path), "entities", {}, Learned())] == ["a", "b"]
    both = put(tmp_path, task_of("a", choice("mood", "good", "calm"), choice("topic", "x")),
               task_of("b", choice("topic", "y")), name="a.json")  # fmt: skip
    assert read_dataset(both, label_column="mood").y == [["good", "calm"], []]
    assert read_dataset(both, label_column="topic").y == ["x", "y"]
    told = r"which column .* holds the label\? .*\['mood', 'topic'\]"
    with pytest.raises(ValueError, match=told):
        read_dataset(both)
    with pytest.raises(ValueError, match=r"label_column='tone' is not in"):
        read_dataset(both, label_column="tone")


def test_choices_of_label_studio_in_json_min(tmp_path):
    more = {"annotator": 1, "annotation_id": 3, "created_at": "2024", "lead_time": 2.5}
    one = put(tmp_path, {"id": 0, "text": "a b", "mood": "good", **more}, name="a.json")
    assert read_dataset(one).y == ["good"]
    several = [{"text": "a b", "mood": {"choices": ["x", "y"]}, **more}, {"text": "c", **more}]
    with pytest.warns(UserWarning, match="left out 1 without a label; 1 text read"):
        assert read_dataset(put(tmp_path, *several, name="a.json")).y == [["x", "y"]]
    region = {"start": 0, "end": 1, "text": "a", "labels": ["PER"]}
    marked = {"text": "a b", "mood": "good", "label": [region], **more}
    path = put(tmp_path, marked, {"text": "c", "mood": "bad", **more}, name="a.json")
    assert read_dataset(path).y == [[(0, 1, "PER")], []]
    assert read_dataset(path, label_column="mood").y == ["good", "bad"]


def test_cats_of_spacy(tmp_path):
    def cats(**scores):
        return {"cats": scores}

    rows = [{"text": "win money", **cats(SPAM=1.0, HAM=0.0)}, {"text": "hi", **cats(SPAM=0, HAM=1)}]
    assert read_dataset(put(tmp_path, *rows)).y == ["SPAM", "HAM"]
    pairs = [["win money", cats(SPAM=1.0, AD=0.5)], ["hi", cats(SPAM=0.1, AD=0.2)]]
    data = read_dataset(put(tmp_path, *pairs, name="a.json"))
    assert (data.X, data.y) == (["win money", "hi"], [["SPAM", "AD"], []])
    with pytest.raises(ValueError, match="labels of whole texts"):
        read_dataset(put(tmp_path, *rows), task="entities")


@pytest.mark.parametrize("sign", [",", ";", "|", "#"])
def test_several_labels_in_a_cell(tmp_path, sign):
    path = tmp_path / "a.tsv"
    path.write_text(f"text\tlabel\nwin it\tspam{sign} ad\nhi you\tham\nbuy it\tad\n")
    split = (["win it", "hi you", "buy it"], [["spam", "ad"], ["ham"], ["ad"]])
    assert read_table(path, label_separator=sign) == split
    with pytest.raises(ValueError, match=r"is 'spam.* ad' one label, or several.*label_separator="):
        read_table(path)
    assert read_table(path, label_separator="")[1] == [f"spam{sign} ad", "ham", "ad"]
    path.write_text(f"text\tlabel\nwin it\tspam{sign} ad\nbuy it\tspam\n")
    with pytest.raises(ValueError, match="one label, or several"):  # two labels in two forms
        read_table(path)
    path.write_text(f"text\tlabel\nAlbany is old\tNew York{sign} NY\nRome is\tItaly\n")
    assert read_table(path)[1] == [f"New York{sign} NY", "Italy"]  # no other cell holds a part


@pytest.mark.parametrize("labels", [["['late', 'broken']", "[]"], ['["a"]', '["b"]'], ["[1, 2]"]])
def test_written_lists_are_refused_by_fit(labels):
    with pytest.raises(ValueError, match=r"y\[0\] is .* a list that was written as a string"):
        read_labels(labels)
    assert read_labels(["[late]", "x"]).classes.tolist() == ["[late]", "x"]


def test_a_column_without_a_positive_stays_a_class(tmp_path):
    path = tmp_path / "a.csv"
    path.write_text("text,toxic,threat,insult\nhate you,1,0,0\nnice one,0,0,0\nbad one,0,0,1\n")
    with pytest.raises(ValueError, match=r"label_columns=\['toxic', 'threat', 'insult'\]"):
        read_table(path)
    y = read_table(path, label_columns=["toxic", "threat", "insult"])[1]
    assert y == [["toxic"], [], ["insult"]]
    labels = read_labels(y)
    assert labels.classes.tolist() == ["toxic", "threat", "insult"]
    assert labels.values.tolist() == [[1, 0, 0], [0, 0, 0], [0, 0, 1]]


def test_options_are_obeyed_or_refused(tmp_path):
    path = put(tmp_path, {"text": "Ann sings", "entities": [[0, 3, "PER"]], "mood": "good"})
    assert read_dataset(path).task == "entities"
    assert read_dataset(path, label_column="mood").y == ["good"]
    with pytest.raises(TypeError, match=r"label_column='mood' is no option of read_annotations.*"
                                        r"task='classification'"):  # fmt: skip
        read_dataset(path, task="entities", label_column="mood")
    table = tmp_path / "a.csv"
    table.write_text("text,label\na b,x\nc d,y\n")
    with pytest.raises(TypeError, match=r"comment=None is no option .*task='tagging'"):
        read_dataset(table, comment=None)


def test_lists_of_tags_in_cells(tmp_path):
    path = tmp_path / "a.csv"
    path.write_text("id,Sentence,POS,Tag\n1,Ann sings,\"['NNP', 'VBZ']\",\"['B-per', 'O']\"\n")
    data = read_dataset(path)
    assert (data.task, data.X, data.y) == ("tagging", [["Ann", "sings"]], [["B-per", "O"]])
    path.write_text("tokens,tags\n\"['Ann', 'Lee']\",\"['B-per', 'I-per']\"\n")
    assert read_dataset(path).X == [["Ann", "Lee"]]
    path.write_text("Sentence,Tag\nAnn sings,\"['B-per']\"\n")
    with pytest.raises(ValueError, match=r"line 2: 2 tokens, but 1 tags"):
        read_dataset(path, task="tagging")


def test_other_shapes(tmp_path):
    page = {"id": 1, "data": {"html": "<p>Hi <b>Ann</b></p>"}, "annotations": [{"result": [{
        "from_name": "label", "to_name": "text", "type": "hypertextlabels",
        "value": {"start": "/p[1]", "end": "/p[1]", "globalOffsets": {"start": 3, "end": 6},
                  "text": "Ann", "hypertextlabels": ["PER"]}}]}]}  # fmt: skip
    with pytest.raises(ValueError, match=r"record 1: its text is HTML, '<p>Hi"):
        read_annotations(put(tmp_path, page, name="a.json"))
    wide = {"title": "t", "context": "x", "qas": [{"question": "?", "answer": {}, "id": "1"}]}
    path = tmp_path / "b.json"
    path.write_text(json.dumps({"data": [wide]}))
    with pytest.raises(ValueError, match=r"'context' and 'qas' .* one 'answer' .* KorQuAD 2"):
        read_dataset(path)
    document = {"documentName": "a", "document": "Ann sings", "tokens": [{"text": "Ann"}],
                "annotation": [{"start": 0, "end": 3, "label": "PER", "text": "Ann"}]}  # fmt: skip
    assert read_dataset(put(tmp_path, document, name="c.json")).y == [[(0, 3, "PER")]]


@pytest.mark.parametrize(
    ("name", "content", "options", "found"),
    [
        ("a.csv", 'id,body,y\n1,"a, b",x\n2,c,y\n', {}, {
            "text_columns": ["body"], "label_column": "y", "separator": ",", "header": True,
            "quoting": True}),
        ("a.tsv", 'x\ta b\ny\tc "d\nx\te\n', {"label_column": 0}, {
            "text_columns": [1], "label_column": 0, "separator": "\t", "header": False,
            "quoting": False}),
        ("a.csv", "saying;act\na;x\n", {"text_columns": "saying", "label_column": "act"}, {
            "text_columns": ["saying"], "label_column": "act", "separator": ";", "header": True,
            "quoting": True}),
        ("a.jsonl", '{"body":"a","label":"x"}\n', {}, {
            "text_columns": ["body"], "label_column": "label"}),
        ("a.csv", "text,p,q\na,1,0\nb,0,1\n", {"label_columns": ["p", "q"]}, {
            "text_columns": ["text"], "label_columns": ["p", "q"], "separator": ",",
            "header": True, "quoting": True}),
        ("a.csv", 'text,l\na,"x, y"\nb,y\n', {"label_separator": ",", "label_column": "l"}, {
            "text_columns": ["text"], "label_column": "l", "label_separator": ",",
            "separator": ",", "header": True, "quoting": True}),
    ],
)  # fmt: skip
def test_what_was_found_reads_another_file_alike(tmp_path, name, content, options, found):
    (tmp_path / name).write_text(content)
    data = read_dataset(tmp_path / name, **options)
    given = data.table
    assert given == {**found, "encoding": "utf-8"}
    again = read_dataset(tmp_path / name, task="classification", **given)
    assert (again.X, again.y, again.table) == (data.X, data.y, data.table)
    given = {n: value for n, value in given.items() if n != "label_separator"}
    assert read_texts(tmp_path / name, **given) == data.X


def test_a_file_to_predict_needs_no_label_column(tmp_path):
    path = tmp_path / "a.csv"
    path.write_text("body,other\nq,1\n")
    assert read_texts(path, text_columns=["body"], label_column="y") == ["q"]
    with pytest.raises(ValueError, match="label_column='y' is not in"):
        read_texts(path, label_column="y")
