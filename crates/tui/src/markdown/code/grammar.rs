//! Language table of the scanner: just enough to tell a comment from a string and a keyword from a name.

/// A language as the scanner sees it.
pub(super) struct Grammar {
    pub(super) shape: Shape,
    /// Prefixes of line comments.
    pub(super) comments: &'static [&'static str],
    /// Delimiters of block comments.
    pub(super) block_comment: Option<(&'static str, &'static str)>,
    /// String delimiters; longer ones come before their prefixes.
    pub(super) quotes: &'static [Quote],
    /// Separated by spaces.
    pub(super) keywords: &'static str,
    pub(super) ignores_case: bool,
}

/// Kind of syntax.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Shape {
    Program,
    /// Names with a dollar sign are variables.
    Script,
    /// KeyBindings and values.
    Data,
    /// Text with tags in it.
    Markup,
    /// The first character of a line tells its kind.
    Diff,
}

/// Delimiters of a string.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Quote {
    pub(super) open: &'static str,
    pub(super) close: &'static str,
    pub(super) kind: QuoteKind,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum QuoteKind {
    /// Ends with its line at the latest.
    Line,
    /// Can span lines.
    Long,
    /// Like [`Self::Long`], without escapes.
    Raw,
    /// A single character; the delimiter has other meanings, such as lifetimes.
    Letter,
}

/// Returns the language with this name, as written after a fence.
pub(super) fn named(name: &str) -> Option<&'static Grammar> {
    let name = name.to_lowercase();
    let has_name = |(names, _): &&(&str, Grammar)| names.split(' ').any(|known| known == name);
    LANGUAGES.iter().find(has_name).map(|(_, grammar)| grammar)
}

const fn quote(sign: &'static str, kind: QuoteKind) -> Quote {
    Quote {
        open: sign,
        close: sign,
        kind,
    }
}

const DOUBLE: Quote = quote("\"", QuoteKind::Line);
const LONG_DOUBLE: Quote = quote("\"", QuoteKind::Long);
const SINGLE: Quote = quote("'", QuoteKind::Line);
const LONG_SINGLE: Quote = quote("'", QuoteKind::Raw);
const LETTER: Quote = quote("'", QuoteKind::Letter);
const BACKTICK: Quote = quote("`", QuoteKind::Long);
const TRIPLE_DOUBLE: Quote = quote("\"\"\"", QuoteKind::Long);
const TRIPLE_SINGLE: Quote = quote("'''", QuoteKind::Long);
const RAW: Quote = Quote {
    open: "r#\"",
    close: "\"#",
    kind: QuoteKind::Raw,
};
const SLASHES: Option<(&str, &str)> = Some(("/*", "*/"));

const PROGRAM: Grammar = Grammar {
    shape: Shape::Program,
    comments: &["//"],
    block_comment: SLASHES,
    quotes: &[DOUBLE, LETTER],
    keywords: "",
    ignores_case: false,
};

const SCRIPT: Grammar = Grammar {
    shape: Shape::Script,
    comments: &["#"],
    block_comment: None,
    quotes: &[LONG_DOUBLE, LONG_SINGLE],
    ..PROGRAM
};

const DATA: Grammar = Grammar {
    shape: Shape::Data,
    comments: &["#"],
    block_comment: None,
    quotes: &[TRIPLE_DOUBLE, DOUBLE, SINGLE],
    ..PROGRAM
};

