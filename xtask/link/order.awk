# Prints the symbols of the second file that the first one lists without what differs from one compiler to the next, in the
# order of the list; with `only_bare`, the list for the symbols of the only file.

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
NR == FNR { place[$1] = NR; count = NR; next }
bare($1) in place { symbols[place[bare($1)]] = symbols[place[bare($1)]] $1 "\n" }
END { for (line = 1; line <= count; line++) printf "%s", symbols[line] }
