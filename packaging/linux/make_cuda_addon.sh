#!/bin/bash
# Makes dist/Forespeak-VERSION-cuda-linux-x86_64.tar.xz: llama.cpp's backend for CUDA with NVIDIA's libraries, from the
# same source as the bundles. Unpacked in a bundle's folder (/opt/forespeak) it is found at the next start.
# Needs CUDA's toolkit, CMake, Ninja, a C++ compiler and Python with pip.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/../.."
cuda="${CUDA_HOME:-/usr/local/cuda}"
version="$(python3 packaging/bundle.py version)"
pin="$(sed -n 's/^ *"\(llama-cpp-python==[^"]*\)",$/\1/p' pyproject.toml)"

work="$(mktemp -d)"
trap 'rm -rf "$work"' EXIT
python3 -m pip download --quiet --no-deps --no-binary llama-cpp-python --dest "$work" "$pin"
tar -xzf "$work"/llama_cpp_python-*.tar.gz -C "$work"
# Loadable, as in the bundles; every generation of cards that the toolkit knows.
cmake -G Ninja -S "$work"/llama_cpp_python-*/vendor/llama.cpp -B "$work/build" -DCMAKE_BUILD_TYPE=Release \
    -DBUILD_SHARED_LIBS=ON -DGGML_NATIVE=OFF -DGGML_BACKEND_DL=ON -DGGML_CPU=OFF -DGGML_CUDA=ON -DGGML_CUDA_NCCL=OFF \
    -DLLAMA_BUILD_COMMON=OFF -DLLAMA_BUILD_TESTS=OFF -DLLAMA_BUILD_EXAMPLES=OFF -DLLAMA_BUILD_TOOLS=OFF \
    -DLLAMA_BUILD_SERVER=OFF "-DCMAKE_INSTALL_RPATH=\$ORIGIN" -DCMAKE_BUILD_WITH_INSTALL_RPATH=ON
cmake --build "$work/build" --target ggml-cuda

place="$work/addon/_internal/llama_cpp/lib"
mkdir -p "$place" dist
cp "$work/build/bin/libggml-cuda.so" "$place"
strip --strip-unneeded "$place/libggml-cuda.so"
# Its own name says which versions of NVIDIA's libraries it asks for; the driver's libcuda is the system's.
needed="$(readelf -d "$place/libggml-cuda.so" | sed -n 's/.*(NEEDED).*\[\(libcu[a-zA-Z]*\.so\.[0-9]*\)\]/\1/p')"
for library in $needed libcublasLt.so."$(sed -n 's/^libcublas\.so\.//p' <<<"$needed")"; do
    if [ "$library" != libcuda.so.1 ]; then cp -L "$cuda/lib64/$library" "$place"; fi
done
tar -cJf "dist/Forespeak-$version-cuda-linux-$(uname -m).tar.xz" -C "$work/addon" _internal
