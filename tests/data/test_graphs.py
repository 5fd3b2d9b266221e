from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from evenmatch.data.graphs import (
    Amr,
    GraphText,
    LinearisedGraph,
    Triples,
    linearise_amr,
    read_graphs,
    write_graphs,
)
from evenmatch.errors import DataError, InputError

pytest.importorskip("penman", reason="penman is not installed")

SEE = """(s / see-01~e.4
      :ARG0 (i / i~e.1)
      :ARG1 (p / picture
            :name (n / name :op1 "True" :op2~e.3 "New (old) York"~e.7,8))
      :time (a / age-01
            :ARG1 i
            :manner-of s~e.2
            :ARG2 (t / temporal-quantity :quant -10)))"""


def test_a_graph_becomes_one_line_in_its_own_order() -> None:
    assert linearise_amr(SEE) == (
        "( see :ARG0 ( i ) :ARG1 ( picture :name ( name :op1 True :op2 New (old) York ) ) "
        ":time ( age :ARG1 i :manner-of see-01 :ARG2 ( temporal-quantity :quant -10 ) ) )"
    )


def test_a_variable_may_be_used_before_its_node() -> None:
    graph = "(a / and :op1 (s / say-01 :ARG0 b) :op2 (b / boy))"
    assert linearise_amr(graph) == "( and :op1 ( say :ARG0 boy ) :op2 ( boy ) )"


def test_a_concept_that_looks_like_a_variable_stays() -> None:
    assert linearise_amr("(b / b :mod (x / b-01 :op1 x))") == "( b :mod ( b :op1 b-01 ) )"


@pytest.mark.parametrize(
    ("graph", "said"),
    [
        ("(a / b\n  :x (c / d)", "x.amr line 7 opens a bracket that is never closed"),
        ("(a / b\n  :x (c / d)))", "x.amr line 8 has a surplus closing bracket"),
        ('(a / b\n\n  :x "c)', "x.amr line 9 opens a quote that does not end on its line"),
        ("(a / b)\n(c / d)", "x.amr line 8 has '\\(' outside the graph; give one graph"),
        ("boy", "x.amr line 7 has 'boy' outside the graph"),
        ("(a / b\n / c)", "x.amr line 8 is not a PENMAN graph: expected: ROLE"),
        ("(a / b\n :x )", "the graph at x.amr line 7 has ':x' without a value"),
        ("", "x.amr line 7 has no graph"),
    ],
)
def test_an_invalid_graph_is_refused_with_its_line(graph: str, said: str) -> None:
    with pytest.raises(InputError, match=said):
        linearise_amr(graph, where="x.amr", first=7)


WORDS = st.text(st.characters(exclude_categories=("C", "Z"), exclude_characters='"\\'), min_size=1)


@given(WORDS)
def test_any_string_is_preserved(word: str) -> None:
    assert linearise_amr(f'(n / name :op1 "{word}x")') == f"( name :op1 {word}x )"


def test_triples_are_written_as_words_after_special_tokens() -> None:
    triples = Triples((("A_B", "leaderName", "Jørn_(x)"), ("Run", "runwayName", '"14L/aB"')))
    assert triples.line == "<H> A B <R> leader Name <T> Jørn (x) <H> Run <R> runway Name <T> 14L/aB"


MIXED = [
    GraphText(Amr(SEE), ("I saw a “picture” .", "another"), "lpp.1"),
    GraphText(Triples((("A", "b", '"c, d"'),)), ("A b c, d.",)),
    GraphText(LinearisedGraph("copy this"), ("this",)),
]


@pytest.mark.parametrize("name", ["some.jsonl", "some.jsonl.gz"])
def test_graphs_written_as_records_are_read_again(tmp_path: Path, name: str) -> None:
    write_graphs(MIXED, tmp_path / name)
    assert read_graphs(tmp_path / name) == MIXED


@pytest.mark.parametrize("name", ["some.amr", "some.penman", "some.txt.gz"])
def test_graphs_written_in_penman_are_read_again(tmp_path: Path, name: str) -> None:
    graphs = [
        GraphText(Amr(SEE), ("I saw :: it .",), "lpp.1"),
        GraphText(Amr("(b / boy)"), ("A boy",)),
    ]
    write_graphs(graphs, tmp_path / name)
    assert read_graphs(tmp_path / name) == graphs


