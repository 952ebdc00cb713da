# Prints the symbols of the second file that the first one lists without what differs from one compiler to the next;
# with `only_bare`, the list for the symbols of the only file.

# Leaves out the hashes of crates, the positions that depend on their lengths, and the mark of a private copy.
function bare(symbol) {
    sub(/\.llvm\..*$/, "", symbol)
    if (symbol ~ /^_R/) {
        gsub(/Cs[0-9A-Za-z]+_/, "C_", symbol)
        gsub(/B[0-9A-Za-z]*_/, "B_", symbol)
    }
    return symbol
}

only_bare { print bare($1); next }
NR == FNR { listed[$1]; next }
bare($1) in listed { print $1 }
