//! Packs the web page while the program is built: its modules become one script, and every file is compressed.
//!
//! The modules in `web/` run in a browser as they are. Joining saves a page thirty requests and a third of its
//! size, and needs no tool but this file: the modules follow each other in the order of their imports, without
//! comments, spaces, long names, and the parts of vendored modules that nothing reaches.

// A build script talks to cargo by printing, and has nobody to return an error to. Its input is ours.
#![allow(
    clippy::print_stdout,
    clippy::expect_used,
    clippy::panic,
    clippy::string_slice
)]

#[path = "build/shake.rs"]
mod shake;
#[path = "build/shorten.rs"]
mod shorten;
#[path = "build/squeeze.rs"]
mod squeeze;

use std::collections::HashMap;
use std::collections::hash_map::DefaultHasher;
use std::fmt::Write as _;
use std::hash::Hasher as _;
use std::path::{Path, PathBuf};
use std::{env, fs};

use zopfli::{Format, Options};

/// The module that imports all others.
const ENTRY: &str = "main.js";

fn main() {
    let web = Path::new("../../web");
    println!("cargo:rerun-if-changed=build.rs");
    println!("cargo:rerun-if-changed=build");
    println!("cargo:rerun-if-changed={}", web.display());
    let out = PathBuf::from(env::var_os("OUT_DIR").expect("cargo sets OUT_DIR"));
    let read =
        |name: &str| fs::read_to_string(web.join(name)).unwrap_or_else(|error| panic!("web/{name}: {error}"));

    let mut joined = Joined {
        web,
        done: Vec::new(),
        names: HashMap::new(),
        text: String::new(),
    };
    joined.add(ENTRY, "");
    let script = shorten::shorten(&joined.text, joined.names.keys().map(String::as_str));
    let style = squeeze::style(&read("app.css"));
    let (script_name, style_name) = (hashed("app", "js", &script), hashed("app", "css", &style));
    let index = read("index.html")
        .replace("\"main.js\"", &format!("\"{script_name}\""))
        .replace("\"app.css\"", &format!("\"{style_name}\""));
    let files = [
        ("", "text/html; charset=utf-8", index),
        (&*script_name, "text/javascript; charset=utf-8", script),
        (&*style_name, "text/css; charset=utf-8", style),
        (
            "sw.js",
            "text/javascript; charset=utf-8",
            squeeze::script(&read("sw.js")),
        ),
        (
            "manifest.webmanifest",
            "application/manifest+json",
            read("manifest.webmanifest"),
        ),
        ("icon.svg", "image/svg+xml", read("icon.svg")),
    ];
    let mut table = String::from("/// The files of the page.\nconst FILES: &[File] = &[\n");
    for (number, (name, kind, text)) in files.iter().enumerate() {
        let (plain, packed) = (
            out.join(format!("page-{number}")),
            out.join(format!("page-{number}.gz")),
        );
        fs::write(&plain, text).expect("write to OUT_DIR");
        fs::write(&packed, compressed(text)).expect("write to OUT_DIR");
        let tag = hashed("w", "", text);
        writeln!(
            table,
            "File {{ name: {name:?}, kind: {kind:?}, tag: {tag:?}, plain: include_bytes!({plain:?}), packed: include_bytes!({packed:?}) }},"
        )
        .expect("write to a string");
    }
    table.push_str("];\n");
    fs::write(out.join("page.rs"), table).expect("write to OUT_DIR");
}

fn hashed(stem: &str, ending: &str, text: &str) -> String {
    let mut hasher = DefaultHasher::new();
    hasher.write(text.as_bytes());
    format!("{stem}-{:016x}.{ending}", hasher.finish())
        .trim_end_matches('.')
        .to_owned()
}

fn compressed(text: &str) -> Vec<u8> {
    let mut packed = Vec::new();
    zopfli::compress(Options::default(), Format::Gzip, text.as_bytes(), &mut packed).expect("compress");
    packed
}

/// The modules so far, as one script.
struct Joined<'a> {
    web: &'a Path,
    /// Modules that are part of it, or being added.
    done: Vec<String>,
    /// Names of all declarations, with their modules.
    names: HashMap<String, String>,
    text: String,
}

impl Joined<'_> {
    /// Adds a module after those it imports. Names are unique in the whole page, so no module needs a scope of its
    /// own; only vendored ones get one.
    fn add(&mut self, name: &str, imported: &str) {
        if self.done.iter().any(|done| done == name) {
            return;
        }
        self.done.push(name.to_owned());
        let text =
            fs::read_to_string(self.web.join(name)).unwrap_or_else(|error| panic!("web/{name}: {error}"));
        let body = match name.starts_with("vendor/") {
            true => scoped(&text, imported),
            false => self.own(name, &text),
        };
        self.text.push_str(&body);
        self.text.push('\n');
    }

    /// Returns a module of ours without imports and exports.
    fn own(&mut self, name: &str, text: &str) -> String {
        let mut body = String::new();
        for line in text.lines() {
            if let Some(import) = line.strip_prefix("import ") {
                let module = import
                    .split_once(" from './")
                    .filter(|_| !import.contains(" as "));
                let Some((names, module)) = module else {
                    panic!("web/{name}: an import is one line, names a file, and renames nothing: {line}");
                };
                self.add(module.trim_end_matches("';"), names);
                continue;
            }
            let line = line.strip_prefix("export ").unwrap_or(line);
            if let Some(declared) = declared(line)
                && let Some(other) = self.names.insert(declared.to_owned(), name.to_owned())
            {
                panic!("web/{name} and web/{other} both declare `{declared}`; rename one");
            }
            body.push_str(line);
            body.push('\n');
        }
        squeeze::script(&body)
    }
}

/// Returns what is used of a vendored module, in a scope of its own, of which only some names are visible.
fn scoped(text: &str, names: &str) -> String {
    let Some((body, exports)) = text.rsplit_once("export{") else {
        panic!("a vendored module ends with its exports");
    };
    let exports = exports.lines().next().unwrap_or_default();
    let wanted: Vec<&str> = names
        .split([' ', ',', '{', '}'])
        .filter(|name| !name.is_empty())
        .collect();
    let used: Vec<(&str, &str)> = renamed(exports)
        .into_iter()
        .filter(|(public, _)| wanted.contains(public))
        .collect();
    let roots: Vec<&str> = used.iter().map(|(_, own)| *own).collect();
    let fields: Vec<String> = used
        .iter()
        .map(|(public, own)| format!("{public}:{own}"))
        .collect();
    // The first comment names the authors and their licence.
    let notice = body.find("*/").map_or("", |end| body[..end + 2].trim());
    format!(
        "{notice}const {names}=(()=>{{{}return{{{}}}}})();",
        shake::shake(body, &roots),
        fields.join(",")
    )
}

/// Turns `a as b, c}` into pairs of the public and the own name.
fn renamed(list: &str) -> Vec<(&str, &str)> {
    let list = list.trim_end_matches([';', '}', ' ']);
    list.split(',')
        .map(str::trim)
        .map(|export| {
            export
                .split_once(" as ")
                .map_or((export, export), |(own, public)| (public, own))
        })
        .collect()
}

/// Returns the name that a line declares, if it is a declaration at the top level.
fn declared(line: &str) -> Option<&str> {
    let line = line.strip_prefix("async ").unwrap_or(line);
    let words = ["function ", "class ", "const ", "let "];
    let rest = words.iter().find_map(|word| line.strip_prefix(word))?;
    let end = rest.find(|letter: char| !letter.is_alphanumeric() && letter != '_');
    Some(&rest[..end.unwrap_or(rest.len())]).filter(|name| !name.is_empty())
}
