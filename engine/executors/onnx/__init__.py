"""The ONNX executor: runs the decoder graphs that optimum and onnxruntime-genai export.

Only modules of this package import onnxruntime, and only after this executor was selected; importing the
package itself does not. See `docs/onnx.md`.
"""
