#!/bin/bash
# A foreign project takes stoker in all three ways: installed, as a sub-folder, and fetched from a local clone.
set -euo pipefail
root=$(cd "$(dirname "$0")/../.." && pwd)
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
cmake -S "$root" -B "$work/stoker" -DSTOKER_BUILD_TESTS=OFF -DSTOKER_BUILD_EXAMPLES=OFF -DSTOKER_BUILD_BENCHMARKS=OFF >/dev/null
cmake --install "$work/stoker" --prefix "$work/prefix" >/dev/null
git clone -q "$root" "$work/clone"
for way in package subdirectory fetch; do
    cmake -S "$root/tests/consumer" -B "$work/$way" -G Ninja -DWAY=$way -DSTOKER_ROOT="$root" -DSTOKER_CLONE="$work/clone" \
        -DCMAKE_PREFIX_PATH="$work/prefix" >"$work/log" 2>&1 || { cat "$work/log"; exit 1; }
    cmake --build "$work/$way" >"$work/log" 2>&1 || { cat "$work/log"; exit 1; }
    "$work/$way/app"
    ! grep -q -- '-Wall' "$work/$way/build.ninja" || { echo "$way: stoker's warnings reach its consumer"; exit 1; }
    ! grep -qi 'gtest' "$work/$way/build.ninja" || { echo "$way: stoker's tests reach its consumer"; exit 1; }
    echo "taken as $way"
done
