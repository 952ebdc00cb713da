//! Patterns for paths, as `paths` in a skill's front matter has them.

/// Maximum number of steps of one comparison, so that no pattern takes long.
const STEPS: usize = 20_000;

/// Returns true if a relative path fits a pattern: `*` and `?` within a name, `**` for any folders, `{a,b}` for
/// alternatives. A pattern without a slash fits the name of a file in any folder.
pub fn glob_matches(pattern: &str, path: &str) -> bool {
    let pattern = pattern.trim().trim_start_matches("./");
    let mut steps = STEPS;
    alternatives(pattern).iter().any(|pattern| {
        let name = path.rsplit('/').next().unwrap_or(path);
        let subject = if pattern.contains('/') { path } else { name };
        let pattern: Vec<char> = pattern.chars().collect();
        let subject: Vec<char> = subject.chars().collect();
        fits(&pattern, &subject, &mut steps)
    })
}

/// Expands the first `{a,b}`, once.
fn alternatives(pattern: &str) -> Vec<String> {
    let found = pattern
        .split_once('{')
        .and_then(|(before, rest)| rest.split_once('}').map(|(inner, after)| (before, inner, after)));
    match found {
        None => vec![pattern.to_owned()],
        Some((before, inner, after)) => inner
            .split(',')
            .map(|choice| format!("{before}{choice}{after}"))
            .collect(),
    }
}

fn fits(pattern: &[char], path: &[char], steps: &mut usize) -> bool {
    let Some(left) = steps.checked_sub(1) else {
        return false;
    };
    *steps = left;
    match pattern {
        [] => path.is_empty(),
        ['*', '*', '/', rest @ ..] => {
            fits(rest, path, steps)
                || (0..path.len()).any(|at| {
                    path.get(at) == Some(&'/') && fits(rest, path.get(at + 1..).unwrap_or_default(), steps)
                })
        }
        ['*', '*', rest @ ..] => {
            (0..=path.len()).any(|at| fits(rest, path.get(at..).unwrap_or_default(), steps))
        }
        ['*', rest @ ..] => {
            let end = path
                .iter()
                .position(|letter| *letter == '/')
                .unwrap_or(path.len());
            (0..=end).any(|at| fits(rest, path.get(at..).unwrap_or_default(), steps))
        }
        ['?', rest @ ..] => match path {
            [first, more @ ..] if *first != '/' => fits(rest, more, steps),
            _ => false,
        },
        [letter, rest @ ..] => match path {
            [first, more @ ..] if first == letter => fits(rest, more, steps),
            _ => false,
        },
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// SKILL-1: `paths` has the usual patterns.
    #[test]
    fn patterns_fit_paths() {
        for (pattern, path, expected) in [
            ("*.rs", "src/a.rs", true),
            ("src/*.rs", "src/a.rs", true),
            ("src/*.rs", "src/b/a.rs", false),
            ("src/**/*.rs", "src/b/c/a.rs", true),
            ("src/**/*.rs", "src/a.rs", true),
            ("docs/**", "docs/a/b.md", true),
            ("*.{ts,tsx}", "web/x.tsx", true),
            ("?.md", "ab.md", false),
            ("**", "anything/at/all", true),
        ] {
            assert_eq!(glob_matches(pattern, path), expected, "{pattern} {path}");
        }
        assert!(!glob_matches(&"*a".repeat(200), &"b".repeat(2_000)));
    }
}
