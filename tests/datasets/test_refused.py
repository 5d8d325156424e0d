"""What readers do not guess: each error's advice is followed on the file that caused it."""

from __future__ import annotations

import json
import os
import sys
import time
import tracemalloc

import datasets as hf
import pytest

from skdice.datasets import (
    read_annotations,
    read_conll,
    read_dataset,
    read_table,
    read_texts,
    write_annotations,
)
from tests.datasets.annotations.test_columns_and_passages import put, webanno


def lines(*values):
    return "\n".join(map(json.dumps, values))


TEXTS = ["The storm took the roof", "The sun is out, and warm", "Flood water, near the bridge"]


@pytest.mark.parametrize(
    ("header", "others", "text"),
    [
        ("id,location,text,target", ["New Sandholt OM", "Oldmere UK", ""], "text"),
        ("id,created,text,label", ["2024-05-15T12:00:16Z"] * 3, "text"),
        ("id,file,text,label", ["/data/mails/a.txt", "/data/b.txt", "/data/c.txt"], "text"),
        ("id,output,tweet,label", ["The label is spam", "The label is ham", "It is"], "tweet"),
        ("id,clean_text,text,label", ["storm took roof", "sun out warm", "flood water"], "text"),
        ("id,link,headline,class", ["https://a.example/the-storm-took"] * 3, "headline"),
    ],
)
def test_a_column_beside_the_text_makes_no_pair(tmp_path, header, others, text):
    rows = [
        f'{i},{other},"{t}",{i % 2}\n'
        for i, (other, t) in enumerate(zip(others, TEXTS, strict=True))
    ]
    path = put(tmp_path, "a.csv", header + "\n" + "".join(rows))
    X, y, columns = read_table(path, return_columns=True)
    assert (X, y, columns["text"]) == (TEXTS, ["0", "1", "0"], [text])


def test_two_texts_need_names_of_a_pair_or_a_user(tmp_path):
    path = put(tmp_path, "a.csv", "claim,evidence,label\na b,c d,x\ne f,g h,y\n")
    with pytest.raises(ValueError, match=r"\['claim', 'evidence'\], not 1: .*text_columns"):
        read_table(path)
    pairs = [("a b", "c d"), ("e f", "g h")]
    assert read_table(path, text_columns=["claim", "evidence"])[0] == pairs
    named = put(tmp_path, "b.csv", "text_a,text_b,label\na b,c d,x\ne f,g h,y\n")
    assert read_table(named)[0] == pairs


@pytest.mark.parametrize(
    ("text", "how", "expected"),
    [
        ("ham,see you\nspam,win\nham,ok\n", {"label_column": 0}, ["ham", "spam", "ham"]),
        ('"Hallo, du";spam\nBis bald;ham\nSo;spam\n', {"label_column": 1}, ["spam", "ham", "spam"]),
        ("sep=;\ntext;label\nso;x\n", {}, ["x"]),
        ('"text, cleaned";label\n"Hallo, du";x\n', {}, ["x"]),
    ],
)
def test_separators_are_those_outside_quotes(tmp_path, text, how, expected):
    assert read_table(put(tmp_path, "a.csv", text), **how)[1] == expected


def test_a_header_that_nothing_shows_is_asked_for(tmp_path):
    path = put(tmp_path, "a.csv", "utterance_x,act\nhello,greet\nbye,leave\n")
    with pytest.raises(ValueError, match="header=True or header=False"):
        read_table(path, text_columns=0, label_column=1)
    assert read_table(path, text_columns=0, label_column=1, header=True)[1] == ["greet", "leave"]
    with pytest.raises(
        ValueError, match=r"label_column by index with header=False, or header=True"
    ):
        read_table(path)
    assert read_table(path, label_column="act")[0] == ["hello", "bye"]
    two = put(tmp_path, "b.csv", "text;x,label\na,b\n")
    with pytest.raises(ValueError, match=r"separator=',' or separator=';'"):
        read_table(two)
    assert read_table(two, separator=",", label_column=1, header=True)[1] == ["b"]
    wrong = put(tmp_path, "c.csv", '"Hallo, du"|spam\n')
    with pytest.raises(ValueError, match="',' separates cells: give another separator"):
        read_table(wrong, separator=",")
    assert read_table(wrong, separator="|", label_column=1, header=False)[1] == ["spam"]


# ---- labels


