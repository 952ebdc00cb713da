//! Writes the table of related words, so that no start has to work out their stems.

use std::collections::BTreeMap;
use std::env;
use std::fs;
use std::io::Error;
use std::path::Path;

#[expect(unreachable_pub, reason = "it is public in the library")]
#[path = "src/stem.rs"]
mod stem;

fn main() -> Result<(), Error> {
    println!("cargo::rerun-if-changed=src/related.txt");
    println!("cargo::rerun-if-changed=src/stem.rs");
    let text = fs::read_to_string("src/related.txt")?;
    let mut groups: BTreeMap<String, Vec<&str>> = BTreeMap::new();
    for line in text.lines() {
        let words: Vec<(&str, String)> = line
            .split_whitespace()
            .map(|word| (word, stem::stem(word)))
            .collect();
        for (_, member) in &words {
            let others = words.iter().filter(|(_, other)| other != member);
            groups.insert(member.clone(), others.map(|(word, _)| *word).collect());
        }
    }
    let entries: Vec<String> = groups
        .iter()
        .map(|(stem, others)| format!("    ({stem:?}, &{others:?}),\n"))
        .collect();
    let table = format!("&[\n{}]\n", entries.concat());
    let folder = env::var_os("OUT_DIR").ok_or_else(|| Error::other("OUT_DIR is not set"))?;
    fs::write(Path::new(&folder).join("related.rs"), table)
}
