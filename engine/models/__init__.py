"""Model files: download and storage, formats, and the model specifications read from them."""
