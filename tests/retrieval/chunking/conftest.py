import string

import pytest
from tokenizers import Tokenizer, models, normalizers, pre_tokenizers, processors

WORDS = ["the", "quick", "brown", "fox", "over", "##ing", "##ed", "sing", "世", "界", "مر"]


@pytest.fixture(scope="session")
def bert() -> Tokenizer:
    """A BERT tokenizer that knows few words, single letters and ASCII punctuation."""
    letters = string.ascii_lowercase + string.digits
    vocabulary = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", *letters, *(f"##{one}" for one in letters)]
    vocabulary += [*string.punctuation, *WORDS]
    tokenizer = Tokenizer(
        models.WordPiece({word: index for index, word in enumerate(vocabulary)}, unk_token="[UNK]")
    )
    tokenizer.normalizer = normalizers.BertNormalizer()
    tokenizer.pre_tokenizer = pre_tokenizers.BertPreTokenizer()
    tokenizer.post_processor = processors.BertProcessing(("[SEP]", 3), ("[CLS]", 2))
    tokenizer.add_special_tokens(["[PAD]", "[UNK]", "[CLS]", "[SEP]"])
    return tokenizer


@pytest.fixture(scope="session")
def byte_level() -> Tokenizer:
    """A byte-level BPE tokenizer: a space belongs to the word behind it, so that counts do not add up."""
    alphabet = sorted(pre_tokenizers.ByteLevel.alphabet())
    merges = [("Ġ", "t"), ("h", "e"), ("Ġt", "he"), ("o", "x"), ("f", "ox")]
    words = [*alphabet, *("".join(pair) for pair in merges)]
    tokenizer = Tokenizer(models.BPE({word: index for index, word in enumerate(words)}, merges))
    tokenizer.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=True)
    return tokenizer