def test_what_stands_for_no_label_is_left_out(tmp_path):
    for none in ("-", "nan", "NULL"):
        path = put(tmp_path, "a.csv", f"text,label\na b,x\nc d,{none}\ne f,y\n")
        with pytest.warns(UserWarning, match=rf"left out 1 whose label is {none}; 2 texts read"):
            assert read_table(path) == (["a b", "e f"], ["x", "y"])
    signs = put(tmp_path, "b.csv", "text,label\na b,+\nc d,-\n")
    assert read_table(signs)[1] == ["+", "-"]


def test_labels_are_the_same_from_json_and_csv(tmp_path):
    values = [True, False, 1.0, 2.5, 3]
    rows = [{"text": f"t{i}", "label": value} for i, value in enumerate(values)]
    found = read_table(put(tmp_path, "a.jsonl", lines(*rows)))
    csv = "text,label\n" + "".join(f"t{i},{value}\n" for i, value in enumerate(values))
    assert read_table(put(tmp_path, "a.csv", csv)) == found
    assert found[1] == ["True", "False", "1", "2.5", "3"]


@pytest.mark.parametrize(
    ("cells", "expected"),
    [
        (["\"['spam', 'ad']\"", "[]", "\"['ad']\""], [["spam", "ad"], [], ["ad"]]),
        (['"[""spam"", ""ad""]"', "[]", '"[""ad""]"'], [["spam", "ad"], [], ["ad"]]),
    ],
)
def test_written_lists_are_lists(tmp_path, cells, expected):
    text = "text,labels\n" + "".join(f"t{i},{cell}\n" for i, cell in enumerate(cells))
    assert read_dataset(put(tmp_path, "a.csv", text)).y == expected


@pytest.mark.parametrize("label", [{"choices": ["a"]}, [[0, 3]], "http://x.example"])
def test_structures_and_links_are_no_classes(tmp_path, label):
    path = put(
        tmp_path, "a.jsonl", lines({"text": "Ann", "label": "x"}, {"text": "b", "label": label})
    )
    with pytest.raises(ValueError, match=r"line [12]"):
        read_dataset(path)


def test_lists_of_one_label_and_of_numbers(tmp_path):
    one = lines({"text": "a", "label": ["x"]}, {"text": "b", "label": ["y"]})
    assert read_dataset(put(tmp_path, "a.jsonl", one)).y == ["x", "y"]
    ids = lines({"text": "a", "labels": [2, 27]}, {"text": "b", "labels": [5]})
    assert read_dataset(put(tmp_path, "a.jsonl", ids)).y == [["2", "27"], ["5"]]
    flags = lines({"text": "a", "labels": [1, 0, 1]}, {"text": "b", "labels": [0, 0, 0]})
    with pytest.raises(ValueError, match=r"holds 0 and 1 for labels without names"):
        read_dataset(put(tmp_path, "a.jsonl", flags))


def test_cells_of_any_length(tmp_path):
    import csv

    path = put(tmp_path, "a.csv", f'text,label\n"{"long, " * 30_000}",x\nshort,y\n')
    before = csv.field_size_limit()
    assert len(read_table(path)[0][0]) == 180_000
    assert csv.field_size_limit() == before


def test_fasttext(tmp_path):
    text = "__label__spam win money\n__label__ham see you\n__label__ham __label__work so late\n"
    path = put(tmp_path, "a.txt", text)
    data = read_dataset(path)
    assert data.X == ["win money", "see you", "so late"]
    assert (data.task, data.y) == ("classification", [["spam"], ["ham"], ["ham", "work"]])
    assert read_texts(path) == data.X


# ---- JSON


def test_labels_beside_fields_of_other_formats(tmp_path):
    for more in ({"tokens": ["a", "b"]}, {"entities": None}, {"data": {"x": 1}}):
        rows = [{"text": "a b", "label": "spam", **more}, {"text": "c d", "label": "ham", **more}]
        data = read_dataset(put(tmp_path, "a.jsonl", lines(*rows)))
        assert (data.task, data.X, data.y) == ("classification", ["a b", "c d"], ["spam", "ham"])


def test_a_pair_alone_in_a_file_of_lines(tmp_path):
    path = put(tmp_path, "a.jsonl", '["Ann sings", {"entities": [[0, 3, "PER"]]}]\n')
    assert read_annotations(path).entities == [[(0, 3, "PER")]]


