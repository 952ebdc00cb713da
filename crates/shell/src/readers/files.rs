//! Programs that read files and text.

use super::Operands::{Any, Most, Without};
use super::Otherwise::{Harmless, Runs, Writes};
use super::{ReadProgram, row};

const LS: &str = "-a -A -b -B -c -C -d -D -f -F -g -G -h -H -i -I: -k -l -L -m -n -N -o -p -q -Q -r -R -s -S -t -T: \
    -u -U -v -w: -x -X -Z -1 -@ -e -O -W --all --almost-all --author --escape --block-size: --ignore-backups --color? \
    --directory --dired --classify? --file-type --format: --full-time --group-directories-first --no-group \
    --human-readable --si --dereference-command-line --dereference --hide: --hyperlink? --indicator-style: --inode \
    --ignore: --kibibytes --numeric-uid-gid --literal --hide-control-chars --show-control-chars --quote-name \
    --quoting-style: --reverse --recursive --size --sort: --time: --time-style: --tabsize: --width: --context --zero";
const GREP: &str = "-a -A: -b -B: -c -C: -d: -D: -e: -E -f: -F -G -h -H -i -I -J -l -L -m: -n -o -p -P -q -r -R -s -S -T \
    -U -v -V -w -x -y -z -Z -# --after-context: --basic-regexp --before-context: --binary --binary-files: --byte-offset \
    --color? --colour? --context? --count --dereference-recursive --devices: --directories: --exclude: --exclude-dir: \
    --exclude-from: --extended-regexp --file: --files-with-matches --files-without-match --fixed-strings --ignore-case \
    --include: --initial-tab --invert-match --label: --line-buffered --line-number --line-regexp --max-count: \
    --no-filename --no-ignore-case --no-messages --null --null-data --only-matching --perl-regexp --quiet --recursive \
    --regexp: --silent --text --with-filename --word-regexp";
const RG: &str = "-a -A: -b -B: -c -C: -d: -e: -E: -f: -F -g: -h -H -i -I -j: -l -L -m: -M: -n -N -o -p -P -q -r: -s -S -t: \
    -T: -u -U -v -V -w -x -. -0 --after-context: --auto-hybrid-regex --before-context: --binary --block-buffered \
    --byte-offset --case-sensitive --color: --colors: --column --context: --context-separator: --count --count-matches \
    --crlf --dfa-size-limit: --encoding: --engine: --field-context-separator: --field-match-separator: --file: --files \
    --files-with-matches --files-without-match --fixed-strings --follow --glob: --glob-case-insensitive --heading \
    --hidden --hyperlink-format: --iglob: --ignore-case --ignore-file: --ignore-file-case-insensitive --include-zero \
    --invert-match --json --line-buffered --line-number --line-regexp --max-columns: --max-columns-preview --max-count: \
    --max-depth: --max-filesize: --mmap --multiline --multiline-dotall --no-column --no-config --no-filename --no-heading \
    --no-hidden --no-ignore --no-ignore-dot --no-ignore-exclude --no-ignore-files --no-ignore-global --no-ignore-messages \
    --no-ignore-parent --no-ignore-vcs --no-line-number --no-messages --no-mmap --no-pcre2-unicode --no-require-git \
    --no-unicode --null --null-data --one-file-system --only-matching --passthru --path-separator: --pcre2 \
    --pcre2-version --pretty --quiet --regex-size-limit: --regexp: --replace: --smart-case --sort: --sortr: --stats \
    --stop-on-nonmatch --text --threads: --trim --type: --type-add: --type-clear: --type-list --type-not: --unrestricted \
    --vimgrep --with-filename --word-regexp --pre:! --pre-glob: --hostname-bin:!";
