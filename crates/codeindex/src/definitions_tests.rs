use super::*;

fn names(path: &str, text: &str) -> Vec<String> {
    let found = Finder::default().find(Language::of(path).expect("text"), text);
    found
        .iter()
        .map(|definition| format!("{}:{}:{:?}", definition.line, definition.name, definition.kind))
        .collect()
}

/// MEM-9: definitions are found in six languages by grammar, and in others by their keywords.
#[test]
fn definitions_are_found_in_each_language() {
    let cases: [(&str, &str, &[&str]); 11] = [
        (
            "a.py",
            "@wraps\nclass Shop:\n    async def buy(self):\n        pass\n",
            &["2:Shop:Type", "3:buy:Function"],
        ),
        (
            "a.rs",
            "pub struct Shop;\nimpl Shop {\n    fn buy(&self) {}\n}\nconst MAX: u8 = 1;\nmacro_rules! m { () => {} }\n",
            &["1:Shop:Type", "3:buy:Function", "5:MAX:Constant", "6:m:Function"],
        ),
        (
            "a.ts",
            "export interface Shop { buy(): void }\nexport const limit = 3;\nconst sell = () => { const inner = 1; };\n",
            &[
                "1:Shop:Type",
                "1:buy:Function",
                "2:limit:Constant",
                "3:sell:Function",
            ],
        ),
        (
            "a.jsx",
            "class Shop { buy() {} }\nfunction View() { return <b>x</b>; }\n",
            &["1:Shop:Type", "1:buy:Function", "2:View:Function"],
        ),
        (
            "a.go",
            "package shop\ntype Shop struct{}\nfunc (s *Shop) Buy() {}\nfunc New() *Shop { return nil }\n",
            &["2:Shop:Type", "3:Buy:Function", "4:New:Function"],
        ),
        (
            "a.java",
            "class Shop {\n  Shop() {}\n  int buy() { return 1; }\n  enum Kind { A }\n}\n",
            &["1:Shop:Type", "2:Shop:Function", "3:buy:Function", "4:Kind:Type"],
        ),
        (
            "a.c",
            "#define MAX 3\nstruct shop;\nstruct shop { int a; };\nstatic int *buy(struct shop *s) { return 0; }\n",
            &["1:MAX:Constant", "3:shop:Type", "4:buy:Function"],
        ),
        (
            "a.cpp",
            "namespace market {\nclass Shop { void sell() {} };\n}\nint market::Shop::buy() { return 1; }\n",
            &[
                "1:market:Module",
                "2:Shop:Type",
                "2:sell:Function",
                "4:buy:Function",
            ],
        ),
        (
            "a.rb",
            "module Market\n  class Shop\n    def buy!\n    end\n    def self.open\n    end\n",
            &[
                "1:Market:Module",
                "2:Shop:Type",
                "3:buy!:Function",
                "5:open:Function",
            ],
        ),
        (
            "a.kt",
            "data class Shop(val a: Int)\nprivate fun buy() {}\n",
            &["1:Shop:Type", "2:buy:Function"],
        ),
        (
            "a.php",
            "<?php\nabstract class Shop {\n  public static function buy() {}\n}\n",
            &["2:Shop:Type", "3:buy:Function"],
        ),
    ];
    for (path, text, expected) in cases {
        assert_eq!(names(path, text), expected, "{path}");
    }
}

#[test]
fn broken_and_strange_files_have_the_definitions_that_can_be_read() {
    assert_eq!(
        names("a.py", "def good():\n    pass\n\ndef bad(((((\n").first(),
        Some(&"1:good:Function".to_owned())
    );
    for path in ["a.py", "a.rs", "a.ts", "a.go", "a.java", "a.cpp", "a.rb"] {
        names(path, "");
        names(path, &"(".repeat(20_000));
        names(path, "\u{0}\u{feff}\u{202e}fn \u{1F600}() {}");
    }
}