def test_a_penman_file_says_the_line_of_a_bad_graph(tmp_path: Path) -> None:
    path = tmp_path / "bad.txt"
    path.write_text(
        "# a head\n\n# ::id 1 ::date today\n# ::snt A boy\n(b / boy)\n\n\n"
        "# ::snt A girl\n(g / girl\n  :mod (x / y)\n"
    )
    with pytest.raises(InputError, match=r"bad.txt line 9 opens a bracket that is never closed"):
        read_graphs(path)


def test_a_name_ends_where_other_facts_begin(tmp_path: Path) -> None:
    path = tmp_path / "a.amr"
    path.write_text("# ::id x.1 ::date today\n# ::snt A boy\n(b / boy)")
    assert read_graphs(path) == [GraphText(Amr("(b / boy)"), ("A boy",), "x.1")]


@pytest.mark.parametrize(
    ("line", "said"),
    [
        ('{"amr": "(a / b\\n :x (c / d)", "snt": "x"}', "line 1: graph line 1 opens a bracket"),
        ('{"triples": [["a", "b"]], "refs": ["x"]}', r"line 1 has a triple \['a', 'b'\]; expected"),
        ('{"triples": [], "refs": ["x"]}', "line 1 has no graph: expected 'amr'"),
        ('{"source": "a", "refs": []}', "line 1 needs 'references' .a list of strings"),
        ('{"source": "a"}', "line 1 needs 'references'.*got None"),
        ("", "there are no graphs in"),
    ],
)
def test_a_record_that_is_no_graph_is_refused(tmp_path: Path, line: str, said: str) -> None:
    path = tmp_path / "bad.jsonl"
    path.write_text(line)
    with pytest.raises(InputError, match=said):
        read_graphs(path)


def test_a_graph_without_text_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "bad.amr"
    path.write_text("\n# ::id 1\n(b / boy)\n")
    with pytest.raises(InputError, match=r"bad.amr line 2 has no text; expected '# ::snt TEXT'"):
        read_graphs(path)


def test_graphs_without_texts_are_read_where_none_are_needed(tmp_path: Path) -> None:
    (tmp_path / "a.amr").write_text("# ::id x1\n(b / boy)\n\n")
    (tmp_path / "a.jsonl").write_text('{"source": "a line"}\n{"source": "b", "refs": ["c"]}\n')
    (found,) = read_graphs(tmp_path / "a.amr", need_texts=False)
    assert (found.graph.line, found.references, found.id) == ("( boy )", (), "x1")
    records = read_graphs(tmp_path / "a.jsonl", need_texts=False)
    assert [each.references for each in records] == [(), ("c",)]
    (tmp_path / "a.jsonl").write_text('{"source": "a", "references": [3]}\n')
    with pytest.raises(InputError, match="needs 'references'"):
        read_graphs(tmp_path / "a.jsonl", need_texts=False)


def test_a_missing_file_is_an_error(tmp_path: Path) -> None:
    with pytest.raises(DataError, match=r"there is no file .*none.jsonl; give a file of graphs"):
        read_graphs(tmp_path / "none.jsonl")


def test_only_amr_with_one_text_goes_into_a_penman_file(tmp_path: Path) -> None:
    for each in MIXED:
        with pytest.raises(InputError, match=r"cannot be written to a PENMAN file.*write .jsonl"):
            write_graphs([each], tmp_path / "x.amr")
    with pytest.raises(InputError, match=r"cannot write graphs to .*x.csv; name it .jsonl"):
        write_graphs(MIXED, tmp_path / "x.csv")


@pytest.mark.parametrize(
    ("name", "count"),
    [("webnlg-v2/dev.jsonl.gz", 1619), ("amr-little-prince/lpp_v3.0.jsonl.gz", 1562)],
)
def test_public_graphs_are_read_whole(data: Path, name: str, count: int) -> None:
    if not (data / name).is_file():
        pytest.skip(f"EVENMATCH_DATA has no {name}")
    graphs = read_graphs(name)
    assert len(graphs) == count
    assert all("\n" not in each.graph.line and "_" not in each.graph.line for each in graphs[:9])
