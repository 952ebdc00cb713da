use super::*;
use crate::text::width;

fn request(preview: Option<&str>) -> Waiting {
    Waiting::PermissionRequest {
        call_id: CallId::from("1".to_owned()),
        tool: "bash".to_owned(),
        category: Category::Admin,
        subjects: vec!["rm -r build".to_owned(), "git push".to_owned()],
        reasons: vec!["it reaches outside".to_owned()],
        preview: preview.map(str::to_owned),
    }
}

fn question() -> Waiting {
    Waiting::Question {
        call_id: CallId::from("1".to_owned()),
        text: "Which one?".to_owned(),
        options: vec!["red".to_owned(), "blue".to_owned()],
    }
}

fn press(asking: &mut Asking, letter: char) -> Pressed {
    asking.handle(&KeyEvent::from(KeyCode::Char(letter)), true)
}

fn texts(lines: &[Line<'_>]) -> Vec<String> {
    lines.iter().map(ToString::to_string).collect()
}

/// UI-2: a request says on one screen what would happen, why it asks, and what can be answered.
#[test]
fn a_request_says_what_would_happen() {
    let asking = Asking::of(&request(Some("rm -r build && git push"))).unwrap();
    let lines = texts(&asking.render(120, 20, Theme::default()));
    assert_eq!(
        lines,
        [
            "▲ bash asks to run (admin)",
            "  rm -r build && git push",
            "  that is: rm -r build · git push",
            "  it reaches outside",
            "  y yes, once · s yes, in this session · a always in this folder · n no · t tell it what to do instead",
        ]
    );
}

/// UI-2: the keys y, s, a and n answer, t lets one say what to do instead, and no other letter does anything.
#[test]
fn letters_answer_a_request() {
    let cases = [
        ('y', Answer::Once),
        ('s', Answer::Session),
        ('a', Answer::Always),
        ('n', Answer::No),
    ];
    for (letter, answer) in cases {
        let mut asking = Asking::of(&request(None)).unwrap();
        assert_eq!(
            press(&mut asking, letter),
            Pressed::Reply(Reply::Permission(answer))
        );
    }
    let mut asking = Asking::of(&request(None)).unwrap();
    assert_eq!(press(&mut asking, 'q'), Pressed::Taken);
    assert!(!asking.takes_text());
    assert_eq!(press(&mut asking, 't'), Pressed::Taken);
    assert!(asking.takes_text());
    assert_eq!(press(&mut asking, 'y'), Pressed::Nothing);
    let note = asking.answer("use git pull".to_owned());
    assert_eq!(
        note,
        Reply::Permission(Answer::NoBecause("use git pull".to_owned()))
    );
}

/// UI-2: a request that appears while somebody types takes no key until they have seen it and paused.
#[test]
fn a_letter_of_somebody_who_types_is_no_answer() {
    let mut asking = Asking::of(&request(None)).unwrap();
    assert!(asking.is_startling(10_000, 0), "not on the screen yet");
    asking.shown(10_000, 9_900);
    let mut last = 9_900;
    for now in (10_100..13_000).step_by(200) {
        assert!(asking.is_startling(now, last), "{now}");
        last = now;
    }
    assert!(!asking.is_startling(last + 600, last));
    assert!(
        !asking.is_startling(last + 601, last + 600),
        "once seen, keys may come fast"
    );
    let mut asking = Asking::of(&request(None)).unwrap();
    asking.shown(10_000, 2_000);
    assert!(asking.is_startling(10_100, 2_000), "a request has to be seen");
    assert!(!asking.is_startling(10_400, 10_100));
}

/// UI-2: a question is answered with a number or with words.
#[test]
fn a_question_is_answered() {
    let mut asking = Asking::of(&question()).unwrap();
    assert_eq!(
        press(&mut asking, '2'),
        Pressed::Reply(Reply::Text("blue".to_owned()))
    );
    assert_eq!(press(&mut asking, '7'), Pressed::Nothing);
    assert_eq!(asking.answer("green".to_owned()), Reply::Text("green".to_owned()));
    let lines = texts(&asking.render(60, 20, Theme::default()));
    assert_eq!(lines.first().map(String::as_str), Some("? Which one?"));
}

/// UI-2: a long request fits the screen, says that there is more, and shows all of it on demand.
#[test]
fn a_long_request_fits_the_screen() {
    let long: String = (0..200).map(|line| format!("echo {line}\n")).collect();
    let mut asking = Asking::of(&request(Some(&long))).unwrap();
    for rows in 2..30 {
        let lines = asking.render(120, rows, Theme::default());
        assert!(lines.len() <= rows.max(2), "{rows}");
    }
    let lines = texts(&asking.render(120, 10, Theme::default()));
    assert!(
        lines.iter().any(|line| line.contains("more lines: v shows all")),
        "{lines:?}"
    );
    assert_eq!(press(&mut asking, 'v'), Pressed::View);
    assert!(asking.whole(120, Theme::default()).len() > 200);
}

/// SAFE-7: a control sequence in a command cannot hide the rest of it from whoever is asked.
#[test]
fn a_request_hides_nothing() {
    let asking = Asking::of(&request(Some("echo ok '\u{1b}]'; rm -rf ~"))).unwrap();
    let lines = texts(&asking.whole(80, Theme::default()));
    assert!(
        lines.iter().any(|line| line.ends_with("echo ok '␛]'; rm -rf ~")),
        "{lines:?}"
    );
}

/// SAFE-7: what a request shows cannot move the cursor, hide or reorder anything, and fits any width.
#[test]
fn a_request_is_harmless() {
    let bad = "rm \u{1b}[2K\u{202e}x\r\nls\u{7}";
    let asking = Asking::of(&request(Some(bad))).unwrap();
    for columns in 1..40 {
        for line in asking.whole(columns, Theme::default()) {
            let text = line.to_string();
            assert!(width(&text) <= columns.max(2), "{columns}: {text:?}");
            assert!(
                !text
                    .chars()
                    .any(|letter| letter.is_control() || letter == '\u{202e}')
            );
        }
    }
}
