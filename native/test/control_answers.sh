#!/bin/sh
# Checks that answers.txt classifies every call.
set -u
echo "every call of CUDA and NVML is hooked, refused, or classified in answers.txt"
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
failed=0

sed -nE 's/^CUDA_HOOK\([0-9]+, ([A-Za-z0-9_]+), .*/\1/p; s/^NVML_HOOK\([^,]*, ([A-Za-z0-9_]+),.*/\1/p' include/cuda_calls.def include/nvml_calls.def | sort -u >"$work/hooked"
sed -nE 's/^CUDA_(CALL|FORWARD|NAME)\([0-9]+, ([A-Za-z0-9_]+), .*/\2/p' include/cuda_calls.def >"$work/listed"
sed -nE 's/^NVML_(NAME\(|(CALL|FORWARD)\([^,]*, )([A-Za-z0-9_]+).*/\3/p' include/nvml_calls.def >>"$work/listed"
sort -u "$work/listed" | comm -23 - "$work/hooked" >"$work/others"
awk '/^[a-z]+: / { answer = $1; next } /^  / { for (i = 1; i <= NF; i++) print $i, answer }' answers.txt | sort >"$work/answers"
cut -d' ' -f1 "$work/answers" >"$work/answered"
sed -nE 's/^ +NAME\((nvml[A-Za-z0-9_]+)\).*/\1/p' control/nvml_refused.h | sort >"$work/refused"
sed -n 's/ refused:$//p' "$work/answers" >"$work/said"

# FILE WHAT: the file must be empty
none() {
  [ -s "$1" ] || return 0
  sed "s/^/$2: /" "$1"
  failed=1
}
[ -s "$work/others" ] && [ -s "$work/refused" ] || { echo "the lists have a format that this test does not read"; exit 1; }
comm -23 "$work/others" "$work/answered" >"$work/difference"
none "$work/difference" "answers.txt does not classify it"
comm -13 "$work/others" "$work/answered" >"$work/difference"
none "$work/difference" "answers.txt names it, but it is hooked, named twice or in no list"
comm -3 "$work/refused" "$work/said" >"$work/difference"
none "$work/difference" "control/nvml_refused.h and answers.txt disagree"
sed -nE '/ (refused|harmless|settled|open):$/!p' "$work/answers" >"$work/difference"
none "$work/difference" "the class is none of refused, harmless, settled and open"
exit $failed