const FD: &str = "-H -I -u -s -i -g -F -a -L -p -0 -1 -q -h -V -e: -E: -d: -t: -S: -o: -c: -j: -C: --hidden --no-ignore \
    --unrestricted --case-sensitive --ignore-case --glob --regex --fixed-strings --absolute-path --follow --full-path \
    --print0 --max-results: --quiet --extension: --exclude: --max-depth: --min-depth: --exact-depth: --type: --size: \
    --changed-within: --changed-before: --owner: --color: --threads: --base-directory: --path-separator: \
    --search-path: -l --list-details --strip-cwd-prefix --no-ignore-vcs --no-ignore-parent --one-file-system --prune --newer: --older: \
    --format:";
const DIFF: &str = "-a -b -B -c -C: -d -D: -e -E -f -F: -H -i -I: -L: -n -N -p -P -q -r -s -S: -t -T -u -U: -v -w -W: -x: \
    -X: -y -Z -# --brief --color? --context? --ed --exclude: --exclude-from: --expand-tabs --from-file: --horizon-lines: \
    --ifdef: --ignore-all-space --ignore-blank-lines --ignore-case --ignore-file-name-case --ignore-matching-lines: \
    --ignore-space-change --ignore-tab-expansion --ignore-trailing-space --initial-tab --label: --left-column --minimal \
    --new-file --no-dereference --no-ignore-file-name-case --normal --palette: --rcs --recursive \
    --report-identical-files --show-c-function --show-function-line: --side-by-side --speed-large-files \
    --starting-file: --strip-trailing-cr --suppress-blank-empty --suppress-common-lines --tabsize: --text --to-file: \
    --unidirectional-new-file --unified? --width:";
const TREE: &str = "-a -d -f -l -x -L: -P: -I: -p -u -g -s -h -D -F -q -N -Q -C -n -r -t -c -U -v -A -S -i -J -X \
    --gitignore --noreport --dirsfirst --filesfirst --charset: --filelimit: --prune --du --si --timefmt: --matchdirs \
    --ignore-case --sort: --inodes --device --metafirst -o:>";
const STAT: &str =
    "-c: -f -f: -F -L -l -n -q -r -s -t -x --cached: --dereference --file-system --format: --printf: --terse";
const DU: &str = "-0 -a -A -b -B: -c -d: -D -g -h -H -I: -k -l -L -m -P -r -s -S -t: -x -X: --all --apparent-size \
    --block-size: --bytes --count-links --dereference --dereference-args --exclude: --exclude-from: --files0-from: \
    --human-readable --inodes --max-depth: --no-dereference --null --one-file-system --separate-dirs --si --summarize \
    --threshold: --time? --time-style: --total";
const DF: &str = "-a -b -B: -c -g -h -H -i -k -l -m -n -P -t: -T -v -x: --all --block-size: --human-readable --si --inodes \
    --local --no-sync --output? --portability --total --type: --print-type --exclude-type:";
const SORT: &str = "-b -c -C -d -f -g -h -i -k: -m -M -n -r -R -s -S: -t: -u -V -z --batch-size: --buffer-size: --check? \
    --debug --dictionary-order --field-separator: --files0-from: --general-numeric-sort --human-numeric-sort \
    --ignore-case --ignore-leading-blanks --ignore-nonprinting --key: --merge --month-sort --numeric-sort --parallel: \
    --random-sort --random-source: --reverse --sort: --stable --unique --version-sort --zero-terminated -o:> --output:> \
    --compress-program:!";
const JQ: &str = "-a -c -C -e -f: -h -j -M -n -r -R -s -S -V --arg: --argjson: --args --ascii-output --color-output \
    --compact-output --exit-status --from-file: --indent: --join-output --jsonargs --monochrome-output --null-input \
    --rawfile: --raw-input --raw-output --raw-output0 --seq --slurp --slurpfile: --sort-keys --stream --stream-errors \
    --tab --unbuffered";
const OD: &str = "-a -A: -b -c -d -e -f -h -H -i -I -j: -l -L -N: -o -s -S: -t: -v -w? -x -X -B -D -F -O -# --address-radix: \
    --endian: --format: --output-duplicates --read-bytes: --skip-bytes: --strings? --width?";