const LANGUAGES: &[(&str, Grammar)] = &[
    (
        "rust rs",
        Grammar {
            quotes: &[RAW, LONG_DOUBLE, LETTER],
            keywords: "as async await break const continue crate dyn else enum extern fn for if impl in let loop match mod move \
                       mut pub ref return self Self static struct super trait type unsafe use where while yield",
            ..PROGRAM
        },
    ),
    (
        "javascript js jsx mjs cjs node typescript ts tsx mts cts",
        Grammar {
            quotes: &[DOUBLE, SINGLE, BACKTICK],
            keywords: "abstract as async await break case catch class const continue debugger declare default delete do else enum \
                       export extends finally for from function get if implements import in infer instanceof interface is keyof \
                       let namespace new of private protected public readonly return satisfies set static super switch this \
                       throw try type typeof var void while with yield",
            ..PROGRAM
        },
    ),
    (
        "python py python3 pyi starlark bzl",
        Grammar {
            comments: &["#"],
            block_comment: None,
            quotes: &[TRIPLE_DOUBLE, TRIPLE_SINGLE, DOUBLE, SINGLE],
            keywords: "and as assert async await break case class continue def del elif else except finally for from global if \
                       import in is lambda match nonlocal not or pass raise return self try while with yield",
            ..PROGRAM
        },
    ),
    (
        "go golang",
        Grammar {
            quotes: &[DOUBLE, BACKTICK, LETTER],
            keywords: "break case chan const continue default defer else fallthrough for func go goto if import interface map \
                       package range return select struct switch type var",
            ..PROGRAM
        },
    ),
    (
        "c h cpp c++ cc cxx hpp objc objective-c m cuda glsl",
        Grammar {
            keywords: "alignas auto bool break case catch char class concept const constexpr continue co_await co_return decltype \
                       default delete do double else enum explicit export extern final float for friend goto if inline int long \
                       mutable namespace new noexcept operator override private protected public register requires return short \
                       signed sizeof static static_cast struct switch template this throw try typedef typename union unsigned \
                       using virtual void volatile while",
            ..PROGRAM
        },
    ),
    (
        "java scala groovy gradle",
        Grammar {
            quotes: &[TRIPLE_DOUBLE, DOUBLE, LETTER],
            keywords: "abstract assert boolean break byte case catch char class const continue def default do double else enum \
                       extends final finally float for given if implements import instanceof int interface lazy long match native \
                       new object override package permits private protected public record return sealed short static super \
                       switch synchronized this throw throws trait transient try type val var void volatile while with yield",
            ..PROGRAM
        },
    ),
    (
        "csharp c# cs fsharp f# fs",
        Grammar {
            keywords: "abstract as async await base bool break byte case catch char class const continue decimal default delegate do \
                       double else enum event explicit extern finally fixed float for foreach get goto if implicit in init int \
                       interface internal is let lock long match member module mutable namespace new object open operator out \
                       override params private protected public readonly record ref required return sealed set short sizeof static \
                       string struct switch this throw try typeof uint ulong unsafe using var virtual void when where while with \
                       yield",
            ..PROGRAM
        },
    ),
    (
        "kotlin kt kts",
        Grammar {
            quotes: &[TRIPLE_DOUBLE, DOUBLE, LETTER],
            keywords: "abstract annotation as break by catch class companion const constructor continue data do else enum expect \
                       final finally for fun if import in inline inner interface internal is lateinit object open operator out \
                       override package private protected public return sealed super suspend this throw try typealias val var \
                       vararg when where while",
            ..PROGRAM
        },
    ),
    (
        "swift",
        Grammar {
            quotes: &[TRIPLE_DOUBLE, DOUBLE],
            keywords: "actor any as async await break case catch class continue convenience default defer deinit do else enum \
                       extension fallthrough fileprivate final for func get guard if import in indirect init inout internal is lazy \
                       let mutating open override private protocol public repeat required rethrows return self Self set some \
                       static struct subscript super switch throw throws try typealias var weak where while",
            ..PROGRAM
        },
    ),
    (
        "dart zig v solidity sol protobuf proto graphql gql",
        Grammar {
            comments: &["//", "#"],
            quotes: &[TRIPLE_DOUBLE, DOUBLE, SINGLE],
            keywords: "abstract anytype as async await break case catch class comptime const continue contract default defer do else \
                       enum errdefer error event export extends extension extern external factory final finally fn for function \
                       get if implements import in inline input interface is late library mapping memory message mixin modifier \
                       mutation new on oneof optional orelse package part payable pragma private pub public pure query repeated \
                       required return returns reserved rpc scalar schema service static storage struct subscription super switch \
                       syntax test this throw try type typedef union unreachable using var view void while with yield",
            ..PROGRAM
        },
    ),
    (
        "ruby rb elixir ex exs crystal",
        Grammar {
            comments: &["#"],
            block_comment: None,
            quotes: &[TRIPLE_DOUBLE, LONG_DOUBLE, SINGLE],
            keywords: "alias and begin break case class def defimpl defmacro defmodule defp defprotocol defstruct do else elsif end \
                       ensure extend fn for if import in include loop module next not or private protected public raise receive \
                       redo require require_relative rescue retry return self super then undef unless until use when while with \
                       yield",
            ..PROGRAM
        },
    ),
    (
        "php",
        Grammar {
            comments: &["//", "#"],
            block_comment: SLASHES,
            keywords: "abstract and array as break case catch class clone const continue declare default do echo else elseif empty \
                       enum extends final finally fn for foreach function global if implements include instanceof interface isset \
                       match namespace new or print private protected public readonly require require_once return static switch \
                       throw trait try unset use var while yield",
            ..SCRIPT
        },
    ),
    (
        "bash sh zsh fish shell console shellsession shell-session terminal ksh",
        Grammar {
            keywords: "break case continue declare do done elif else end esac eval exec exit export fi for function if in local \
                       readonly return select set shift source then trap unset until while",
            ..SCRIPT
        },
    ),
    (
        "powershell ps1 pwsh perl pl r awk tcl",
        Grammar {
            keywords: "begin break catch class continue do else elseif elsif end exit filter finally for foreach function if in last \
                       library my next our package param process proc repeat return sub switch throw trap try unless until use \
                       using while",
            ..SCRIPT
        },
    ),
    (
        "makefile make mk cmake just justfile",
        Grammar {
            keywords: "define elif else elseif endef endfunction endif export foreach function if ifdef ifeq ifndef ifneq include \
                       macro override set unexport",
            ..SCRIPT
        },
    ),
    (
        "dockerfile docker containerfile",
        Grammar {
            keywords: "ADD ARG AS CMD COPY ENTRYPOINT ENV EXPOSE FROM HEALTHCHECK LABEL ONBUILD RUN SHELL STOPSIGNAL USER VOLUME \
                       WORKDIR",
            ..SCRIPT
        },
    ),
    (
        "lua",
        Grammar {
            comments: &["--"],
            block_comment: Some(("--[[", "]]")),
            quotes: &[DOUBLE, SINGLE],
            keywords: "and break do else elseif end for function goto if in local not or repeat return then until while",
            ..PROGRAM
        },
    ),
    (
        "haskell hs elm purescript ocaml ml",
        Grammar {
            comments: &["--"],
            block_comment: Some(("{-", "-}")),
            keywords: "and as begin case class data deriving do else end exception exposing fun function if import in infixl infixr \
                       instance let match module newtype of open rec sig struct then type val where with",
            ..PROGRAM
        },
    ),
    (
        "sql postgres postgresql mysql sqlite plsql",
        Grammar {
            comments: &["--"],
            quotes: &[DOUBLE, LONG_SINGLE],
            keywords: "add all alter and any as asc begin between by cascade case check column commit constraint create cross \
                       database default delete desc distinct drop else end exists explain foreign from full function grant group \
                       having if in index inner insert into is join key lateral left like limit not offset on or order outer over \
                       partition primary references returning right rollback row rows select set table temporary then to trigger \
                       truncate union unique update using values view when where with",
            ignores_case: true,
            ..PROGRAM
        },
    ),
    (
        "nix hcl terraform tf",
        Grammar {
            comments: &["#", "//"],
            quotes: &[LONG_DOUBLE],
            keywords: "assert data else for if import in inherit let locals module output provider rec resource then variable with",
            ..DATA
        },
    ),
    (
        "json jsonc json5 jsonl ndjson",
        Grammar {
            comments: &["//"],
            block_comment: SLASHES,
            ..DATA
        },
    ),
    (
        "yaml yml toml ini cfg conf properties env dotenv editorconfig",
        DATA,
    ),
    (
        "css scss sass less",
        Grammar {
            comments: &["//"],
            block_comment: SLASHES,
            quotes: &[DOUBLE, SINGLE],
            ..DATA
        },
    ),
    (
        "html htm xml svg vue svelte xhtml plist",
        Grammar {
            shape: Shape::Markup,
            comments: &[],
            block_comment: Some(("<!--", "-->")),
            quotes: &[LONG_DOUBLE, LONG_SINGLE],
            ..PROGRAM
        },
    ),
    (
        "diff patch",
        Grammar {
            shape: Shape::Diff,
            ..PROGRAM
        },
    ),
];
