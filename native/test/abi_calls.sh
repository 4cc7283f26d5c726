#!/bin/sh
# Compares the lists of calls with the headers of CUDA toolkits. CUDA_HEADERS names folders with cudaTypedefs.h, cuda.h
# or nvml.h, one per CUDA version, separated by colons.
echo "the lists of calls have every call, every version of it and every symbol that the toolkit's headers name"
. "$(dirname "$0")/compare-abi.sh"
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
folders=$(header_folders)
compared=0
failed=0

sed -nE 's/^CUDA_[A-Z]+\(([0-9]+), ([A-Za-z0-9_]+), [A-Za-z0-9_]+, ([A-Z_]+).*/\2 \1 \3/p' include/cuda_calls.def | sort >"$work/versions"
sed -nE 's/^CUDA_[A-Z]+\([0-9]+, [A-Za-z0-9_]+, ([A-Za-z0-9_]+),.*/\1/p' include/cuda_calls.def | sort >"$work/symbols"
sed -nE 's/^NVML_(NAME\(|[A-Z]+\([^,]*, )([A-Za-z0-9_]+).*/\2/p' include/nvml_calls.def | sort >"$work/nvml"

without_comments() {
  sed -E ':a; s,/\*[^*]*\*+([^/*][^*]*\*+)*/,,g; /\/\*/{N; ba}; s,//.*,,' "$@"
}

# LIST WHAT: $work/found holds names that LIST must contain. Windows calls are ignored.
require() {
  grep -v '^cuWGL' "$work/found" | sort -u >"$work/named"
  comm -23 "$work/named" "$1" >"$work/absent"
  echo "$2: $(wc -l <"$work/named") names"
  [ -s "$work/named" ] || { echo "  no names found: the header has a format that this test does not read"; failed=1; }
  [ -s "$work/absent" ] || return 0
  sed 's/^/  is not in the list: /' "$work/absent"
  failed=1
}

IFS=:
for folder in $folders; do
  unset IFS
  if [ -f "$folder/cudaTypedefs.h" ]; then
    compared=$((compared + 1))
    cat "$folder"/cuda*Typedefs.h | sed -nE 's/.*\*PFN_(cu[A-Za-z0-9_]+)_v([0-9]+)(_pt[sd][sz])?\).*/\1 \2 \3/p' |
      sed -E 's/ _pt[sd][sz]$/ PER_THREAD/; s/ $/ LEGACY/' >"$work/found"
    require "$work/versions" "$folder/cuda*Typedefs.h"
  fi
  if [ -f "$folder/cuda.h" ]; then
    compared=$((compared + 1))
    without_comments "$folder/cuda.h" >"$work/cuda.h"
    # Only the header declares cuGetProcAddress for the per-thread default stream.
    {
      sed -nE 's/.*CUDAAPI +(cu[A-Za-z0-9_]+) *\(.*/\1/p' "$work/cuda.h"
      sed -nE 's/^ *# *define +cu[A-Za-z0-9_]+ +(cu[A-Za-z0-9_]+) *$/\1/p; s/.*__CUDA_API_PT(SZ|DS)\((cu[A-Za-z0-9_]+)\).*/\2/p' "$work/cuda.h"
      sed -nE 's/.*__CUDA_API_PTSZ\((cu[A-Za-z0-9_]+)\).*/\1_ptsz/p; s/.*__CUDA_API_PTDS\((cu[A-Za-z0-9_]+)\).*/\1_ptds/p' "$work/cuda.h"
    } | grep -vxE 'cuGetProcAddress(_v2)?_ptsz' >"$work/found"
    require "$work/symbols" "$folder/cuda.h"
  fi
  if [ -f "$folder/nvml.h" ]; then
    compared=$((compared + 1))
    without_comments "$folder/nvml.h" | sed -nE 's/.*DECLDIR +(char *\* *)?(nvml[A-Za-z0-9_]+) *\(.*/\2/p' >"$work/found"
    require "$work/nvml" "$folder/nvml.h"
  fi
done
[ $compared -gt 0 ] || { echo "skip: no cudaTypedefs.h, cuda.h or nvml.h in $folders (CUDA_HEADERS names folders that have them)"; exit 77; }
exit $failed
