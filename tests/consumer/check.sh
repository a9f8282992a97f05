#!/bin/sh
# check.sh WAY CMAKE GENERATOR COMPILER SOURCE_DIR WORK_DIR: a foreign project takes stoker as an installed "package", as a
# "subdirectory", or by "fetch" from a local clone of its last commit; builds and runs. Exits with 77 when it cannot try.
set -eu
way=$1 cmake=$2 generator=$3 compiler=$4 root=$5 work=$6/$1
rm -rf "$work"
mkdir -p "$work"
run() { "$@" >"$work/log" 2>&1 || { cat "$work/log"; exit 1; }; }
set_up() { run "$cmake" -G "$generator" -DCMAKE_CXX_COMPILER="$compiler" "$@"; }
commit=
case $way in
    package)
        set_up -S "$root" -B "$work/stoker" -DSTOKER_BUILD_TESTS=OFF -DSTOKER_BUILD_EXAMPLES=OFF -DSTOKER_BUILD_BENCHMARKS=OFF
        run "$cmake" --install "$work/stoker" --prefix "$work/first"
        mv "$work/first" "$work/prefix" # an installed package may be moved
        ;;
    fetch)
        if ! commit=$(git -C "$root" rev-parse HEAD 2>&1); then
            echo "skipped: $root is no clone ($commit)"
            exit 77
        fi
        run git clone -q --no-local "$root" "$work/clone"
        root=$work/clone
        ;;
esac
set_up -S "$(dirname "$0")" -B "$work/build" -DWAY="$way" -DSTOKER_ROOT="$root" -DSTOKER_COMMIT="$commit" \
    -DCMAKE_PREFIX_PATH="$work/prefix" -DFETCHCONTENT_QUIET=OFF -DCMAKE_EXPORT_COMPILE_COMMANDS=ON
run "$cmake" --build "$work/build"
if grep -E -- '-W|-fsanitize|gtest|stb' "$work/build/compile_commands.json"; then
    echo "flags of stoker's own reach its consumer"
    exit 1
fi
"$work/build/app"
echo "taken as $way"
