"""Naive validators of WebAnno, PubTator and BioC files, to hold the readers of skdice against.

Each validator reads a file by a few lines of its own, and gives its text and entities, or says what
contradicts itself within the layer that is read. `judged` damages sound files and counts what the
reader makes of them: an error is right, and so is the reading of the validator, or of the file
before it was damaged. Another reading is wrong.
"""

from __future__ import annotations

import random
import re
import sys
import tempfile
import warnings
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any
from xml.dom import minidom
from xml.parsers.expat import ExpatError
from xml.sax.saxutils import escape

from skdice.datasets import read_annotations

Reading = list[tuple[str, list[tuple[int, int, str]]]]  # of each text its entities


class ContradictionError(ValueError):
    """What a validator finds in a file."""


def need(holds: Any, problem: str) -> None:
    """Refuse a file."""
    if not holds:
        raise ContradictionError(problem)


def same(a: str, b: str) -> bool:
    """Compare texts as tools write them, with other white space."""
    return a.split() == b.split() or "".join(a.split()) == "".join(b.split())


# ---- PubTator


def pubtator(text: str) -> Reading:
    """Blocks of a title, an abstract, entities and relations."""
    found = []
    seen = ""
    for block in re.split(r"\n(?:[^\S\n]*\n)+|\n(?=[^|\t\n]+\|t\|)", text.strip("\n")):
        title, *rest = block.split("\n")
        at = re.fullmatch(r"([^|\t]+)\|t\|(.*)", title)
        need(at, "a block begins without a title")
        name = at[1]
        need(rest and rest[0].startswith(f"{name}|a|"), "no abstract of this title")
        need(name != seen, "a second title")
        seen = name
        abstract = rest[0].removeprefix(f"{name}|a|")
        whole, entities = f"{at[2]}\n{abstract}" if abstract else at[2], []
        for line in rest[1:]:
            cells = line.split("\t")
            need(cells[0].strip() == name, "a line of another document")
            if len(cells) in (4, 5) and cells[1].strip()[:1].isalpha():
                continue  # a relation
            need(len(cells) >= 5, "cells are missing")
            need(all(c.strip().isdigit() for c in cells[1:3]), "offsets are no numbers")
            start, end = map(int, cells[1:3])
            need(start < end <= len(whole), "outside the text")
            need(same(whole[start:end], cells[3]), "another text at the offsets")
            need(cells[4].strip(), "no type")
            entities.append((start, end, cells[4].strip()))
        found.append((whole, entities))
    return found


# ---- BioC


def parts(node: Any, *names: str) -> list[Any]:
    return [child for child in node.childNodes if child.nodeName in names]


def held(node: Any, name: str) -> str | None:
    """The text of the one child of a name, if it is there."""
    some = parts(node, name)
    need(len(some) < 2, f"<{name}> twice")
    return None if not some else "".join(c.data for c in some[0].childNodes if hasattr(c, "data"))


def whole_number(text: str | None) -> int:
    need(text is not None and text.strip().isdigit(), f"{text!r} is no number")
    return int(str(text))


def bioc(text: str) -> Reading:
    """Documents of passages with annotations."""
    try:
        root = minidom.parseString(text.encode()).documentElement
    except (ExpatError, ValueError, LookupError) as error:
        raise ContradictionError(f"no XML: {error}") from error
    found = []
    strays = ("passage", "annotation", "location", "text")
    need(not parts(root, *strays), "outside a document")
    for document in parts(root, "document"):
        need(not parts(document, *strays[1:]), "outside a passage")
        whole, entities = "", []
        for passage in parts(document, "passage"):
            offset, piece = whole_number(held(passage, "offset")), held(passage, "text")
            need(offset >= len(whole), "a passage begins in another")
            whole += "\n" * (offset - len(whole)) * bool(whole) + (piece or "")
            moved = len(whole) - len(piece or "") - offset
            for item in parts(passage, "annotation"):
                (place,) = parts(item, "location") or [None]
                need(place is not None, "no location")
                start = whole_number(place.getAttribute("offset")) + moved
                end = start + whole_number(place.getAttribute("length"))
                need(0 <= start < end <= len(whole), "outside the text")
                mention = held(item, "text")
                need(mention is None or same(whole[start:end], mention), "another text there")
                kinds = [i for i in parts(item, "infon") if i.getAttribute("key") == "type"]
                names = {"".join(c.data for c in kind.childNodes) for kind in kinds}
                need(len(names) == 1, "no type, or two")
                (label,) = names
                need(label.strip(), "no type")
                entities.append((start, end, label))
        found.append((whole, entities))
    return found


