"""The `pravaha` command on toy engines, in a separate process: `python -m tests.fakes.toy_cli …`.

`TOY` in the environment chooses the engine: `paris` answers at once, `echo` repeats its
prompt, `seeing` says the sizes of its images, `endless` writes until it is
cancelled, `looping` writes the same until then, `failing` fails in mid-answer, `broken` never loads.
`TOY_OCR` is what is found in every image; without it OCR is not installed.
"""

import os
from contextlib import contextmanager
from itertools import count, repeat

from app.cli import main
from app.runtime import opening
from engine.api.request import FinishReason
from engine.api.snapshot import EngineSnapshot, EngineState
from engine.retrieval.parsing import image_reader
from tests.fakes.chat_toys import SEEING, ToyClient
from tests.fakes.image_parser import AnyText, ImageParser


class Paris(ToyClient):
    def submit(self, request):
        request_id = super().submit(request)
        self.write("It is ")
        self.write("Paris.", eos=True)
        return request_id


class Echo(ToyClient):
    def submit(self, request):
        request_id = super().submit(request)
        self.write(self.detokenize(request.prompt_ids), finish=FinishReason.STOP)
        return request_id


class Seeing(ToyClient):
    def __init__(self):
        super().__init__(SEEING)

    def submit(self, request):
        request_id = super().submit(request)
        sizes = [f"{one.image.width}×{one.image.height}" for one in request.images]
        self.write(f"I see {', '.join(sizes)}.", eos=True)
        return request_id


class Endless(ToyClient):
    words = count()

    def drain(self, request_id):
        text = f"word {next(self.words)} "
        self.write(text, finish=FinishReason.ABORT if self.cancelled else None)
        return super().drain(request_id)


class Looping(Endless):
    words = repeat(0)


class Failing(ToyClient):
    def submit(self, request):
        request_id = super().submit(request)
        self.write("It is")
        self.write("", finish=FinishReason.ERROR)
        return request_id


class Broken(ToyClient):
    def snapshot(self):
        return EngineSnapshot(
            step=0, time=0.0, state=EngineState.FAILED, last_error="The file is cut short."
        )


TOYS = {
    "paris": Paris,
    "echo": Echo,
    "seeing": Seeing,
    "endless": Endless,
    "looping": Looping,
    "failing": Failing,
    "broken": Broken,
}


@contextmanager
def open_toy(settings, progress=None, *, model_required=True):
    client = TOYS[os.environ["TOY"]]()
    yield opening.OpenClient(client, bos=lambda: 3, start=lambda: None)
    client.close()


class ToyReader(image_reader.ImageReader):
    def __init__(self):
        found = os.environ.get("TOY_OCR")
        parser = ImageParser(AnyText(found or ""))
        super().__init__(lambda: parser, installed=lambda: found is not None)


if __name__ == "__main__":
    opening.open_client = open_toy
    image_reader.ImageReader = ToyReader
    main()
