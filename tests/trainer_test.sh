#!/bin/bash
# trainer_test.sh TRAINER: the example trainer's promises, on small data.
set -euo pipefail
trainer=$(realpath "$1")
work=$(mktemp -d)
process=
trap '[ -z "$process" ] || kill -9 "$process" 2>/dev/null || true; rm -rf "$work"' EXIT
cd "$work"
fail() { echo "FAILED: $*"; exit 1; }
hash_of() { sed -n 's/^final weights //p' "$1"; }
milliseconds() { echo $((${EPOCHREALTIME/[.,]/} / 1000)); }

# Starts a run that does not end by itself, in the background; returns with its first batch taken, after `waited` ms.
start_endless() {
    local out=$1
    rm -f "$out/log.txt"
    local begin
    begin=$(milliseconds)
    "$trainer" --out "$out" --data a/rendered-20-seed-7 --epochs 1000000 --workers 2 >"$out.txt" 2>&1 &
    process=$!
    until grep -qs '^first batch' "$out/log.txt"; do
        kill -0 $process 2>/dev/null || fail "the trainer ended by itself: $(cat "$out.txt")"
        [ $(($(milliseconds) - begin)) -lt 20000 ] || fail "no batch within 20 s"
        sleep 0.01
    done
    waited=$(($(milliseconds) - begin))
}

# It learns: its rendered pictures to 90 % and more, within a minute.
begin=$(milliseconds)
"$trainer" --out full --epochs 3 >run.txt || fail "a plain run"
took=$(($(milliseconds) - begin))
accuracy=$(sed -n 's/^best validation accuracy \([0-9]*\).*/\1/p' run.txt)
[ "$accuracy" -ge 90 ] || fail "accuracy $accuracy %"
[ $took -lt 60000 ] || fail "three epochs took $took ms"
echo "accuracy $accuracy % after $took ms"
rm -r full

# Bitwise equal weights for 0, 1 and 4 workers, and any depth.
"$trainer" --small --out a --workers 1 >base.txt || fail "a small run"
want=$(hash_of base.txt)
[ -n "$want" ] || fail "no hash was printed"
cp a/best-weights best-weights
for setting in "--workers 0" "--workers 4" "--workers 4 --prefetch 1" "--workers 2 --prefetch 9"; do
    # shellcheck disable=SC2086
    "$trainer" --small --out a $setting >run.txt
    [ "$(hash_of run.txt)" = "$want" ] || fail "other weights with $setting"
    cmp -s a/best-weights best-weights || fail "other best weights with $setting"
done

# The same with an interruption: in the middle of an epoch, behind its last batch (3 and 6), in the second epoch. What
# the epochs print is the same, too: nothing is trained twice or left out, and no validation is.
grep '^epoch' base.txt >base_epochs.txt
for stop in 1 2 3 4 5 6; do
    code=0
    "$trainer" --small --out b --workers 3 --stop-after $stop >first.txt || code=$?
    [ $code = 130 ] || fail "exit $code instead of 130 after $stop batches"
    "$trainer" --small --out b --workers 1 --prefetch 1 --resume >run.txt || fail "resuming after $stop batches"
    [ "$(hash_of run.txt)" = "$want" ] || fail "other weights when interrupted after $stop batches"
    cat first.txt run.txt | grep '^epoch' | cmp -s - base_epochs.txt || fail "other epochs after $stop batches"
    cmp -s b/best-weights best-weights || fail "other best weights when interrupted after $stop batches"
done
# Interrupted twice in one epoch, with no workers, then with four.
"$trainer" --small --out b --workers 0 --stop-after 1 >run.txt || [ $? = 130 ]
"$trainer" --small --out b --workers 4 --stop-after 1 --resume >run.txt || [ $? = 130 ]
"$trainer" --small --out b --resume >run.txt || fail "resuming twice"
[ "$(hash_of run.txt)" = "$want" ] || fail "other weights when interrupted twice"

# B005: SIGINT in the middle of an epoch, 20 times: gone within 3 s, exit 130, no core file. SIGTERM: 143.
ulimit -c unlimited 2>/dev/null || true
longest=0
for round in $(seq 21); do
    signal=INT want_code=130
    [ "$round" != 21 ] || { signal=TERM want_code=143; }
    start_endless c
    begin=$(milliseconds)
    kill -$signal $process
    code=0
    wait $process || code=$?
    took=$(($(milliseconds) - begin))
    process=
    [ $code = $want_code ] || fail "exit $code instead of $want_code in round $round"
    [ $took -lt 3000 ] || fail "it took $took ms to end"
    [ -s c/checkpoint ] || fail "no checkpoint was left"
    longest=$((took > longest ? took : longest))
