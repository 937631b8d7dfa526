"""Files: what is written is read back, and a bad file is refused with its name and line."""

import json
from pathlib import Path

import networkx as nx
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from pebble.cdag import attention_dag, ffn_dag, gemm_dag, tree_dag
from pebble.cdag.io import SUFFIXES, read_dag, write_dag
from pebble.errors import InputError
from tests.cdag.strategies import any_dags

ROUND_TRIP = settings(
    deadline=None, max_examples=60, suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow]
)
TEXT = st.text(st.characters(categories=("L", "N", "P", "S")), min_size=1, max_size=6)


def same(a: nx.DiGraph, b: nx.DiGraph) -> bool:
    """Equal, in names, attributes, edges, and the order of all of them."""
    return list(a.nodes(data=True)) == list(b.nodes(data=True)) and set(a.edges) == set(b.edges)


@pytest.mark.parametrize("suffix", SUFFIXES)
@pytest.mark.parametrize(
    "dag",
    [
        gemm_dag(2, 2, 2),
        gemm_dag(3, 2, 2, tile=(2, 1, 1), in_bytes=2, out_bytes=4, accumulate=True),
        gemm_dag(2, 1, 2, form="separate"),
        ffn_dag(1, 2, 2, gated=True),
        attention_dag(2, 2, 1, heads=2, softmax="online"),
        tree_dag(1),
    ],
)
def test_families_survive(tmp_path: Path, dag: nx.DiGraph, suffix: str) -> None:
    path = tmp_path / f"dag{suffix}"
    write_dag(dag, path)
    assert same(read_dag(path), dag)
    before = path.read_bytes()
    write_dag(read_dag(path), path)
    assert path.read_bytes() == before


@ROUND_TRIP
@given(any_dags(most_weight=5), st.sampled_from(SUFFIXES), st.data())
def test_any_dag_survives(tmp_path: Path, dag: nx.DiGraph, suffix: str, data: st.DataObject) -> None:
    for _, attributes in dag.nodes(data=True):
        if "accumulator" in attributes:
            continue
        if data.draw(st.booleans()):
            attributes["operand"] = data.draw(TEXT)
        if data.draw(st.booleans()):
            attributes["index"] = tuple(data.draw(st.lists(st.integers(-3, 99), max_size=3)))
        if data.draw(st.booleans()) and attributes.get("weight") == 1:
            del attributes["weight"]
    names = data.draw(st.lists(TEXT, min_size=len(dag), max_size=len(dag), unique=True))
    renamed = nx.relabel_nodes(dag, dict(zip(dag, names, strict=True)))
    for _, attributes in renamed.nodes(data=True):
        if "accumulator" in attributes:
            attributes["accumulator"] = names[list(dag).index(attributes["accumulator"])]
    write_dag(renamed, tmp_path / f"dag{suffix}")
    assert same(read_dag(tmp_path / f"dag{suffix}"), renamed)


@ROUND_TRIP
@given(any_dags(most_weight=5))
def test_networkx_reads_what_is_written(tmp_path: Path, dag: nx.DiGraph) -> None:
    write_dag(dag, tmp_path / "dag.json")
    graph = nx.node_link_graph(json.loads((tmp_path / "dag.json").read_text()), edges="edges")
    assert same(graph, dag)
    write_dag(dag, tmp_path / "dag.graphml")
    assert set(nx.read_graphml(tmp_path / "dag.graphml").edges) == set(dag.edges)


def test_networkx_files_are_read(tmp_path: Path) -> None:
    dag = nx.DiGraph([(0, 2), (1, 2)])
    dag.nodes[2]["weight"] = 3
    for key in ("edges", "links"):
        (tmp_path / "dag.json").write_text(json.dumps(nx.node_link_data(dag, edges=key)))
        assert dict(read_dag(tmp_path / "dag.json").nodes(data=True)) == {"0": {}, "1": {}, "2": {"weight": 3}}
    dag.nodes[2]["weight"] = 3.0
    nx.write_graphml(dag, tmp_path / "dag.graphml")
    assert read_dag(tmp_path / "dag.graphml").nodes["2"]["weight"] == 3


def test_names_become_texts(tmp_path: Path) -> None:
    dag = nx.DiGraph([(("a", 1), 0), (0, 5), (5, 9)])
    dag.nodes[5]["accumulator"] = 9
    dag.remove_edge(("a", 1), 0)
    dag.remove_node(("a", 1))
    write_dag(dag, tmp_path / "dag.json")
    assert dict(read_dag(tmp_path / "dag.json").nodes(data=True)) == {"0": {}, "5": {"accumulator": "9"}, "9": {}}


# two sources, two sums, in each layout of the format
DATABASE = """%% header
% a comment
2 4 6
0 1
1 1 1
0 0
1 0
2 1
3 1 7
0 0
0 2
0 3
1 1
1 2
1 3
"""
PINS_FIRST = """2 4 6 % numbers
0 0
0 2
0 3
1 1
1 2
1 3
0 5 1
1 5 1
2 5 1
3 5 1
"""
PINS_THEN_ALL = """2 4 6
0 0
0 2
0 3
1 1
1 2
1 3

0 1
1 1
0 9
1 9
2 9
3 9
"""
PINS_ONLY = "\n".join(PINS_FIRST.split("\n")[:7])


