#!/bin/bash
# trainer_test.sh TRAINER: the example trainer's promises, on small data.
set -euo pipefail
trainer=$1
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
cd "$work"
fail() { echo "FAILED: $*"; exit 1; }
hash_of() { sed -n 's/^final weights //p' "$1"; }

# Bitwise equal weights for 0, 1 and 4 workers, and any depth.
"$trainer" --small --out a --workers 1 >base.txt || fail "a plain run"
want=$(hash_of base.txt)
[ -n "$want" ] || fail "no hash was printed"
for setting in "--workers 0" "--workers 4" "--workers 4 --prefetch 1" "--workers 2 --prefetch 9"; do
    # shellcheck disable=SC2086
    "$trainer" --small --out a $setting >run.txt
    [ "$(hash_of run.txt)" = "$want" ] || fail "other weights with $setting"
done

# The same with an interruption in the middle of an epoch, at its end, and in the second epoch; exit 130.
for stop in 1 2 3 4; do
    code=0
    "$trainer" --small --out b --workers 3 --stop-after $stop >run.txt || code=$?
    [ $code = 130 ] || fail "exit $code instead of 130 after $stop batches"
    "$trainer" --small --out b --workers 1 --resume >run.txt || fail "resuming after $stop batches"
    [ "$(hash_of run.txt)" = "$want" ] || fail "other weights when interrupted after $stop batches"
done

# B005: SIGINT in the middle of an epoch, 20 times: gone within 3 s, exit 130, no core file.
for round in $(seq 20); do
    "$trainer" --out a --data a/pictures --epochs 100000 --workers 2 >/dev/null 2>&1 &
    process=$!
    while [ ! -e /proc/$process/task ] || [ "$(ls /proc/$process/task 2>/dev/null | wc -l)" -lt 3 ]; do
        kill -0 $process 2>/dev/null || fail "the trainer ended by itself"
    done
    kill -INT $process
    start=$SECONDS
    code=0
    wait $process || code=$?
    [ $code = 130 ] || fail "exit $code instead of 130 in round $round"
    [ $((SECONDS - start)) -le 3 ] || fail "it took more than 3 s to end"
done
[ -z "$(find . -name 'core*')" ] || fail "a core file was left"

# B010: kill -9 in the middle of an epoch, and start again, 5 times: nothing left in /dev/shm or TMPDIR.
for user in one two; do
    mkdir -p "tmp-$user"
    before=$(ls /dev/shm)
    for round in 1 2 3 4 5; do
        TMPDIR=$work/tmp-$user "$trainer" --out "kill-$user" --data a/pictures --epochs 100000 --workers 2 >/dev/null 2>&1 &
        process=$!
        while [ "$(ls /proc/$process/task 2>/dev/null | wc -l)" -lt 3 ]; do
            kill -0 $process 2>/dev/null || fail "the trainer ended by itself"
        done
        kill -9 $process
        wait $process 2>/dev/null || true
    done
    [ "$(ls /dev/shm)" = "$before" ] || fail "something is left in /dev/shm"
    [ -z "$(ls "tmp-$user")" ] || fail "something is left in TMPDIR"
    TMPDIR=$work/tmp-$user timeout 60 "$trainer" --small --out "kill-$user" >/dev/null || fail "a start after kill -9"
done

# Bad input: a clear error and exit 2.
for arguments in "--data /nowhere" "--epochs 0" "--nonsense" "--out fresh --resume --data a/pictures"; do
    code=0
    # shellcheck disable=SC2086
    "$trainer" $arguments >/dev/null 2>error.txt || code=$?
    [ $code = 2 ] && [ -s error.txt ] || fail "exit $code for $arguments"
done
echo "the trainer keeps its promises"
