use super::super::notation::{screen, state, type_keys};
use super::*;

fn composer(text: &str) -> Composer {
    let mut composer = Composer::new(vec!["earlier".to_owned()], true);
    composer.insert(text);
    composer
}

/// Types keys in normal mode, from the start of a text.
#[track_caller]
fn check(cases: &[(&str, &str, &str)]) {
    for (text, notation, expected) in cases {
        let mut composer = composer(text);
        type_keys(&mut composer, "<Esc>gg0");
        type_keys(&mut composer, notation);
        assert_eq!(state(&composer), *expected, "{text:?} {notation}");
    }
}

/// UI-2: the movements of normal mode work as in vim.
#[test]
fn movements_lead_where_they_should() {
    check(&[
        ("one two", "l", "o|ne two"),
        ("one two", "3l", "one| two"),
        ("one two", "99l", "one tw|o"),
        ("one two", "$", "one tw|o"),
        ("one two", "$h0", "|one two"),
        ("one-two three", "w", "one|-two three"),
        ("one-two three", "W", "one-two |three"),
        ("one-two three", "2w", "one-|two three"),
        ("one\n\ntwo", "w", "one\n|\ntwo"),
        ("one\n\ntwo", "ww", "one\n\n|two"),
        ("one two", "e", "on|e two"),
        ("one two", "ee", "one tw|o"),
        ("one-two x", "E", "one-tw|o x"),
        ("one two", "$b", "one |two"),
        ("one-two", "$B", "|one-two"),
        ("  one", "$^", "  |one"),
        ("a\nb\n c", "G", "a\nb\n |c"),
        ("a\nb\nc", "2G", "a\n|b\nc"),
        ("a\nb\nc", "Ggg", "|a\nb\nc"),
        ("abc\nx\nabc", "lljj", "abc\nx\nab|c"),
        ("abc\nx\nabc", "ll2j", "abc\nx\nab|c"),
        ("abc\nx\nabc", "ll9j9k", "ab|c\nx\nabc"),
        ("a(b)c(d)", "f(", "a|(b)c(d)"),
        ("a(b)c(d)", "2f(", "a(b)c|(d)"),
        ("a(b)c(d)", "t)", "a(|b)c(d)"),
        ("a(b)c(d)", "t);", "a(b)c(|d)"),
        ("a(b)c(d)", "f(;,", "a|(b)c(d)"),
        ("a(b)c(d)", "$F(", "a(b)c|(d)"),
        ("a(b)c(d)", "$T(", "a(b)c(|d)"),
        ("abc", "fz", "|abc"),
        ("abc", "<Right><End><Left>", "a|bc"),
        ("abc", "$1<Home>x", "|bc"),
        ("abc", "k", "earlie|r"),
        ("abc", "kj", "ab|c"),
    ]);
}

/// UI-2: operators work on movements, lines and objects, with counts.
#[test]
fn operators_change_the_text() {
    check(&[
        ("one two", "x", "|ne two"),
        ("one two", "3x", "| two"),
        ("one two", "lX", "|ne two"),
        ("one two", "lD", "|o"),
        ("one two", "lCx", "ox|"),
        ("one two", "sX", "X|ne two"),
        ("one\ntwo", "Sx", "x|\ntwo"),
        ("one two three", "dw", "|two three"),
        ("one two three", "2dw", "|three"),
        ("one two three", "d2w", "|three"),
        ("one\ntwo", "dw", "|\ntwo"),
        ("one two", "de", "| two"),
        ("one two", "$db", "one |o"),
        ("one two", "d$", "|"),
        ("one two", "wd0", "|two"),
        ("a(b)c", "dt)", "|)c"),
        ("a(b)c", "df)", "|c"),
        ("a(b)c", "$dF(", "a|c"),
        ("one two", "cwx", "x| two"),
        ("a two", "cwx", "x| two"),
        ("a b c d", "3cwx", "x| d"),
        ("one two", "wcwx", "one x|"),
        ("a\nb\nc", "dd", "|b\nc"),
        ("a\nb\nc", "Gdd", "a\n|b"),
        ("a\nb\nc", "2dd", "|c"),
        ("a", "dd", "|"),
        ("a\nb\nc", "dj", "|c"),
        ("a\nb\nc", "Gdk", "|a"),
        ("a\nb\nc", "jdG", "|a"),
        ("a\nb\nc", "jdgg", "|c"),
        ("a\nb\nc", "jccx", "a\nx|\nc"),
        ("one two", "wdiw", "one| "),
        ("one two three", "wdaw", "one |three"),
        ("one two", "wdaw", "on|e"),
        ("one two-three", "wciWx", "one x|"),
        ("say \"it is\" x", "fici\"y", "say \"y|\" x"),
        ("say \"it is\" x", "di\"", "say \"|\" x"),
        ("say \"it is\" x", "da\"", "say | x"),
        ("f(a, (b), c)", "fbdi(", "f(a, (|), c)"),
        ("f(a, (b), c)", "fadi(", "f(|)"),
        ("f(a, (b), c)", "fada)", "|f"),
        ("f(a", "fadi(", "f(|a"),
        ("one", "di(", "|one"),
    ]);
}