@pytest.mark.parametrize(
    ("value", "tool"),
    [
        ([{"rasa_nlu_data": {"common_examples": []}}], "Rasa"),
        ([{"tokenized_text": ["Ann"], "ner": [[0, 0, "PER"]]}], "GLiNER"),
        ([{"text": "Ann", "denotations": [{"span": {"begin": 0, "end": 3}}]}], "PubAnnotation"),
        ([{"text": "Ann", "entities": [{"text": "Ann", "start_pos": 0, "end_pos": 3}]}], "Flair"),
        ([[{"text": "Ann", "ner": "S-PER"}]], "Stanza"),
        ([{"header": {"dataset": "x"}}], "MRQA"),
    ],
)
def test_other_tools_are_refused_by_name(tmp_path, value, tool):
    with pytest.raises(ValueError, match=rf"a file of {tool}, which is not read: write "):
        read_dataset(put(tmp_path, "a.json", json.dumps(value)))


@pytest.mark.parametrize(
    ("text", "problem", "remedy"),
    [
        (
            "File,Line,Begin Offset,End Offset,Type\na.txt,0,0,3,PER\n",
            "Amazon Comprehend",
            '{"text": "Ann", "entities": [[0, 3, "PER"]]}\n',
        ),
        (
            "Ada/B-PER sings/O\nIt/O rains/O\n",
            "tags behind slashes, .* on each line",
            "Ada B-PER\nsings O\n\nIt O\n",
        ),
    ],
)
def test_tables_of_other_forms_are_refused_by_name(tmp_path, text, problem, remedy):
    with pytest.raises(ValueError, match=problem):
        read_dataset(put(tmp_path, "a.csv" if "," in text else "a.txt", text))
    assert read_dataset(put(tmp_path, "b", remedy)).task in ("entities", "tagging")


def test_argilla(tmp_path):
    record = {"text": "Ada sings", "tokens": ["Ada", "sings"], "annotation": [["PER", 0, 3]]}
    path = put(tmp_path, "a.jsonl", lines(record, {**record, "annotation": []}))
    assert read_dataset(path).y == [[(0, 3, "PER")], []]


def test_shapes_of_pandas(tmp_path):
    rows = [{"text": "win", "label": "spam"}, {"text": "see you", "label": "ham"}]
    table = {"schema": {"fields": []}, "data": rows}
    for value in (table, {"data": rows}):
        path = put(tmp_path, "a.json", json.dumps(value))
        assert read_dataset(path).y == ["spam", "ham"]
    columns = {"text": {"0": "win", "1": "see you"}, "label": {"0": "spam", "1": "ham"}}
    path = put(tmp_path, "b.json", json.dumps(columns))
    with pytest.raises(ValueError, match=r"to_json\(orient='records', lines=True\)"):
        read_dataset(path)
    pd = pytest.importorskip("pandas")
    pd.read_json(path).to_json(tmp_path / "c.jsonl", orient="records", lines=True)
    assert read_dataset(tmp_path / "c.jsonl").y == ["spam", "ham"]


def test_parquet_is_read_by_pandas(tmp_path):
    pd = pytest.importorskip("pandas")
    pytest.importorskip("pyarrow")
    frame = pd.DataFrame({"text": ["win", "see you"], "label": ["spam", "ham"]})
    frame.to_parquet(tmp_path / "a.parquet")
    data = read_dataset(tmp_path / "a.parquet")
    assert (data.task, data.X, data.y) == ("classification", ["win", "see you"], ["spam", "ham"])


def test_a_data_set_that_was_saved_names_from_hf(tmp_path):
    hf.Dataset.from_dict({"text": ["a"], "label": ["x"]}).save_to_disk(tmp_path / "d")
    with pytest.raises(ValueError, match=r"load_from_disk, and give one split to from_hf"):
        read_dataset(tmp_path / "d")


def test_half_a_surrogate_pair_names_its_line(tmp_path):
    path = put(
        tmp_path, "a.jsonl", '{"text": "x \\ud83d", "label": "y"}\n{"text": "b", "label": "z"}\n'
    )
    with pytest.raises(ValueError, match="line 1: the text holds half of a surrogate pair"):
        read_dataset(path)


def test_utf16_without_its_mark(tmp_path):
    path = tmp_path / "a.csv"
    path.write_bytes("text,label\nwin må,x\nso,y\n".encode("utf-16-le"))
    with pytest.raises(ValueError, match="encoding='utf-16-le'") as error:
        read_dataset(path)
    assert "latin-1" not in str(error.value)
    assert read_dataset(path, encoding="utf-16-le").X == ["win må", "so"]


# ---- tagging