pub(super) const PROGRAMS: &[ReadProgram] = &[
    row("ls", LS, Any, Harmless),
    row(
        "cat",
        "-A -b -e -E -l -n -s -t -T -u -v --show-all --number-nonblank --show-ends --number --squeeze-blank --show-tabs \
         --show-nonprinting",
        Any,
        Harmless,
    ),
    row(
        "head",
        "-c: -n: -q -v -z -# --bytes: --lines: --quiet --silent --verbose --zero-terminated",
        Any,
        Harmless,
    ),
    row(
        "tail",
        "-b: -c: -f -F -n: -q -r -s: -v -z -# --bytes: --follow? --lines: --max-unchanged-stats: --pid: --quiet --retry \
         --silent --sleep-interval: --verbose --zero-terminated",
        Any,
        Harmless,
    ),
    row(
        "wc",
        "-c -l -L -m -w --bytes --chars --files0-from: --lines --max-line-length --total: --words",
        Any,
        Harmless,
    ),
    row("grep", GREP, Any, Harmless),
    row(
        "cut",
        "-b: -c: -d: -f: -n -s -w -z --bytes: --characters: --complement --delimiter: --fields: --only-delimited \
        --output-delimiter: --zero-terminated",
        Any,
        Harmless,
    ),
    row(
        "tr",
        "-c -C -d -s -t -u --complement --delete --squeeze-repeats --truncate-set1",
        Any,
        Harmless,
    ),
    row("tac", "-b -r -s: --before --regex --separator:", Any, Harmless),
    row("rev", "-0 --zero", Any, Harmless),
    row(
        "nl",
        "-b: -d: -f: -h: -i: -l: -n: -p -s: -v: -w: --body-numbering: --footer-numbering: --header-numbering: \
        --line-increment: --number-format: --number-separator: --number-width: --starting-line-number:",
        Any,
        Harmless,
    ),
    row(
        "fold",
        "-b -c -s -w: -# --bytes --characters --spaces --width:",
        Any,
        Harmless,
    ),
    row(
        "fmt",
        "-c -p: -s -t -u -w: -g: -# --crown-margin --prefix: --split-only --tagged-paragraph --uniform-spacing \
        --width: --goal:",
        Any,
        Harmless,
    ),
    row(
        "unexpand",
        "-a -i -t: -# --all --first-only --initial --tabs:",
        Any,
        Harmless,
    ),
    row(
        "paste",
        "-d: -s -z --delimiters: --serial --zero-terminated",
        Any,
        Harmless,
    ),
    row(
        "join",
        "-1: -2: -a: -e: -i -j: -o: -t: -v: -z --check-order --header --ignore-case --nocheck-order \
        --zero-terminated",
        Any,
        Harmless,
    ),
    row(
        "comm",
        "-1 -2 -3 -i -z --check-order --nocheck-order --output-delimiter: --total --zero-terminated",
        Any,
        Harmless,
    ),
    row(
        "pr",
        "-a -c -d -D: -e? -f -F -h: -i? -J -l: -m -n? -N: -o: -r -s? -S? -t -T -v -w: -W: -# --columns: --header: \
        --length: --omit-header --width:",
        Any,
        Harmless,
    ),
    row(
        "column",
        "-c: -d -e -J -l: -L -n: -N: -o: -O: -R: -s: -t -T: -W: -x --json --output-separator: --separator: \
        --table --table-columns: --table-name: --fillrows",
        Any,
        Harmless,
    ),
    row("colrm", "", Any, Harmless),
    row("look", "-a -b -d -f -t:", Any, Harmless),
    row(
        "strings",
        "-a -d -e: -f -n: -o -s: -t: -w -# --all --bytes: --data --encoding: --print-file-name --radix:",
        Without('@'),
        Writes,
    ),
    row(
        "cmp",
        "-b -i: -l -n: -s -x -z --bytes: --ignore-initial: --print-bytes --quiet --silent --verbose",
        Any,
        Harmless,
    ),
    row("diff", DIFF, Any, Harmless),
    row(
        "wdiff",
        "-1 -2 -3 -c -i -n -s --copyright --ignore-case --no-common --no-deleted --no-inserted --statistics",
        Any,
        Runs,
    ),
    row("sort", SORT, Any, Runs),
    row(
        "uniq",
        "-c -d -D -f: -i -s: -u -w: -z -# --all-repeated? --check-chars: --count --group? --ignore-case --repeated \
        --skip-chars: --skip-fields: --unique --zero-terminated",
        Most(1),
        Writes,
    ),
    row("jq", JQ, Any, Harmless),
    row(
        "yq",
        "-C -e -j -M -n -N -o: -p: -P -r -y -Y --colors --exit-status --input-format: --no-colors --no-doc --null-input \
        --output-format: --prettyPrint --raw-output --unwrapScalar",
        Any,
        Writes,
    ),
    row("rg", RG, Any, Runs),
    row(
        "ag",
        "-a -A? -B? -c -C? -D -f -F -g: -G: -h -H -i -l -L -m: -n -o -p: -Q -r -s -S -t -u -U -v -V -w -z -0 --after? \
        --all-text --all-types --before? --case-sensitive --color --column --context? --count --depth: --filename \
        --files-with-matches --files-without-matches --fixed-strings --follow --group --heading --hidden --ignore: \
        --ignore-case --ignore-dir: --invert-match --literal --nobreak --nocolor --nofilename --nogroup --noheading \
        --nonumbers --numbers --only-matching --print-all-files --silent --skip-vcs-ignores --smart-case --stats --unrestricted \
        --vimgrep --word-regexp --pager:!",
        Any,
        Runs,
    ),
    row("fd", FD, Any, Runs),
    row("tree", TREE, Any, Writes),
    row(
        "bat",
        "-A -d -f -h -H: -l: -L -m: -n -p -P -r: -s -S -u -V --color: --decorations: --diff --force-colorization \
        --highlight-line: --language: --line-range: --list-languages --list-themes --number --paging: --plain \
        --show-all --squeeze-blank --style: --tabs: --terminal-width: --theme: --wrap: --pager:!",
        Any,
        Runs,
    ),
    row(
        "less",
        "-a -c -e -E -f -F -g -G -i -I -J -K -m -M -n -N -p: -P: -q -Q -r -R -s -S -u -U -V -w -W -x: -X -z: \
        --chop-long-lines --ignore-case --IGNORE-CASE --LINE-NUMBERS --line-numbers --no-init --pattern: --quit-at-eof \
        --quit-if-one-screen --raw-control-chars --RAW-CONTROL-CHARS --squeeze-blank-lines",
        Without('+'),
        Runs,
    ),
    row(
        "more",
        "-c -d -e -f -l -n: -p -s -u -# --lines: --print-over --squeeze",
        Without('+'),
        Runs,
    ),
    row(
        "file",
        "-0 -b -c -d -e: -E -F: -h -i -k -l -L -m: -n -N -P: -r -s -v --apple --brief --checking-printout \
        --dereference --exclude: --extension --keep-going --list --magic-file: --mime --mime-encoding --mime-type \
        --no-buffer --no-dereference --no-pad --print0 --raw --separator: --special-files",
        Any,
        Writes,
    ),
    row("stat", STAT, Any, Harmless),
    row("du", DU, Any, Harmless),
    row("df", DF, Any, Harmless),
    row("basename", "-a -s: -z --multiple --suffix: --zero", Any, Harmless),
    row("dirname", "-z --zero", Any, Harmless),
    row(
        "realpath",
        "-e -m -L -P -q -s -z --canonicalize-existing --canonicalize-missing --logical --no-symlinks --physical \
        --quiet --relative-base: --relative-to: --strip --zero",
        Any,
        Harmless,
    ),
    row(
        "readlink",
        "-e -f -m -n -q -s -v -z --canonicalize --canonicalize-existing --canonicalize-missing --no-newline \
        --quiet --silent --verbose --zero",
        Any,
        Harmless,
    ),
    row("pathchk", "-p -P --portability", Any, Harmless),
    row(
        "sha256sum",
        "-b -c -l: -q -s -t -w -z --binary --check --ignore-missing --length: --quiet --status --strict --tag \
        --text --warn --zero",
        Any,
        Harmless,
    ),
    row(
        "shasum",
        "-0 -a: -b -c -q -s -S -t -U -w --algorithm: --binary --check --quiet --status --tag --text --warn",
        Any,
        Writes,
    ),
    row("md5", "-p -q -r -s: -t -x", Any, Harmless),
    row(
        "cksum",
        "-a: -b -c -l: -r -s -w -z --algorithm: --base64 --binary --check --debug --length: --quiet --raw --status \
        --strict --sysv --tag --untagged --warn --zero",
        Any,
        Harmless,
    ),
    row(
        "hexdump",
        "-b -c -C -d -e: -f: -L? -n: -o -s: -v -x -X --canonical --color? --format: --length: --no-squeezing --skip:",
        Any,
        Harmless,
    ),
    row("od", OD, Any, Harmless),
    row(
        "xxd",
        "-a -b -c: -C -d -e -E -g: -h -i -l: -n: -o: -p -ps -s: -u -v -R: -cols: -len: -bits",
        Most(1),
        Writes,
    ),
    row(
        "base64",
        "-d -D -i -w: --decode --ignore-garbage --wrap:",
        Most(1),
        Writes,
    ),
    row(
        "zcat",
        "-c -d -f -k -l -q -v --stdout --decompress --force --list --quiet --verbose",
        Any,
        Writes,
    ),
    row(
        "tokei",
        "-c: -C -e: -f -h -i: -l -n: -o: -s: -t: -V --columns: --compact --exclude: --files --hidden --input: --languages \
        --no-ignore --no-ignore-parent --no-ignore-vcs --num-format: --output: --sort: --types: --verbose",
        Any,
        Writes,
    ),
    row(
        "cloc",
        "--by-file --by-file-by-lang --csv --exclude-dir: --exclude-ext: --exclude-lang: --hide-rate --include-ext: \
        --include-lang: --json --md --quiet --show-lang? --skip-uniqueness --yaml",
        Any,
        Runs,
    ),
    row(
        "nm",
        "-a -A -B -C -D -f: -g -l -n -o -p -P -r -s -S -t: -u -U -v --debug-syms --defined-only --demangle? --dynamic \
        --extern-only --format: --line-numbers --no-sort --numeric-sort --portability --print-armap --print-file-name \
        --print-size --radix: --reverse-sort --size-sort --undefined-only --without-symbol-versions",
        Without('@'),
        Runs,
    ),
    row(
        "size",
        "-A -B -G -d -o -t -x --common --format: --radix: --totals",
        Without('@'),
        Writes,
    ),
    row(
        "objdump",
        "-a -C -d -D -f -g -G -h -j: -l -M: -p -r -R -s -S -t -T -w -x -z --all-headers --archive-headers --demangle? \
        --disassemble? --disassemble-all --dynamic-reloc --dynamic-syms --file-headers --full-contents --headers \
        --line-numbers --no-addresses --no-show-raw-insn --private-headers --reloc --section: --section-headers \
        --show-raw-insn --source --start-address: --stop-address: --syms --wide",
        Without('@'),
        Writes,
    ),
    row(
        "readelf",
        "-a -A -c -d -D -e -g -h -I -l -L -n -p: -r -R: -s -S -t -u -V -W -x: -X --all --arch-specific --dyn-syms \
        --dynamic --file-header --headers --hex-dump: --histogram --notes --program-headers --relocs --section-details \
        --section-headers --sections --segments --string-dump: --symbols --syms --unwind --version-info --wide",
        Without('@'),
        Writes,
    ),
    row(
        "iconv",
        "-c -f: -l -s -t: --from-code: --list --silent --to-code: -o:> --output:>",
        Any,
        Writes,
    ),
    row(
        "shuf",
        "-e -i: -n: -r -z --echo --head-count: --input-range: --random-source: --repeat --zero-terminated -o:> \
        --output:>",
        Any,
        Writes,
    ),
];
