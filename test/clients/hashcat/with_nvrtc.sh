#!/bin/sh
# Runs a program that looks for NVRTC by the name that the CUDA toolkit gives it: with_nvrtc.sh FOLDER COMMAND...
set -eu
nvrtc=$1
shift
links=$(mktemp -d)
trap 'rm -rf "$links"' EXIT
ln -s "$nvrtc/libnvrtc.so.12" "$links/libnvrtc.so"
LD_LIBRARY_PATH=$LD_LIBRARY_PATH:$links "$@"