/// UI-2: the other commands of normal mode work as in vim.
#[test]
fn other_commands_work() {
    check(&[
        ("one two", "yiwP", "on|eone two"),
        ("one two", "dwp", "tone| wo"),
        ("a\nb", "yyp", "a\n|a\nb"),
        ("a\nb", "jyyP", "a\n|b\nb"),
        ("a\nb", "ddp", "b\n|a"),
        ("a\nb", "yy2p", "a\n|a\na\nb"),
        ("one", "ylp", "o|one"),
        ("one", "y$$p", "oneon|e"),
        ("one\ntwo", "ox", "one\nx|\ntwo"),
        ("one\ntwo", "Ox", "x|\none\ntwo"),
        (" one", "$Ix", " x|one"),
        ("one", "ax", "ox|ne"),
        ("one", "Ax", "onex|"),
        ("one", "ix<Esc>", "|xone"),
        ("one", "Ax<Esc>", "one|x"),
        ("one", "rx", "|xne"),
        ("one", "2rx", "x|xe"),
        ("one", "4rx", "|one"),
        ("one", "~~", "ON|e"),
        ("one", "9~", "ON|E"),
        ("one\n  two", "J", "one| two"),
        ("a\nb\nc", "3J", "a b| c"),
        ("one two", "dwu", "|one two"),
        ("one two", "dwu<C-r>", "|two"),
        ("one two", "cwa b c<Esc>u", "|one two"),
        ("one two", "xxuu", "|one two"),
        ("one two three", "dw.", "|three"),
        ("one two three", "cwx<Esc>w.", "x |x three"),
        ("a\nb", "Ax<Esc>j.", "ax\nb|x"),
        ("abc", "x..", "|"),
        ("abc", "qx", "|bc"),
        ("abc", "d<Esc>x", "|bc"),
        ("日本語", "lx", "日|語"),
    ]);
}

/// UI-2: in normal mode, keys that are not commands are left to the app.
#[test]
fn modes_change_and_leave_keys_alone() {
    let mut composer = composer("");
    assert_eq!(composer.vim_mode(), Some("insert"));
    assert_eq!(type_keys(&mut composer, "a<Esc>"), Did::Moved);
    assert_eq!(composer.vim_mode(), Some("normal"));
    for notation in ["<Esc>", "<Enter>", "<Tab>", "<C-c>", "<C-j>", "<A-x>"] {
        assert_eq!(type_keys(&mut composer, notation), Did::Nothing, "{notation}");
    }
    // These keys cancel an unfinished command, and nothing is sent.
    for notation in ["r<Enter>", "d<Tab>", "2<Enter>", "f<Esc>"] {
        assert_eq!(type_keys(&mut composer, notation), Did::Moved, "{notation}");
        assert_eq!(state(&composer), "|a", "{notation}");
    }
    assert_eq!(screen(&mut composer, 20, 3), ["› |a"]);
    assert_eq!(composer.completion_query(), None);
    composer.paste("bc");
    assert_eq!(state(&composer), "bc|a");
    composer.take();
    assert_eq!(composer.vim_mode(), Some("insert"));
    type_keys(&mut composer, "one two<C-w>x<Esc>0yw");
    composer.take();
    type_keys(&mut composer, "one<Esc>x");
    composer.take();
    type_keys(&mut composer, "two<Esc>0.");
    assert_eq!(state(&composer), "|wo");
    composer.take();
    type_keys(&mut composer, "<C-r>");
    assert!(composer.is_searching());
    composer.set_vim(false);
    assert_eq!(composer.vim_mode(), None);
}

/// UI-2: to commands, a chip is one letter and one word.
#[test]
fn commands_take_chips_whole() {
    let mut composer = composer("see ");
    composer.paste(&"line\n".repeat(7));
    composer.insert("there");
    type_keys(&mut composer, "<Esc>0w");
    assert_eq!(state(&composer), "see |[pasted 7 lines]there");
    type_keys(&mut composer, "rx~0w");
    assert_eq!(state(&composer), "see |[pasted 7 lines]there");
    type_keys(&mut composer, "dw");
    assert_eq!(state(&composer), "see |there");
    type_keys(&mut composer, "$p");
    assert_eq!(state(&composer), "see there|[pasted 7 lines]");
}