# ---- WebAnno


def plain(text: str) -> str:
    return re.sub(r"\\(.)", lambda m: {"t": "\t", "n": "\n", "r": "\r"}.get(m[1], m[1]), text)


def webanno(text: str) -> Reading:
    """Sentences of tokens with one layer of an identifier and a value."""
    lines = text.split("\n")
    need(next(filter(str.strip, lines), "").startswith("#FORMAT=WebAnno TSV 3"), "no header")
    layers = [line for line in lines if line.startswith("#T_SP=")]
    need(len(layers) == 1, "no layer, or two")
    names = layers[0].rstrip().split("|")[1:]
    need("value" in names, "no feature of values")
    units = bytearray()  # of the text, in UTF-16
    labels: dict[Any, tuple[str, list[tuple[int, int]]]] = {}
    sentence, covered, number = None, set(), (0, 0)

    def close() -> None:
        if sentence is not None:
            pairs = sentence.encode("utf-16-le")
            left = [i for i in range(len(pairs) // 2) if i not in covered]
            blank = all(pairs[2 * i : 2 * i + 2].decode("utf-16-le", "replace").isspace()
                        for i in left)  # fmt: skip
            need(blank, "no token covers a part")

    base = 0
    for i, line in enumerate(lines):
        if line.startswith("#Text="):
            if lines[i - 1].startswith("#Text="):
                sentence = f"{sentence}\n{plain(line[6:])}"
                continue
            close()
            sentence, covered, base = plain(line[6:]), set(), None
        elif line.strip() and not line.startswith("#"):
            need(sentence is not None, "a token before its sentence")
            cells = line.split("\t")
            if cells[-1] == "":
                cells.pop()
            need(len(cells) == 3 + len(names) and "" not in cells, "cells are missing")
            at, place = re.fullmatch(r"(\d+)-(\d+)(\.\d+)?", cells[0]), cells[1].split("-")
            need(at and len(place) == 2 and all(p.isdigit() for p in place), "no token")
            start, end, token = int(place[0]), int(place[1]), plain(cells[2])
            pair = int(at[1]), int(at[2])
            if base is None:
                blank = len(sentence) - len(sentence.lstrip())
                base = start - blank
                need(pair[0] > number[0], "the sentence's number")
                number = pair[0], 0
                gap = base - len(units) // 2
                need(0 <= gap < 10_000, "the sentence stands in another, or far away")
                units += ("\n" * gap + sentence).encode("utf-16-le")
            is_part = at[3] is not None
            need(pair == (number[0], number[1] + (not is_part)), "the token's number")
            number = pair
            there = bytes(units[2 * start : 2 * end]).decode("utf-16-le", "replace")
            after = lines[i + 1] if i + 1 < len(lines) else ""
            is_cut = not is_part and re.match(rf"{at[0]}\.\d", after)
            need(there == token or (is_cut and there.startswith(token)), "another text there")
            need(base <= start < end, "outside the sentence")
            if not is_part:
                covered |= set(range(start - base, end - base))
            row = [re.split(r"(?<!\\)\|", cell) for cell in cells[3:]]
            ids = [[m[1] if (m := re.search(r"\[(\d+)\]$", v)) else "" for v in values]
                   for values in row if values != ["_"]]  # fmt: skip
            bare = [re.sub(r"\[\d+\]$", "", value) for values in row for value in values]
            need("" not in bare, "an empty value")
            need(all(each == ids[0] for each in ids), "cells name other annotations")
            values = row[names.index("value")] if ids else []
            for k, value in enumerate(values):
                name = ids[0][k] if k < len(ids[0]) else ""
                label = plain(re.sub(r"\[\d+\]$", "", value))
                label = "NamedEntity" if label in ("*", "_") else label
                known = labels.setdefault((name, "") if name else (i, k), (label, []))
                need(known[0] == label, "an annotation with two values")
                known[1].append((start, end))
    close()
    whole = bytes(units).decode("utf-16-le")
    places = {0: 0}  # of UTF-16 in code points
    for i, c in enumerate(whole):
        places[max(places) + len(c.encode("utf-16-le")) // 2] = i + 1
    entities = [(places[min(a for a, _ in p)], places[max(b for _, b in p)], label)
                for label, p in labels.values()]  # fmt: skip
    need(sentence is not None, "no sentence")
    return [(whole, entities)]


# ---- the readers held against them

VALIDATORS: dict[str, tuple[str, Callable[[str], Reading]]] = {
    "webanno": ("a.tsv", webanno),
    "pubtator": ("a.pubtator", pubtator),
    "bioc": ("a.xml", bioc),
}
TEXTS = [
    "Ann Lee lives in Rome \U0001f44d.\nShe sings in Oslo with Bo.",
    "Gene A causes flu.\nWe saw flu in mice.",
    "It rains.",
]
ENTITIES = [[(0, 7, "PER"), (17, 21, "LOC"), (38, 42, "LOC")], [(14, 17, "D"), (26, 29, "D")], []]

WEBANNO = """\
#FORMAT=WebAnno TSV 3.3
#T_SP=de.tudarmstadt.ukp.dkpro.core.api.ner.type.NamedEntity|identifier|value


"""
SENTENCES = (
    "#Text=Ann Lee lives in Rome \U0001f44d.\n"
    "1-1\t0-3\tAnn\t*[1]\tPER[1]\t\n1-2\t4-7\tLee\t*[1]\tPER[1]\t\n1-3\t8-13\tlives\t_\t_\t\n"
    "1-4\t14-16\tin\t_\t_\t\n1-5\t17-21\tRome\t*[2]\tLOC[2]\t\n1-6\t22-24\t\U0001f44d\t_\t_\t\n"
    "1-7\t24-25\t.\t_\t_\t\n\n#Text=She sings in Oslo with Bo.\n"
    "2-1\t26-29\tShe\t_\t_\t\n2-2\t30-35\tsings\t_\t_\t\n2-3\t36-38\tin\t_\t_\t\n"
    "2-4\t39-43\tOslo\t*[3]\tLOC[3]\t\n2-5\t44-48\twith\t_\t_\t\n2-6\t49-51\tBo\t_\t_\t\n"
    "2-7\t51-52\t.\t_\t_\t\n",
    "#Text=Gene A causes flu.\n"
    "1-1\t0-4\tGene\t_\t_\t\n1-2\t5-6\tA\t_\t_\t\n1-3\t7-13\tcauses\t_\t_\t\n"
    "1-4\t14-17\tflu\t*[1]\tD[1]\t\n1-5\t17-18\t.\t_\t_\t\n\n#Text=We saw flu in mice.\n"
    "2-1\t19-21\tWe\t_\t_\t\n2-2\t22-25\tsaw\t_\t_\t\n2-3\t26-29\tflu\t*[2]\tD[2]\t\n"
    "2-4\t30-32\tin\t_\t_\t\n2-5\t33-37\tmice\t_\t_\t\n2-6\t37-38\t.\t_\t_\t\n",
)


def slipped(text: str, draw: random.Random) -> str:
    """A text with one slip: a character for another, or two lines or cells that changed places."""
    how, lines = draw.choice(["character", "lines", "cells"]), text.split("\n")
    if how == "character":
        i = draw.randrange(len(text))
        return text[:i] + draw.choice(text + "0123456789" * 20) + text[i + 1 :]
    if how == "lines":
        a, b = draw.sample(range(len(lines)), 2)
        lines[a], lines[b] = lines[b], lines[a]
        return "\n".join(lines)
    a = draw.randrange(len(lines))
    cells = re.split(r"(\W)", lines[a])
    i, j = draw.choices(range(len(cells)), k=2)
    cells[i], cells[j] = cells[j], cells[i]
    return "\n".join([*lines[:a], "".join(cells), *lines[a + 1 :]])


def xml_of_bioc(texts: list[str], entities: list[Any]) -> str:
    """A collection of a document for each text."""
    documents = []
    for i, (text, marked) in enumerate(zip(texts, entities, strict=True)):
        notes = "".join(
            f'<annotation id="T{n}"><infon key="type">{escape(label)}</infon>'
            f'<location offset="{start}" length="{end - start}"/>'
            f"<text>{escape(text[start:end])}</text></annotation>\n"
            for n, (start, end, label) in enumerate(marked)
        )
        passage = f"<passage><offset>0</offset><text>{escape(text)}</text>\n{notes}</passage>"
        documents.append(f"<document><id>{i}</id>{passage}</document>\n")
    return f"<collection>\n{''.join(documents)}</collection>\n"


def pubtator_of(texts: list[str], entities: list[Any]) -> str:
    """A block for each text, whose first line is the title."""
    blocks = []
    for i, (text, marked) in enumerate(zip(texts, entities, strict=True)):
        title, _, abstract = text.partition("\n")
        lines = [f"{i}\t{a}\t{b}\t{text[a:b]}\t{label}\n" for a, b, label in marked]
        blocks.append(f"{i}|t|{title}\n{i}|a|{abstract}\n" + "".join(lines))
    return "\n".join(blocks)


def sound_files() -> dict[str, list[str]]:
    """Files of each format that hold `TEXTS` and `ENTITIES`; of WebAnno each holds one text."""
    return {
        "webanno": [WEBANNO + sentences for sentences in SENTENCES],
        "pubtator": [pubtator_of(TEXTS, ENTITIES)],
        "bioc": [xml_of_bioc(TEXTS, ENTITIES)],
    }


def judged(
    wanted: int, damage: Callable[[str, random.Random], str]
) -> Iterator[tuple[str, int, int, int, int]]:
    """Of each format: its name, files, refused by the reader, read as the validator, and wrong."""
    warnings.simplefilter("ignore")
    draw = random.Random(0)
    with tempfile.TemporaryDirectory() as folder:
        for tool, (name, validate) in VALIDATORS.items():
            path, whole = Path(folder) / name, sound_files()[tool]
            counts = [0, 0, 0]
            for i in range(wanted):
                sound = whole[i % len(whole)]
                text = (damage, slipped)[i // 2 % 2](sound, draw)
                path.write_text(text)
                how = verdict(path, text, validate(sound), validate)
                counts[how] += 1
                if how == 2:
                    print(f"{tool}: {text!r}", file=sys.stderr)
            yield tool, wanted, *counts


def verdict(path: Path, text: str, before: Reading, validate: Callable[[str], Reading]) -> int:
    """0 of a file that is refused, 1 of one that is read rightly, 2 of one that is not."""
    try:
        texts, entities, _ = read_annotations(path, offsets=(
            "auto" if path.suffix == ".tsv" else "codepoints"))  # fmt: skip
    except (ValueError, TypeError, OSError):
        return 0
    found = [(x, sorted(row)) for x, row in zip(texts, entities, strict=True)]
    try:
        expected = validate(text)
    except ContradictionError as error:
        expected, problem = before, str(error)
    else:
        problem = "it is sound"
    if found == [(x, sorted(row)) for x, row in expected]:
        return 1
    print(f"{problem}: {found} and not {expected}", file=sys.stderr)
    return 2