@pytest.mark.parametrize(
    ("name", "text"),
    [
        ("a.csv", "sentence_id,words,labels\n0,Ada,B-PER\n0,sings,O\n1,It,O\n1,rains,O\n"),
        ("a.csv", "token,label\nAda,B-PER\nsings,O\n\nIt,O\nrains,O\n"),
        ("a.csv", 'sentence,labels\nAda sings,"B-PER,O"\nIt rains,"O,O"\n'),
        ("a.csv", "text,labels\nAda sings,B-PER O\nIt rains,O O\n"),
        (
            "a.jsonl",
            '{"tokens":"Ada sings","tags":"B-PER O"}\n{"tokens":"It rains","tags":"O O"}\n',
        ),
        (
            "a.json",
            '{"data": [{"words": ["Ada", "sings"], "labels": ["B-PER", "O"]},'
            ' {"words": ["It", "rains"], "labels": ["O", "O"]}]}',
        ),
    ],
)
def test_as_many_tags_as_words_are_tagging(tmp_path, name, text):
    data = read_dataset(put(tmp_path, name, text))
    assert (data.task, data.X) == ("tagging", [["Ada", "sings"], ["It", "rains"]])
    assert data.y == [["B-PER", "O"], ["O", "O"]]


# ---- annotations


def test_entities_in_the_cells_of_a_table(tmp_path):
    spans = "text,entities\nAda sings,\"[(0, 3, 'PER')]\"\nIt rains,[]\n"
    assert read_dataset(put(tmp_path, "a.csv", spans)).y == [[(0, 3, "PER")], []]
    region = '[{"start":0,"end":3,"text":"Ada","labels":["PER"]}]'
    tsv = f"id\ttext\tlabel\n1\tAda sings\t{region}\n"
    data = read_dataset(put(tmp_path, "a.tsv", tsv))
    assert (data.task, data.y) == ("entities", [[(0, 3, "PER")]])


def chosen(text, *labels, kind="choices", **more):
    result = [
        {"from_name": "s", "to_name": "text", "type": kind, "value": {kind: [label]}}
        for label in labels
    ]
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
    choice = {
        "from_name": "t",
        "to_name": "dialogue",
        "type": "choices",
        "value": {"choices": ["x"]},
    }
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


GOOD = (
    "#Text=Bo Lee naps\n1-1\t0-2\tBo\t*[1]\tPER[1]\t\n1-2\t3-6\tLee\t*[1]\tPER[1]\t\n"
    "1-3\t7-11\tnaps\t_\t_\t\n\n#Text=So\n2-1\t12-14\tSo\t_\t_\t\n"
)


