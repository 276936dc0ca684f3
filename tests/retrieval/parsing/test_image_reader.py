"""`ImageReader` over a parser of the test, and over the real OCR where it is installed."""

from io import BytesIO

import pytest

from engine.api.errors import EngineUnavailable, InvalidRequest, QueueFull
from engine.retrieval.parsing import image_reader
from engine.retrieval.parsing.image_reader import ImageReader
from engine.retrieval.parsing.ocr import ocr_installed
from engine.vision.opening import open_image
from tests.fakes.image_parser import ImageParser
from tests.fakes.images import whole_png


def image(number=1):
    return open_image(whole_png(number, 1))


@pytest.fixture
def parser():
    return ImageParser({image().data: "one", image(2).data: "two"})


@pytest.fixture
def reader(parser):
    with parser.reader() as one:
        yield one


def test_the_text_of_a_image(reader):
    assert reader.read(image()).result(10) == "one"
    assert reader.read(image(2)).result(10) == "two"


def test_a_image_that_comes_again_is_not_read_again(reader, parser):
    for _ in range(3):
        assert reader.read(image()).result(10) == "one"
    assert parser.read == [image().data]


def test_two_that_wait_at_once_are_read_once(reader, parser):
    with parser.held():
        both = [reader.read(image()), reader.read(image())]
    assert [one.result(10) for one in both] == ["one", "one"]
    assert parser.read == [image().data]


def test_texts_of_another_salt_are_not_found(reader, parser):
    reader.read(image(), salt="mine").result(10)
    reader.read(image(), salt="yours").result(10)
    assert len(parser.read) == 2


def test_texts_are_kept_up_to_a_limit(reader, parser, monkeypatch):
    monkeypatch.setattr(image_reader, "MAX_KEPT_CHARS", 5)
    for number in (1, 2, 1, 2):
        reader.read(image(number)).result(10)
    assert len(parser.read) == 4  # there is room for the text of one


def test_a_image_without_text_is_refused_with_its_name(reader):
    with pytest.raises(InvalidRequest) as error:
        reader.read(image(3), name="cat.png").result(10)
    assert str(error.value) == (
        "cat.png cannot be read by OCR: it is an image in which no text was found."
    )


def test_a_failure_ends_nothing(reader, parser):
    parser.failure = RuntimeError("broken")
    with pytest.raises(RuntimeError):
        reader.read(image()).result(10)
    parser.failure = None
    assert reader.read(image()).result(10) == "one"


def test_one_that_is_cancelled_while_it_waits_is_not_read(reader, parser):
    with parser.held():
        first = reader.read(image())
        parser.began.wait(10)
        second = reader.read(image(2))
        assert second.cancel()
    first.result(10)
    reader.read(image(3)).exception(10)
    assert parser.read == [image().data, image(3).data]


def test_too_many_are_refused(reader, parser, monkeypatch):
    with parser.held():
        reader.read(image())
        parser.began.wait(10)
        for _ in range(image_reader.MAX_WAITING):
            reader.read(image(2))
        with pytest.raises(QueueFull, match="64 images wait"):
            reader.read(image(3))


def test_the_parser_ends_after_a_rest_and_starts_again(parser):
    with parser.reader(rest_s=0.01) as reader:
        reader.read(image()).result(10)
        assert parser.closed.wait(10)
        parser.closed.clear()
        assert reader.read(image(2)).result(10) == "two"
        assert parser.closed.wait(10)
    assert parser.opened == 2


def test_nothing_is_opened_before_the_first_image(parser):
    with parser.reader():
        pass
    assert parser.opened == 0


def test_closing_cancels_what_waits(parser):
    with parser.reader() as reader, parser.held():
        first = reader.read(image())
        parser.began.wait(10)
        waiting = reader.read(image(2))
        reader.close()
        assert waiting.cancelled()
        with pytest.raises(EngineUnavailable):
            reader.read(image())
    assert first.result(10) == "one"
    assert parser.closed.wait(10)


def test_it_is_asked_whether_ocr_is_installed():
    assert ImageReader(installed=lambda: False).installed is False
    assert ImageReader().installed is ocr_installed()


class TestRealOcr:
    @pytest.fixture(scope="class")
    def ocr(self):
        pytest.importorskip("rapidocr")
        reader = ImageReader()
        yield reader
        reader.close()

    @pytest.mark.parametrize("kind", ["PNG", "WEBP"])
    def test_words_are_found(self, ocr, kind):
        from PIL import Image, ImageDraw, ImageFont

        drawn = Image.new("RGB", (600, 120), "white")
        font = ImageFont.load_default(48)
        ImageDraw.Draw(drawn).text((20, 30), "Invoice number 4711", fill="black", font=font)
        file = BytesIO()
        drawn.save(file, kind)
        assert "4711" in ocr.read(open_image(file.getvalue())).result(120)

    def test_a_image_without_text_and_one_that_is_cut_off(self, ocr):
        blank = whole_png(200, 100)
        with pytest.raises(InvalidRequest, match="no text was found"):
            ocr.read(open_image(blank)).result(120)
        with pytest.raises(InvalidRequest, match="cannot be read by OCR"):
            ocr.read(open_image(blank[:40])).result(120)
