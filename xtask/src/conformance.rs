//! `cargo xtask conformance`: maps requirements to the tests that prove them.
//!
//! The requirements are in `xtask/requirements.toml`. A test names the requirements it proves in its doc
//! comment (`/// LOOP-4`, or `/// LOOP-4, LOOP-5: the claim`), a Python test in its docstring.
//! `docs/conformance.md` joins both. A requirement counts as done only while a test names it.

mod page;
mod register;
mod scan;

use anyhow::{Context, Result, bail};

use self::register::{Register, State};
use self::scan::NamedTest;
use crate::repo::{self, Root};

const PAGE: &str = "docs/conformance.md";
const REGISTER: &str = "xtask/requirements.toml";

pub(crate) fn command(root: &Root, arguments: &[String]) -> Result<()> {
    match arguments {
        [] => write(root),
        [check] if check == "--check" => check_page(root),
        _ => bail!("usage: cargo xtask conformance [--check]"),
    }
}

/// Writes the page and prints the problems of the register.
fn write(root: &Root) -> Result<()> {
    let state = Conformance::read(root)?;
    std::fs::write(root.join(PAGE), state.page()).with_context(|| format!("cannot write {PAGE}"))?;
    println!("conformance: wrote {PAGE}");
    for problem in state.problems() {
        println!("{problem}");
    }
    Ok(())
}

/// Fails if the page is out of date, or if no test names a requirement that is done.
pub(crate) fn check_page(root: &Root) -> Result<()> {
    let state = Conformance::read(root)?;
    let mut problems = state.problems();
    let written = std::fs::read_to_string(root.join(PAGE)).unwrap_or_default();
    if written != state.page() {
        problems.push(format!(
            "{PAGE}:1: the page is out of date; run `cargo xtask conformance`"
        ));
    }
    if !problems.is_empty() {
        bail!(
            "the list of requirements does not match the tests:\n{}",
            problems.join("\n")
        );
    }
    println!("conformance: {PAGE} is up to date");
    Ok(())
}

/// The requirements and the tests that name them.
struct Conformance {
    register: Register,
    tests: Vec<NamedTest>,
}

impl Conformance {
    fn read(root: &Root) -> Result<Self> {
        let text = std::fs::read_to_string(root.join(REGISTER))
            .with_context(|| format!("cannot read {REGISTER}"))?;
        let register = Register::parse(&text).context(REGISTER)?;
        let tests = repo::text_files(root)?
            .iter()
            .flat_map(|file| scan::tests(file, &register))
            .collect();
        Ok(Self { register, tests })
    }

    fn page(&self) -> String {
        page::render(&self.register, &self.tests)
    }

    fn problems(&self) -> Vec<String> {
        let unknown = self.tests.iter().flat_map(|test| {
            let unknown = test
                .ids
                .iter()
                .filter(|id| self.register.requirement(id).is_none());
            unknown.map(move |id| {
                format!(
                    "{}:{}: {id} is not a requirement; see {REGISTER}",
                    test.path, test.line
                )
            })
        });
        let done = self
            .register
            .requirements()
            .filter(|requirement| requirement.state == State::Done);
        let unshown =
            done.filter(|requirement| !self.tests.iter().any(|test| test.ids.contains(&requirement.id)));
        let unshown = unshown.map(|requirement| {
            format!(
                "{REGISTER}:{}: {} is done, but no test names it",
                requirement.line, requirement.id
            )
        });
        unknown.chain(unshown).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::repo::TextFile;

    const TWO: &str = "[[area]]\nname = \"LOOP\"\ntitle = \"the loop\"\nrequirements = [\n\
                       { id = \"LOOP-1\", state = \"done\", title = \"one\" },\n\
                       { id = \"LOOP-2\", state = \"planned\", title = \"two\" },\n]\n";

    fn problems(rust: &str) -> Vec<String> {
        let register = Register::parse(TWO).expect("the fixture is a register");
        let file = TextFile {
            path: "crates/core/src/turn.rs".to_owned(),
            text: rust.to_owned(),
        };
        let tests = scan::tests(&file, &register);
        Conformance { register, tests }.problems()
    }

    #[test]
    fn what_is_done_needs_a_test() {
        assert_eq!(problems("/// LOOP-1\n#[test]\nfn one() {}\n"), [""; 0]);
        assert_eq!(
            problems(""),
            ["xtask/requirements.toml:5: LOOP-1 is done, but no test names it"]
        );
    }

    #[test]
    fn a_test_names_only_requirements_that_exist() {
        let unknown = problems("/// LOOP-1, LOOP-9\n#[test]\nfn one() {}\n");
        assert_eq!(
            unknown,
            ["crates/core/src/turn.rs:3: LOOP-9 is not a requirement; see xtask/requirements.toml"]
        );
    }

    /// Runs the check of `cargo xtask conformance --check`, so that `cargo test` keeps the page up to date.
    #[test]
    fn the_page_is_true() {
        let root = Root::find().expect("cargo names the package's folder");
        if let Err(error) = check_page(&root) {
            panic!("{error:#}");
        }
    }
}
