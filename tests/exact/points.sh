#!/usr/bin/env bash
# The residues of a named point in another language: points.sh NAME LABEL P COUNT, p below 2^30.
set -euo pipefail
name=$1 label=$2 p=$3 count=$4
high=$(((1 << 32) % p))
rest=$((high * high % p))
bound=$(printf '%016x' $((-rest)))
found=0 number=0
while [ "$found" -lt "$count" ]; do
  hash=$(printf '%s' "$name/$label/$number" | sha256sum)
  for start in 0 16 32 48; do
    word=${hash:start:16}
    if [ "$found" -lt "$count" ] && { [ "$rest" = 0 ] || [[ "$word" < "$bound" ]]; }; then
      echo $(((0x${word:0:8} % p * high + 0x${word:8:8}) % p))
      found=$((found + 1))
    fi
  done
  number=$((number + 1))
done
