import pytest

from engine.api.errors import InvalidRequest
from engine.vision.routing import choose_way


@pytest.mark.parametrize("ocr", [True, False])
def test_a_model_that_sees_gets_the_image(ocr):
    assert choose_way(model="eyes", sees_images=True, ocr=ocr) == "model"


def test_else_its_text_is_read():
    assert choose_way(model="smollm2", sees_images=False, ocr=True) == "ocr"


def test_else_the_user_is_told_what_to_do():
    with pytest.raises(InvalidRequest) as error:
        choose_way(model="smollm2", sees_images=False, ocr=False)
    assert str(error.value) == (
        "smollm2 does not see images: load a model that does, or run `pip install 'pravaha[ocr]'` to "
        "have their text read."
    )
