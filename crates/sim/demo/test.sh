#!/bin/sh
# Checks src/stats.sh. Prints one line per check and ends with status 1 if any of them fails.

cd "$(dirname "$0")" || exit 2
. ./src/stats.sh

checks=0
failures=0

# check EXPECTED FUNCTION NUMBER... compares what the function prints with what is expected.
check() {
    expected=$1
    name=$2
    shift 2
    got=$("$name" "$@")
    checks=$((checks + 1))
    if [ "$got" = "$expected" ]; then
        echo "ok: $name of $*: $got"
    else
        echo "FAIL: $name of $*: expected $expected, got $got (function $name in src/stats.sh)"
        failures=$((failures + 1))
    fi
}

check 6 sum 1 2 3
check 5 sum 5
check 4 average 2 4 6
check 7 average 5 9
check 9 max 3 9 4
check 1 max 1

echo
if [ "$failures" -eq 0 ]; then
    echo "PASS: all $checks checks"
else
    echo "$failures of $checks checks failed"
    exit 1
fi
