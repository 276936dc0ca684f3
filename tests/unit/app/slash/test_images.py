import os

import pytest

from app.slash.attachments import attach_files, unread_files
from app.slash.images import (
    build_remark,
    named_images,
    read_image,
    seen_names,
    with_image_texts,
)
from engine.api.errors import InvalidRequest
from engine.retrieval.parsing.document_reader import FileText
from engine.vision.opening import MAX_BYTES, MAX_IMAGES
from tests.fakes.images import jpeg, whole_png


@pytest.fixture(autouse=True)
def folder(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "a.png").write_bytes(whole_png(3, 2))
    (tmp_path / "my b.dat").write_bytes(jpeg(5, 4))
    (tmp_path / "notes.md").write_text("some notes, see @a.png")
    return tmp_path


def attached(text):
    """The message with its files, read as plain text."""
    return attach_files(
        text, {path: FileText(path.name, path.read_text()) for path in unread_files(text)}
    )


def names(text):
    return [one.name for one in named_images(text)]


def test_images_are_known_by_their_content():
    found = named_images('see @a.png, @notes.md, @"my b.dat" and @a.png')
    assert [(one.name, one.image.width, one.image.media_type) for one in found] == [
        ("a.png", 3, "image/png"),
        ("my b.dat", 5, "image/jpeg"),
    ]
    assert names('see @a.png @notes.md @"my b.dat" @a.png') == ["a.png", "my b.dat"]
    assert names("no image, me@example.com @nobody") == []


def test_they_are_no_text_files():
    assert attached("see @a.png") == "see @a.png"


def test_what_is_no_image_in_spite_of_its_name_is_refused(folder):
    (folder / "b.png").write_text("hello")
    with pytest.raises(InvalidRequest, match=r"b.png is no PNG, JPEG, GIF or WebP image\."):
        named_images("@b.png")


def test_limits(folder):
    with (folder / "large.png").open("wb") as file:
        file.write(whole_png(3, 2))
        os.truncate(file.fileno(), MAX_BYTES + 1)
    with pytest.raises(InvalidRequest, match=r"large.png is larger than 20 MiB\."):
        read_image(folder / "large.png")
    with pytest.raises(InvalidRequest, match=r"gone.png can't be read: No such file"):
        read_image(folder / "gone.png")
    for number in range(MAX_IMAGES):
        (folder / f"{number}.png").write_bytes(whole_png(3, 2))
    many = " ".join(f"@{number}.png" for number in range(MAX_IMAGES))
    assert len(named_images(many)) == MAX_IMAGES
    with pytest.raises(InvalidRequest, match="names 17 images; at most 16"):
        named_images(f"{many} @a.png")


def read(text, found="words", **limits):
    images = named_images(text)
    return with_image_texts(text, images, [found] * len(images), small=True, **limits)


def test_texts_stand_behind_the_message():
    assert read("see @a.png") == ('see @a.png\n\nText in the image "a.png", read by OCR:\n> words')


def test_a_message_that_is_sent_again_is_not_extended_again():
    once = attached(read("see @a.png @notes.md"))
    assert read(once) == attached(once) == once


def test_names_in_the_text_of_others_are_no_files_of_this_message(folder):
    hostile = read("see @a.png", "look at @notes.md\n@notes.md")
    assert attached(hostile) == hostile
    assert names(attached("read @notes.md")) == []


def test_a_text_beyond_the_context_is_refused():
    with pytest.raises(
        InvalidRequest, match=r"a\.png has 100 tokens, and the context of the model 50"
    ):
        read("see @a.png", "x" * 100, count=len, length=50)


def test_the_names_of_images_that_the_model_saw():
    assert seen_names("see @a.png and @notes.md", 1) == ("a.png",)
    assert seen_names('see @x/a.png and @"my b.jpg"', 2) == ("a.png", "my b.jpg")
    assert seen_names("see", 1) == ("1 image",)
    assert seen_names("see @a.png", 2) == ("2 images",)
    assert seen_names("what is @a.png's size?", 1) == ("a.png",)


def test_how_a_image_was_read():
    assert build_remark("a.png", "ocr") == (
        "a.png: its text was read by OCR; the model does not see the image"
    )
    assert build_remark("a.png", "model") == "a.png: the model sees the image"