done
[ -z "$(find . -name 'core*')" ] || fail "a core file was left"
echo "gone after a signal within $longest ms"

# B010: kill -9 in the middle of an epoch, and start again, 5 times: the first batch within 3 s, nothing left in
# /dev/shm or TMPDIR.
longest=0
for user in one two; do
    mkdir -p "tmp-$user"
    before=$(ls /dev/shm)
    for round in 1 2 3 4 5; do
        TMPDIR=$work/tmp-$user start_endless "kill-$user"
        [ $waited -lt 3000 ] || fail "the first batch took $waited ms"
        longest=$((waited > longest ? waited : longest))
        kill -9 $process
        wait $process 2>/dev/null || true
        process=
    done
    [ "$(ls /dev/shm)" = "$before" ] || fail "something is left in /dev/shm"
    [ -z "$(ls -A "tmp-$user")" ] || fail "something is left in TMPDIR"
done
echo "first batch after kill -9 within $longest ms"

# Killed without warning: going on from the checkpoint of the last whole epoch gives the weights of an unbroken run.
start_endless e
until [ "$(grep -c '^epoch' e/log.txt)" -ge 2 ]; do sleep 0.01; done
kill -9 $process
wait $process 2>/dev/null || true
process=
epochs=$(($(grep -c '^epoch' e/log.txt) + 2))
"$trainer" --out e --data a/rendered-20-seed-7 --epochs $epochs --resume >run.txt || fail "going on after kill -9"
"$trainer" --out a --data a/rendered-20-seed-7 --epochs $epochs >unbroken.txt || fail "an unbroken run"
[ "$(hash_of run.txt)" = "$(hash_of unbroken.txt)" ] || fail "other weights after kill -9"
cmp -s a/best-weights e/best-weights || fail "other best weights after kill -9"
[ ! -e e/checkpoint ] || fail "a finished run leaves a checkpoint"

# One picture per class cannot be split: it says so, and trains. Without validation, too.
for class in 1 2 3; do
    mkdir -p "single/$class"
    cp a/rendered-20-seed-7/disc/0000$((2 * class)).jpg "single/$class/"
done
"$trainer" --out d --data single --epochs 1 >run.txt || fail "one picture per class"
grep -q '^note: no class has two pictures' run.txt || fail "no note about the validation pictures"
"$trainer" --out d --data single --epochs 1 --val none >run.txt || fail "--val none"
# DIR/train and DIR/val.
mkdir -p split
cp -r a/rendered-20-seed-7 split/train
cp -r a/rendered-20-seed-7 split/val
"$trainer" --out d --data split --epochs 1 >run.txt || fail "train and val"
grep -q '^100 pictures to train on, 100 to validate, 5 classes' run.txt || fail "train and val are not used"
# A broken picture is left out, and named.
head -c 300 split/train/disc/00000.jpg >split/train/disc/00001.png
"$trainer" --out d --data split --epochs 1 >run.txt || fail "a broken picture"
grep -q 'note: loading failed 1 times.*disc/00001.png' run.txt || fail "the broken picture is not named"
# Both ways, measured.
"$trainer" --small --out a --compare >run.txt || fail "--compare"
grep -q '^measured: .*weights equal' run.txt || fail "--compare does not compare"
grep -q '^measured: ' a/log.txt || fail "the log lacks lines"

# Bad input: a clear error and exit 2.
"$trainer" --small --out b --stop-after 1 >run.txt || [ $? = 130 ]
for arguments in "--data /nowhere" "--data $0" "--epochs 0" "--epochs 1x" "--nonsense" "--seed" "--val maybe" \
    "--compare --resume" "--out /proc/nothing" "--out fresh --resume --data split" "--small --out b --resume --size 16" \
    "--small --out b --resume --batch-size 16" "--small --out b --resume --data split"; do
    code=0
    # shellcheck disable=SC2086
    "$trainer" $arguments >/dev/null 2>error.txt || code=$?
    [ $code = 2 ] && [ -s error.txt ] || fail "exit $code for $arguments"
done
"$trainer" --help | grep -q -- --resume || fail "--help"
echo "the trainer keeps its promises"
