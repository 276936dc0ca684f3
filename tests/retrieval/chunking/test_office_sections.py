from tokenizers import Tokenizer

from benchmarks.office_cases import NUMBERING, docx, item, par
from engine.retrieval.chunking.split import split
from engine.retrieval.parsing.archive import extract_archive
from engine.retrieval.parsing.documents import extracted_document
from engine.retrieval.parsing.file_type import FileType


def test_headings_of_a_word_document_are_the_path_of_its_chunks(bert: Tokenizer) -> None:
    words = "dogs may come on all boats " * 12
    body = item(0, "Scope", "berschrift1") + item(1, "Dogs", "MyHeading") + par(words)
    styles = "".join(
        f'<w:style w:type="paragraph" w:styleId="{identifier}"><w:name w:val="{name}"/>{inside}</w:style>'
        for identifier, name, inside in (
            ("berschrift1", "heading 1", ""),
            ("Titre2", "Titre 2", ""),
            ("MyHeading", "Mine", '<w:basedOn w:val="Titre2"/>'),
        )
    )
    extracted = extract_archive(docx(body, styles, NUMBERING), 1 << 20)
    document = extracted_document(extracted, FileType("zip", "x"))
    chunks = split(document, bert, max_tokens=40, overlap_tokens=0)
    assert len(chunks) > 2
    assert {chunk.heading_path for chunk in chunks[1:]} == {("3 Scope", "3.1 Dogs")}
