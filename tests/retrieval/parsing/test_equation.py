import pytest

from benchmarks.office_cases import docx, par
from engine.retrieval.parsing.archive import extract_archive
from engine.retrieval.parsing.mathml import mathml_text


def _r(text: str) -> str:
    return f"<m:r><m:t>{text}</m:t></m:r>"


def _e(text: str) -> str:
    return f"<m:e>{_r(text)}</m:e>"


@pytest.mark.parametrize(
    ("equation", "line"),
    [
        (f"<m:f><m:num>{_r('a+b')}</m:num><m:den>{_r('2')}</m:den></m:f>", "(a+b)/2"),
        (f"<m:sSup>{_e('x')}<m:sup>{_r('n+1')}</m:sup></m:sSup>", "x^(n+1)"),
        (
            f"<m:sSubSup>{_e('x')}<m:sub>{_r('i')}</m:sub><m:sup>{_r('2')}</m:sup></m:sSubSup>",
            "x_i^2",
        ),
        (f"<m:rad><m:deg/>{_e('x+1')}</m:rad>", "√(x+1)"),
        (f"<m:d>{_e('a')}{_e('b')}</m:d>", "(a|b)"),
        (f'<m:d><m:dPr><m:begChr m:val="["/><m:endChr m:val="]"/></m:dPr>{_e("a")}</m:d>', "[a]"),
        (
            f'<m:nary><m:naryPr><m:chr m:val="∑"/></m:naryPr><m:sub>{_r("i")}</m:sub>'
            f"<m:sup>{_r('n')}</m:sup>{_e('x')}</m:nary>",
            "∑_i^n x",
        ),
        (f"<m:nary><m:sub/><m:sup/>{_e('x')}</m:nary>", "∫ x"),
        (f"<m:func><m:fName>{_r('sin')}</m:fName>{_e('x')}</m:func>", "sin x"),
        (
            f"<m:m><m:mr>{_e('a')}{_e('b')}</m:mr><m:mr>{_e('c')}{_e('d')}</m:mr></m:m>",
            "a, b; c, d",
        ),
    ],
)
def test_an_equation_of_office(equation: str, line: str) -> None:
    assert extract_archive(docx(par(f"<m:oMath>{equation}</m:oMath>")), 1 << 20).text == line


@pytest.mark.parametrize(
    ("equation", "line"),
    [
        ("<mfrac><mrow><mi>a</mi><mo>+</mo><mi>b</mi></mrow><mn>2</mn></mfrac>", "(a+b)/2"),
        ("<msubsup><mi>x</mi><mi>i</mi><mn>2</mn></msubsup>", "x_i^2"),
        ("<msqrt><mi>x</mi><mo>+</mo><mn>1</mn></msqrt>", "√(x+1)"),
        ("<mtext>speed of</mtext><mi>x</mi>", "speed ofx"),
    ],
)
def test_an_equation_in_mathml(equation: str, line: str) -> None:
    assert mathml_text(f"<m:math xmlns:m='m'>{equation}</m:math>".encode()) == line
