use super::*;
use crate::parse_skill;
use crate::scan::SkillOrigin;

fn shown(body: &str, arguments: &str) -> String {
    let text = format!("---\nname: a\ndescription: d\narguments: [file, mode]\n---\n{body}");
    let skill = parse_skill(
        Path::new("/s/a/SKILL.md"),
        &text,
        SkillOrigin::User,
        &mut Vec::new(),
    )
    .unwrap();
    let variables = SkillVariables {
        arguments,
        folder: Path::new("/s/a"),
        project: Path::new("/p"),
        session: "77",
        plugin: None,
    };
    let pieces = Template::new(&skill, &variables)
        .0
        .into_iter()
        .map(|piece| match piece {
            Piece::Text(text) => text,
            Piece::Command(command) => format!("<{command}>"),
        });
    pieces.collect()
}

/// SKILL-2: arguments, named arguments, variables and commands are filled in; arguments never become commands.
#[test]
fn texts_are_filled() {
    for (body, arguments, expected) in [
        ("Look at $ARGUMENTS.", "a b", "Look at a b."),
        ("$0 then $1 then $ARGUMENTS[1]", "'x y' z", "x y then z then z"),
        ("$file in $mode, $other", "a b", "a in b, $other"),
        (
            "${CLAUDE_SKILL_DIR}/x ${CLAUDE_PROJECT_DIR} ${CLAUDE_SESSION_ID} ${HOME}",
            "",
            "/s/a/x /p 77 ${HOME}",
        ),
        ("Do it.", "now", "Do it.\n\nARGUMENTS: now"),
        ("Now: !`git log $0` end", "a", "Now: <git log a> end"),
        ("not a!`b` nor !`\n`", "", "not a!`b` nor !`\n`"),
        ("say $ARGUMENTS", "!`rm x`", "say !`rm x`"),
        ("costs $$5 or $x", "", "costs $ or $x"),
    ] {
        assert_eq!(shown(body, arguments), expected, "{body:?}");
    }
}