@pytest.mark.parametrize(
    ("old", "new", "problem"),
    [
        ("\t_\t_\t\n\n", "\t_\n\n", "line 8: the token 'naps' has 1 cells for 2 features"),
        ("7-11", "7-10", "line 8: the token is 'naps', and its sentence has 'nap'"),
        ("1-2\t", "1-3\t", "line 7: the token's number is 1-3, not 1-2"),
        ("2-1\t", "1-1\t", "line 11: the number of the sentence is 1, behind 1"),
        ("\tLee\t", "\tLea\t", "line 7: the token is 'Lea'"),
        ("Lee\t*[1]", "Lee\t*[2]", "line 7: .* name other annotations"),
        ("Lee\t*[1]\tPER[1]", "Lee\t*[1]\tLOC[1]", "line 7: the annotation .* 'LOC' here"),
        ("#Text=Bo Lee naps\n", "#Text=Bo Lee naps\n#Text=Bo Lee naps\n", "no token holds"),
        ("1-2\t3-6\tLee\t*[1]\tPER[1]\t\n1-3", "1-2", "line 7: no token holds ' Lee '"),
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
        ("7|t|Iron.\n" + PUBTATOR, "line 2: the document '7' has two titles"),
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
    more = text.replace('<infon key="kind">', '<infon key="sure">no</infon><infon key="kind">')
    path = put(tmp_path, "b.xml", more)
    with pytest.raises(ValueError, match=r"\['sure', 'kind'\]: give feature="):
        read_annotations(path)
    assert read_annotations(path, feature="kind").entities == [[(0, 3, "PER")]]
    outside = text.replace("</passage>", "").replace("<annotation", "</passage><annotation", 1)
    with pytest.raises(ValueError, match="outside the passages"):
        read_annotations(put(tmp_path, "c.xml", outside))


def test_own_files_are_read(tmp_path):
    path = write_annotations(tmp_path / "a.tsv", ["at C:\\new now"], [[(3, 9, "X")]], "webanno")
    assert read_annotations(path).entities == [[(3, 9, "X")]]
    text = "17|t|x is so"
    path = write_annotations(tmp_path / "a.conll", [text], [[(0, 2, "X")]], "conll")
    assert read_annotations(path)[:2] == ([text], [[(0, 2, "X")]])
    assert read_annotations(path, "conll")[:2] == ([text], [[(0, 2, "X")]])
    path = write_annotations(tmp_path / "a.json", ["Ann", "b"], [[(0, 3, "X")], []], "doccano")
    assert [row["label"] for row in json.loads(path.read_text())] == [[[0, 3, "X"]], []]
    assert read_annotations(path).entities == [[(0, 3, "X")], []]


def test_what_another_reader_would_take_is_under_one_key(tmp_path):
    metadata = [{"id": 1, "source": "x", "tokens": ["a"], "cats": {"A": 1.0}, "skdice": 2}]
    path = write_annotations(tmp_path / "a.jsonl", ["Ann"], [[(0, 3, "PER")]], "prodigy", metadata)
    value = json.loads(path.read_text())
    assert value["skdice"] == {"tokens": ["a"], "cats": {"A": 1.0}, "skdice": 2}
    assert {*value} == {"id", "source", "skdice", "text", "spans"}
    assert read_annotations(path).metadata == metadata


def test_a_record_that_fits_two_formats_is_refused(tmp_path):
    span = {"start": 0, "end": 3, "label": "PER"}
    record = {"text": "Ann", "spans": [span], "label": [[0, 3, "LOC"]]}
    path = put(tmp_path, "a.jsonl", lines(record))
    with pytest.raises(ValueError, match=r"fits 'doccano' and 'prodigy': give format='doccano'"):
        read_dataset(path)
    assert read_dataset(path, format="doccano").y == [[(0, 3, "LOC")]]


# ---- speed and size


def calls(call, *args):
    """How many functions of skdice a call enters."""
    n = 0

    def profile(frame, event, arg):
        nonlocal n
        n += event == "call" and "skdice/datasets" in frame.f_code.co_filename

    sys.setprofile(profile)
    try:
        call(*args)
    finally:
        sys.setprofile(None)
    return n


def test_tables_of_tokens_are_read_in_one_pass(tmp_path):
    n = 2000
    names = [f"Sentence: {i}" if i % 10 == 0 else "" for i in range(n)]
    rows = "".join(f"{name},w{i},NN,O\n" for i, name in enumerate(names))
    path = put(tmp_path, "a.csv", "Sentence #,Word,POS,Tag\n" + rows)
    assert calls(read_dataset, path) < 5 * n  # generators of lines and cells, no other call
    columns = "".join(f"w{i % 7}\tO\n" + "\n" * (i % 10 == 9) for i in range(n))
    few, many = put(tmp_path, "few.txt", columns), put(tmp_path, "many.txt", columns * 20)
    assert calls(read_dataset, many) < 8 * calls(read_dataset, few)


def test_moving_many_entities_takes_time_in_proportion(tmp_path):
    n = 6000
    spans = [{"start": 4 * i + 1, "end": 4 * i + 4, "text": "Ann", "label": "P"} for i in range(n)]
    path = put(tmp_path, "a.jsonl", lines({"text": "Ann " * n, "entities": spans}))
    begin = time.process_time()
    with pytest.warns(UserWarning, match=f"{n} of them were moved"):
        found = read_annotations(path, on_misaligned="fix").entities[0]
    assert found == [(4 * i, 4 * i + 3, "P") for i in range(n)]
    assert time.process_time() - begin < 3  # 6000 searches of the whole text take 10 times as long


def test_a_folder_of_files_is_put_on_the_disk_once(tmp_path, monkeypatch):
    n = []
    monkeypatch.setattr(os, "fsync", lambda handle: n.append(handle))
    for tool in ("brat", "webanno"):
        write_annotations(tmp_path / tool, ["Ann"] * 50, [[(0, 3, "PER")]] * 50, tool)
    assert len(n) <= 4  # the folder, and its parent


def test_a_file_of_columns_takes_little_memory(tmp_path):
    rows = "".join(f"w{i * 7919 % 10_007}x\tO\n" + "\n" * (i % 16 == 15) for i in range(200_000))
    path = put(tmp_path, "a.conll", rows)
    tracemalloc.start()
    try:
        read_conll(path)
        _, peak = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert peak < 12 * len(rows)