@pytest.mark.parametrize("text", [DATABASE, PINS_FIRST, PINS_THEN_ALL, PINS_ONLY, DATABASE.replace("\n", "\r\n")])
def test_hyperdag_layouts(tmp_path: Path, text: str) -> None:
    (tmp_path / "dag.hdag").write_text(text, newline="")
    dag = read_dag(tmp_path / "dag.hdag")
    assert list(dag.nodes(data=True)) == [("0", {}), ("1", {}), ("2", {}), ("3", {})]
    assert set(dag.edges) == {("0", "2"), ("0", "3"), ("1", "2"), ("1", "3")}


def test_hyperdag_weights_and_parallel_edges(tmp_path: Path) -> None:
    path = tmp_path / "dag.hdag"
    # the communication weight of the hyperedge; the second hyperedge of node 0 repeats an edge
    path.write_text("2 2 4\n0 3\n1 3\n0 0\n1 0\n0 0\n0 1\n1 0\n1 1\n")
    dag = read_dag(path)
    assert list(dag.edges) == [("0", "1")]
    assert dag.nodes["0"] == {"weight": 3}
    assert read_dag(path, unit_weights=True).nodes["0"] == {}
    # the memory weight comes after it
    path.write_text("1 2 2\n0 4 4\n0 1\n1 1\n0 0\n0 1\n")
    assert read_dag(path).nodes["0"] == {"weight": 4}
    # weights of vertices: work, communication
    path.write_text("1 2 2\n0 0\n0 1\n0 8 6\n1 8 1\n")
    assert dict(read_dag(path).nodes(data=True)) == {"0": {"weight": 6}, "1": {}}


