"""The validators of damaged files, examples/benchmarks/validators.py."""

from __future__ import annotations

import pytest

from tests.examples.scripts import PEERS, scripts


@pytest.fixture(scope="module")
def found():
    with scripts(PEERS.parent, "formats", "validators") as modules:
        yield modules


CASES = {
    "pubtator": [
        ("1|t|Flu.\n1|a|\n1\t0\t3\tFlu\tD\n", [("Flu.", [(0, 3, "D")])]),
        ("1|a|Flu.\n1\t0\t3\tFlu\tD\n", None),
        ("1|t|Flu.\n1|a|\n2\t0\t3\tFlu\tD\n", None),
        ("1|t|Flu.\n1|a|\n1\t1\t3\tFlu\tD\n", None),
    ],
    "bioc": [
        (
            "<collection><document><passage><offset>0</offset><text>Flu.</text><annotation>"
            '<infon key="type">D</infon><location offset="0" length="3"/><text>Flu</text>'
            "</annotation></passage></document></collection>",
            [("Flu.", [(0, 3, "D")])],
        ),
        (
            "<collection><document><passage><offset>0</offset><text>Flu.</text></passage>"
            '<annotation><location offset="0" length="3"/></annotation></document></collection>',
            None,
        ),
        (
            "<collection><document><passage><offset>0</offset><text>Flu.</text><annotation>"
            '<infon key="type">D</infon><infon key="type">E</infon>'
            '<location offset="0" length="3"/>'
            "</annotation></passage></document></collection>",
            None,
        ),
        (
            "<collection><document><passage><text>Rome</text><text>Flu.</text></passage>"
            "</document></collection>",
            None,
        ),
    ],
    "webanno": [
        (f"#FORMAT=WebAnno TSV 3.3\n#T_SP=a.NamedEntity|identifier|value\n\n{sentence}", expected)
        for sentence, expected in [
            ("#Text=Flu.\n1-1\t0-3\tFlu\t*\tD\t\n1-2\t3-4\t.\t_\t_\t\n",
             [("Flu.", [(0, 3, "D")])]),
            ("#Text=Flu.\n1-1\t0-3\tFlu\t*[1]\tD[2]\t\n1-2\t3-4\t.\t_\t_\t\n", None),
            ("#Text=Flu.\n1-1\t0-3\tFlu\t|\t_\t\n1-2\t3-4\t.\t_\t_\t\n", None),
            ("#Text=Flu.\n1-1\t0-3\tFlu\t_\t_\t\n", None),
            ("#Text=Flu.\n1-1\t0-2\tFlu\t_\t_\t\n1-2\t3-4\t.\t_\t_\t\n", None),
        ]
    ],
}  # fmt: skip


@pytest.mark.parametrize(
    ("tool", "text", "expected"), [(tool, *case) for tool in CASES for case in CASES[tool]]
)
def test_the_validator_and_the_reader_agree(tmp_path, found, tool, text, expected):
    name, validate = found["validators"].VALIDATORS[tool]
    (tmp_path / name).write_text(text)
    before = [("Flu.", [(0, 3, "D")])]
    verdict = found["validators"].verdict(tmp_path / name, text, before, validate)
    if expected is None:
        with pytest.raises(found["validators"].ContradictionError):
            validate(text)
        assert verdict == 0  # the reader refuses it
    else:
        assert validate(text) == expected
        assert verdict == 1


def test_damaged_files_are_refused_or_read_as_they_are(found):
    tables = list(found["validators"].judged(40, found["formats"].changed_text))
    assert [row[0] for row in tables] == ["webanno", "pubtator", "bioc"]
    assert all(sum(row[2:]) == 40 and row[4] == 0 and row[3] > 0 for row in tables)
