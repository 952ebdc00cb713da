//! Packs the web page while the program is built: its modules become one script, and every file is compressed.
//!
//! The modules in `web/` run in a browser as they are. Joining saves a page thirty requests and a third of its
//! size, and needs no tool but this file: each module becomes a function that returns its exports, in the order of
//! their imports. Comments and spaces are left out.

// A build script talks to cargo by printing, and has nobody to return an error to. Its input is ours.
#![allow(clippy::print_stdout, clippy::expect_used, clippy::panic, clippy::string_slice)]

#[path = "build/squeeze.rs"]
mod squeeze;

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
    let read = |name: &str| fs::read_to_string(web.join(name)).unwrap_or_else(|error| panic!("web/{name}: {error}"));

    let mut joined = Joined { web, done: Vec::new(), text: String::new() };
    joined.add(ENTRY);
    let (script, style) = (joined.text, squeeze::style(&read("app.css")));
    let (script_name, style_name) = (hashed("app", "js", &script), hashed("app", "css", &style));
    let index = read("index.html")
        .replace("\"main.js\"", &format!("\"{script_name}\""))
        .replace("\"app.css\"", &format!("\"{style_name}\""));
    let files = [
        ("", "text/html; charset=utf-8", index),
        (&*script_name, "text/javascript; charset=utf-8", script),
        (&*style_name, "text/css; charset=utf-8", style),
        ("sw.js", "text/javascript; charset=utf-8", squeeze::script(&read("sw.js"))),
        ("manifest.webmanifest", "application/manifest+json", read("manifest.webmanifest")),
        ("icon.svg", "image/svg+xml", read("icon.svg")),
    ];
    let mut table = String::from("/// The files of the page.\nconst FILES: &[File] = &[\n");
    for (number, (name, kind, text)) in files.iter().enumerate() {
        let (plain, packed) = (out.join(format!("page-{number}")), out.join(format!("page-{number}.gz")));
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
    format!("{stem}-{:016x}.{ending}", hasher.finish()).trim_end_matches('.').to_owned()
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
    text: String,
}

impl Joined<'_> {
    /// Adds a module after those it imports.
    fn add(&mut self, name: &str) {
        if self.done.iter().any(|done| done == name) {
            return;
        }
        self.done.push(name.to_owned());
        let text = fs::read_to_string(self.web.join(name)).unwrap_or_else(|error| panic!("web/{name}: {error}"));
        let is_vendored = name.starts_with("vendor/");
        let (mut body, mut exports) = (String::new(), Vec::new());
        for line in text.lines() {
            if let Some(import) = line.strip_prefix("import ") {
                let Some((names, module)) = import.split_once(" from './") else {
                    panic!("web/{name}: an import is one line and names a file: {line}");
                };
                let module = module.trim_end_matches("';");
                self.add(module);
                let names = names.replace(" as ", ": ");
                let names = names.strip_prefix("*: ").unwrap_or(&names);
                writeln!(body, "const {names} = {};", variable(module)).expect("write to a string");
            } else if let Some((before, list)) = line.rsplit_once("export{").filter(|_| is_vendored) {
                exports.extend(renamed(list));
                writeln!(body, "{before}").expect("write to a string");
            } else if let Some(declared) = line.strip_prefix("export ") {
                exports.push(declared_name(declared).to_owned());
                writeln!(body, "{declared}").expect("write to a string");
            } else if !line.starts_with("//# sourceMappingURL") {
                writeln!(body, "{line}").expect("write to a string");
            }
        }
        let body = if is_vendored { body } else { squeeze::script(&body) };
        let exports = exports.join(",");
        let variable = variable(name);
        writeln!(self.text, "const {variable}=(()=>{{{body}\nreturn{{{exports}}}}})();").expect("write to a string");
    }
}

/// Turns `a as b, c}` into the fields `b: a` and `c`.
fn renamed(list: &str) -> Vec<String> {
    let list = list.trim_end_matches([';', '}', ' ']);
    let field = |export: &str| match export.trim().split_once(" as ") {
        Some((own, public)) => format!("{public}:{own}"),
        None => export.trim().to_owned(),
    };
    list.split(',').map(field).collect()
}

/// Returns the name that a declaration introduces.
fn declared_name(declared: &str) -> &str {
    let words = ["async ", "function ", "class ", "const ", "let "];
    let rest = words.iter().fold(declared, |rest, word| rest.strip_prefix(word).unwrap_or(rest));
    let end = rest.find(|letter: char| !letter.is_alphanumeric() && letter != '_');
    &rest[..end.unwrap_or(rest.len())]
}

fn variable(module: &str) -> String {
    let letters = module.chars().map(|letter| if letter.is_alphanumeric() { letter } else { '_' });
    format!("${}", letters.collect::<String>())
}
