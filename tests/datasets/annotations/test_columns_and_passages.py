"""WebAnno, PubTator and BioC as their tools write them, in made-up samples."""

from __future__ import annotations

import json

import pytest

from skdice.datasets import read_annotations, read_dataset

NAMED = "de.tudarmstadt.ukp.dkpro.core.api.ner.type.NamedEntity|identifier|value"


def put(folder, name, text):
    (folder / name).write_bytes(text.encode())
    return folder / name


def webanno(*blocks, layers=(NAMED,), version="3.3"):
    head = f"#FORMAT=WebAnno TSV {version}\n" + "".join(f"#T_SP={layer}\n" for layer in layers)
    return head + "\n\n" + "\n".join(blocks)


def test_webanno(tmp_path):
    first = ("#Text=Bo Lee naps in Oslo.\n"
             "1-1\t0-2\tBo\t*[1]\tPER[1]\t\n1-2\t3-6\tLee\t*[1]\tPER[1]\t\n"
             "1-3\t7-11\tnaps\t_\t_\t\n1-4\t12-14\tin\t_\t_\t\n1-5\t15-19\tOslo\t*\tLOC\t\n"
             "1-6\t19-20\t.\t_\t_\t\n")  # fmt: skip
    second = ("#Text=It snows.\n2-1\t21-23\tIt\t_\t_\t\n2-2\t24-29\tsnows\t_\t_\t\n"
              "2-2.1\t24-28\tsnow\t*\tMISC\t\n2-3\t29-30\t.\t_\t_\t\n")  # fmt: skip
    path = put(tmp_path, "a.tsv", webanno(first, second))
    found = read_annotations(path)
    assert found.texts == ["Bo Lee naps in Oslo.\nIt snows."]
    assert found.entities == [[(0, 6, "PER"), (15, 19, "LOC"), (24, 28, "MISC")]]
    data = read_dataset(path)
    assert (data.task, data.y) == ("entities", found.entities)


def test_webannos_layers_stacks_and_escapes(tmp_path):
    pos = "de.tudarmstadt.ukp.dkpro.core.api.lexmorph.type.pos.POS|PosValue"
    lines = ("#Text=A\\tb \U0001f44d c\n"
             "1-1\t0-1\tA\tX[1]|Y\\|z[2]\tNN\t\n1-2\t2-3\tb\tY\\|z[2]\tNN\t\n"
             "1-3\t4-6\t\U0001f44d\t_\tSYM\t\n1-4\t7-8\tc\t*\t_\t\n")  # fmt: skip
    layers = "webanno.custom.Span|kind", pos
    path = put(tmp_path, "a.tsv", webanno(lines, layers=layers, version="3.2"))
    found = read_annotations(path)
    assert found.texts == ["A\tb \U0001f44d c"]
    assert found.entities == [[(0, 1, "X"), (0, 3, "Y|z"), (6, 7, "Span")]]


PUBTATOR = ("7|t|Iron helps.\n7|a|We gave iron to mice.\n7\t0\t4\tIron\tChemical\tD1\n"
            "7\t20\t24\tiron\tChemical\n7\tCID\tD1\tD2\n\n8|t|Nothing.\n8|a|\n")  # fmt: skip


def test_pubtator(tmp_path):
    path = put(tmp_path, "a.txt", PUBTATOR)
    found = read_annotations(path)
    assert found.texts == ["Iron helps.\nWe gave iron to mice.", "Nothing."]
    assert found.entities == [[(0, 4, "Chemical"), (20, 24, "Chemical")], []]
    assert found.metadata == [{"id": "7", "identifiers": ["D1", None]}, {"id": "8"}]
    assert read_dataset(path).task == "entities"


PASSAGES = [
    {"offset": 0, "text": "Iron helps.", "annotations": []},
    {"offset": 12, "text": "We gave iron.", "annotations": [
        {"id": "1", "infons": {"type": "Chemical", "identifier": "D1"}, "text": "iron",
         "locations": [{"offset": 20, "length": 4}]}]},
]  # fmt: skip


@pytest.mark.parametrize("wrap", [lambda d: {"documents": [d]}, lambda d: d, lambda d: [d],
                                  lambda d: {"PubTator3": [d]}])  # fmt: skip
def test_bioc_in_json(tmp_path, wrap):
    document = {"id": "7", "infons": {"year": "2020"}, "passages": PASSAGES}
    path = put(tmp_path, "a.json", json.dumps(wrap(document)))
    found = read_annotations(path)
    assert found[:2] == (["Iron helps.\nWe gave iron."], [[(20, 24, "Chemical")]])
    assert found.metadata == [{"id": "7", "year": "2020", "identifiers": ["D1"]}]
    assert read_dataset(path).task == "entities"


def test_bioc_in_xml(tmp_path):
    text = """<?xml version="1.0" encoding="UTF-8"?>
<!DOCTYPE collection SYSTEM "BioC.dtd">
<collection><source>x</source><date/><key/><document><id>7</id><passage>
<infon key="type">title</infon><offset>0</offset><text>Iron &amp; tin.</text>
<annotation id="T1"><infon key="type">Chemical</infon><location offset="0" length="4"/>
<text>Iron</text></annotation></passage><passage><offset>12</offset><sentence><offset>12</offset>
<text>We gave tin.</text><annotation id="T2"><infon key="type">Chemical</infon>
<location offset="20" length="3"/><text>tin</text></annotation></sentence></passage></document>
</collection>"""
    found = read_annotations(put(tmp_path, "a.xml", text))
    assert found.texts == ["Iron & tin.\nWe gave tin."]
    assert found.entities == [[(0, 4, "Chemical"), (20, 23, "Chemical")]]
    with pytest.raises(ValueError, match=r"a.xml'.* no XML"):
        read_annotations(put(tmp_path, "a.xml", text[:-20]))
    with pytest.raises(ValueError, match=r"a.xml'.* is 'x', not a whole number"):
        read_annotations(put(tmp_path, "a.xml", text.replace('offset="20"', 'offset="x"')))
