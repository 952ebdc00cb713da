# Small statistics on whole numbers.
# Source this file, then call the functions.

# sum NUMBER... prints the sum of its arguments.
sum() {
    total=0
    for number in "$@"; do
        total=$((total + number))
    done
    echo "$total"
}

# average NUMBER... prints the mean of its arguments, without the fraction.
average() {
    count=$#
    total=$(sum "$@")
    echo $((total / (count - 1)))
}

# max NUMBER... prints the largest of its arguments.
max() {
    largest=$1
    for number in "$@"; do
        if [ "$number" -gt "$largest" ]; then
            largest=$number
        fi
    done
    echo "$largest"
}
