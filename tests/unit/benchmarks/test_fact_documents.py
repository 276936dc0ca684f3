"""`benchmarks/fact_documents.py`: what the generated documents say and do not say."""

from collections import Counter

from benchmarks.fact_documents import made_facts

FACTS = made_facts(12, 30)


def test_everything_follows_from_the_seed():
    assert made_facts(12, 30) == FACTS
    assert made_facts(12, 30, seed=8) != FACTS


def test_an_answer_is_in_the_last_document_only():
    for question in (*FACTS.single_hop, *FACTS.multi_hop):
        assert question.answer is not None
        assert question.answer in FACTS.documents[question.documents[-1]]


def test_a_two_hop_question_names_neither_the_person_nor_the_place():
    for question in FACTS.multi_hop:
        first, second = (FACTS.documents[name] for name in question.documents)
        person = second.splitlines()[0].removeprefix("# ")
        assert person in first
        assert person not in question.text
        assert question.answer not in first


def test_questions_without_an_answer_ask_for_what_no_document_has():
    everything = "".join(FACTS.documents.values())
    assert Counter(one.kind for one in FACTS.unanswerable) == {
        "entity": 10,
        "attribute": 10,
        "elsewhere": 10,
    }
    for question in FACTS.unanswerable:
        if question.kind == "entity":
            assert question.text.split()[3] not in everything


def test_a_supported_sentence_has_the_values_of_its_passage():
    changes = Counter((one.change, one.supported) for one in FACTS.sentences)
    assert changes == {
        ("none", True): 12,
        ("wording", True): 12,
        ("value", False): 12,
        ("name", False): 12,
        ("negation", False): 12,
        ("topic", False): 12,
    }
    for one in FACTS.sentences:
        if one.change == "none":
            assert one.sentence in one.passage
        if one.change == "value":
            assert one.sentence not in one.passage


def test_documents_are_written_as_files(tmp_path):
    paths = FACTS.write(tmp_path / "facts")
    assert [path.read_text() for path in paths] == list(FACTS.documents.values())
