"""A tokenizer of 96 printable characters, two bytes of an é, and an end-of-sequence token."""

EOS = 98
E_ACUTE = (96, 97)  # the two UTF-8 bytes of é, a token each
VOCAB_SIZE = 99


class ToyStream:
    def __init__(self):
        self._half = False

    def feed(self, ids):
        text = ""
        for token in ids:
            if token == E_ACUTE[0]:
                text += "\ufffd" * self._half
                self._half = True
                continue
            if token == E_ACUTE[1]:
                text += "é" if self._half else "\ufffd"
            elif token < 96:
                text += "\ufffd" * self._half + chr(32 + token)
            self._half = False
        return text

    def spelling(self, token_id):
        return "<eos>" if token_id == EOS else ""

    def flush(self):
        text = "\ufffd" * self._half
        self._half = False
        return text


class ToyTokenizer:
    vocab_size = VOCAB_SIZE
    eos_ids = frozenset({EOS})
    special_ids = frozenset({EOS})
    bos_id = None
    add_bos = False
    fingerprint = "toy"
    has_chat_template = False
    continues_text = False

    def encode(self, text, *, special=False):
        ids = []
        for char in text:
            ids.extend(E_ACUTE if char == "é" else (max(0, ord(char) - 32),))  # newline: a space
        return ids

    def token_bytes(self, token_id):
        if token_id == EOS:
            return b"<eos>"
        return bytes([32 + token_id]) if token_id < 96 else "é".encode()[token_id - 96 :][:1]

    def decode(self, ids, *, skip_special=True):
        stream = self.incremental_detokenizer()
        return stream.feed(ids) + stream.flush()

    def incremental_detokenizer(self, *, skip_special=True, after=None, shown=frozenset()):
        return ToyStream()

    reasoning = None

    def render_chat(self, messages, *, add_generation_prompt=True, tools=(), variables=None):
        return "".join(f"{m['role']}:{m['content']}\n" for m in messages)

    def encode_chat(self, messages, *, add_generation_prompt=True):
        return self.encode(" ".join(m["content"] for m in messages))