@pytest.mark.parametrize(
    ("suffix", "text", "message"),
    [
        (".json", '{\n"nodes": [\n', "line 3: not JSON"),
        (".json", "[]", "expected node-link data"),
        (".json", '{"nodes": 3, "edges": []}', "no lists"),
        (".json", '{"nodes": []}', "no lists"),
        (".json", '{"nodes": [], "edges": []}', "without nodes"),
        (".json", '{"directed": false, "nodes": [], "edges": []}', "undirected"),
        (".json", '{"multigraph": true, "nodes": [], "edges": []}', "multigraph"),
        (".json", '{"nodes": [{"name": 1}], "edges": []}', r"nodes\[0\] is {\"name\": 1}, expected an object with"),
        (".json", '{"nodes": [{"id": 1},\n{"id": "1"}], "edges": []}', r"nodes\[1\] has the id '1' of an earlier"),
        (".json", '{"nodes": [{"id": 1}], "edges": [[0, 1]]}', r"edges\[0\] is \[0, 1\]"),
        (".json", '{"nodes": [{"id": 1}], "edges": [{"source": 1, "target": 2}]}', "names '2', which is no node"),
        (
            ".json",
            '{"nodes": [{"id": "a"},\n{"id": "b", "wait": 1}], "edges": []}',
            "line 2: .*unknown attribute 'wait'",
        ),
        (".json", '{"nodes": [{"id": "a"},\n{"id": "b", "weight": -1}], "edges": []}', "line 2: .*weight -1"),
        (".json", '{"nodes": [{"id": 1}], "edges": [{"source": 1, "target": 1}]}', "a cycle"),
        (".json", '{"nodes": [{"id": 1, "weight": ' + "9" * 5000 + "}]}", "not usable JSON"),
        (".json", "[" * 200_000, "nested too deeply"),
        (".json", '{"nodes": [{"id": "a\\ud800"}], "edges": []}', "printable"),
        (".graphml", "", "line 1: not XML"),
        (".graphml", "<graphml>\n<graph\n", "line 2: not XML"),
        (".graphml", "<html></html>", "not GraphML"),
        (".graphml", '<graphml><graph edgedefault="undirected"><node id="a"/></graph></graphml>', "undirected"),
        (".graphml", '<graphml><graph edgedefault="directed"></graph></graphml>', "without nodes"),
        (
            ".graphml",
            '<graphml><key id="d" for="node" attr.name="weight" attr.type="int"/>\n<graph edgedefault="directed">'
            '<node id="a"><data key="d">x</data></node></graph></graphml>',
            "not GraphML that networkx can read: ValueError",
        ),
        (
            ".graphml",
            '<graphml><key id="d" for="node" attr.name="weight" attr.type="int"/>\n<graph edgedefault="directed">\n'
            '<node id="a"><data key="d">0</data></node></graph></graphml>',
            "line 3: .*node a has weight 0",
        ),
        (
            ".graphml",
            '<graphml><key id="d" for="node" attr.name="index" attr.type="string"/>\n<graph edgedefault="directed">\n'
            '<node id="a"><data key="d">1,x</data></node></graph></graphml>',
            "line 3: .*index '1,x'",
        ),
        (".graphml", '<?xml version="1.0"?>\n<!DOCTYPE z [<!ENTITY a "b">]><graphml/>', "line 2: got <!DOCTYPE"),
        (".hdag", "", "line 1: got no data"),
        (".hdag", "% only\n% comments\n", "line 1: got no data"),
        (".hdag", "%\n2 3\n", 'line 2: expected a header "H V P"'),
        (".hdag", "0 0 0\n", "line 1: expected a header"),
        (".hdag", "1 2 x\n", "line 1: got 'x', expected whole numbers"),
        (".hdag", "1 2 " + "9" * 5000 + "\n", "line 1: got '999.*', expected whole numbers"),
        (".hdag", "1 2 ٣\n", "line 1: got '٣'"),
        (".hdag", "1 999999999999 2\n0 0\n", "line 1: the header announces 1 hyperedges, 999999999999 vertices"),
        (".hdag", "1 2 2\n0 0\n0 1\n0 1\n", "line 1: the header announces .*, got 3"),
        (".hdag", "1 2 2\n0 0\n0 1\n0 1\n2 1\n", "line 5: got vertex 2, expected a number below 2"),
        (".hdag", "1 2 2\n0 0\n0 1\n0 1\n0 1\n", "line 5: got vertex 0, again"),
        (".hdag", "1 2 2\n0 0\n0 2\n0 1\n1 1\n", "line 3: got the pin 0 2"),
        (".hdag", "1 2 2\n0 0\n1 1\n0 1\n1 1\n", "line 3: got the pin 1 1"),
        (".hdag", "1 2 2\n0 0\n0\n0 1\n1 1\n", 'line 3: expected a pin "edge node"'),
        (".hdag", "1 2 3\n0 0\n0 1\n0 0\n0 1\n1 1\n", "line 4: hyperedge 0 has its source 0 twice"),
        (".hdag", "2 2 4\n0 0\n0 1\n1 1\n1 0\n0 1\n1 1\n", "a cycle, "),
        (".hdag", "1 2 2\n0 0\n0 1\n0 1 0\n1 1 1\n", "line 4: node 0 has weight 0"),
        (
            ".hdag",
            "1 2 2\n0 3 4\n0 1\n1 1\n0 0\n0 1\n",
            "line 2: hyperedge 0 has communication weight 3 and memory weight 4",
        ),
        (".hdag", "2 2 4\n0 3\n1 4\n0 0\n1 0\n0 0\n0 1\n1 0\n1 1\n", "line 3: node 0 has weight 4, and 3 in another"),
        (".hdag", "1 2 2\n0 1\n0 0 % {oops\n1 0\n0 0\n0 1\n", "line 3: got a comment that starts with {"),
        (".hdag", '1 2 2\n0 1\n0 0 % {"name": "b"}\n1 0 % {"name": "b"}\n0 0\n0 1\n', "same name"),
    ],
)
def test_malformed_files(tmp_path: Path, suffix: str, text: str, message: str) -> None:
    path = tmp_path / f"bad{suffix}"
    path.write_text(text, encoding="utf-8")
    with pytest.raises(InputError, match=message) as caught:
        read_dag(path)
    sentence = str(caught.value)
    assert sentence.startswith(str(path))
    assert "\n" not in sentence
    assert len(sentence) < 400 + len(str(path))


def test_not_text(tmp_path: Path) -> None:
    (tmp_path / "bad.json").write_bytes(b"{\n\xff")
    with pytest.raises(InputError, match=r"bad\.json, line 2: got bytes that are not UTF-8"):
        read_dag(tmp_path / "bad.json")


def test_too_large(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("pebble.cdag.io.MAX_FILE_BYTES", 2**20)
    (tmp_path / "big.json").write_bytes(b" " * (2**20 + 1))
    with pytest.raises(InputError, match="larger than 1 MiB"):
        read_dag(tmp_path / "big.json")


def test_paths(tmp_path: Path) -> None:
    with pytest.raises(InputError, match=r"no\.json: cannot be read: No such file"):
        read_dag(tmp_path / "no.json")
    (tmp_path / "folder.json").mkdir()
    with pytest.raises(InputError, match=r"folder\.json: cannot be read"):
        read_dag(tmp_path / "folder.json")
    with pytest.raises(InputError, match=r"suffix '\.txt', expected one of \.json, \.graphml, \.hdag"):
        read_dag(tmp_path / "dag.txt")
    with pytest.raises(InputError, match="suffix"):
        write_dag(tree_dag(2), tmp_path / "dag.xml")
    with pytest.raises(InputError, match="cannot be written"):
        write_dag(tree_dag(2), tmp_path / "none" / "dag.json")


def test_only_dags_are_written(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="cycle"):
        write_dag(nx.DiGraph([("a", "b"), ("b", "a")]), tmp_path / "dag.json")
    assert not (tmp_path / "dag.json").exists()
