use super::*;

fn base() -> Url {
    Url::parse("https://a.example/docs/page").unwrap()
}

fn read(html: &str) -> String {
    markdown(html, &base()).text
}

/// TOOL-2: a page keeps its structure and links, and loses everything not meant for reading.
#[test]
fn pages_become_markdown() {
    let cases = [
        ("<title>T &amp; U</title><p>a", "# T & U\n\na"),
        ("<title>T</title><h1>Own</h1><p>a</p>", "# Own\n\na"),
        ("<h2>A</h2>b<h3>C</h4>d", "## A\n\nb\n\n### C\n\nd"),
        ("<p>one<p>two<div>three</div>four", "one\n\ntwo\n\nthree\n\nfour"),
        (
            "<p>a <b>b</b> <i>c</i> <code>d_e</code> &lt;f&gt; g_h &eacute;</p>",
            "a **b** *c* `d_e` \\<f> g\\_h \u{e9}",
        ),
        ("<b>x</b><strong>y</strong><span><em></em></span>z", "**xy**z"),
        (
            "<a href='../x?a=1&amp;b=2'>up</a> <a href=#top>top</a> <a href=javascript:x()>no</a>",
            "[up](https://a.example/x?a=1&b=2) top no",
        ),
        (
            "<base href=//b.example/><a href=x><h3>Card</h3><div>more</div></a>",
            "[Card more](https://b.example/x)",
        ),
        (
            "<a href=x><img src=i.png></a><img src=j.png alt=J>",
            "![J](https://a.example/docs/j.png)",
        ),
        (
            "<ul><li>a<li><p>b</p><p>c</p><li>d<ol start=3><li>e</ol></ul>f",
            "- a\n- b\n\n  c\n\n- d\n  3. e\n\nf",
        ),
        ("<blockquote>a<p>b</blockquote>c", "> a\n> \n> b\n\nc"),
        (
            "<pre class=x>\n<code class='language-rust hl'>fn <b>a</b>() {\n  b &lt; c\n}</code></pre>",
            "```rust\nfn a() {\n  b < c\n}\n```",
        ),
        (
            "<table><caption>N</caption><tr><th>a<th>b|c<tbody><tr><td>1<br>2<td><p>3</p><td></table>x",
            "N\n\n| a | b\\|c |\n| --- | --- |\n| 1 2 | 3 |  |\n\nx",
        ),
        (
            "<table><tr><td>a<td><table><tr><td>b</table><tr><td>c</table>d",
            "a\n\nb\n\nc\n\nd",
        ),
        (
            "<table><tr><th>a<td><table><tr><td>b</table>c<tr><td>d</table>",
            "| a | b c |\n| --- | --- |\n| d |",
        ),
        (
            "<nav>menu</nav><script>x()</script><style>y</style><noscript>n</noscript><svg><title>s</title></svg>\
             <iframe>i</iframe><template>t</template>z",
            "menu\n\nz",
        ),
        ("a<br>b<hr>c", "a  \nb\n\n* * *\n\nc"),
        ("<<span>script>x", "\\<script>x"),
        ("</p></ul></td></table></b>a", "a"),
        ("", ""),
    ];
    for (html, expected) in cases {
        assert_eq!(read(html), expected, "{html}");
    }
}

/// TOOL-2: plain text has the words of a page without markup.
#[test]
fn pages_become_plain_text() {
    let cases = [
        (
            "<title>T</title><h1>A  b</h1><p>c_d <b>e</b>\n f &lt;g&gt;<ul><li>h<li><p>i</p></ul>",
            "T\n\nA b\n\nc_d e f <g>\n\n- h\n- i",
        ),
        ("<pre>a\n  b</pre>c<br>d", "a\n  b\n\nc\nd"),
        ("<table><tr><td>a<td>b<tr><td>c</table>", "a b\nc"),
        ("<script>x</script>`y` ~", "`y` ~"),
    ];
    for (html, expected) in cases {
        assert_eq!(plain(html).text.trim_end(), expected, "{html}");
    }
}

/// TOOL-2: no page is too deep, too wide or too broken to be read.
#[test]
fn hostile_pages_are_read() {
    let (many, wide) = (200_000, 20_000);
    let attributes = |tag: &str| -> String { (0..wide).map(|index| format!("<{tag} a={index}>")).collect() };
    let pages = [
        "<div>".repeat(many) + "end",
        "<ul><li>".repeat(many) + "end",
        "<blockquote>".repeat(many) + "end",
        "<b><i>".repeat(many) + "end",
        "<table><tr><th>".repeat(many) + "end",
        "<table>".repeat(many) + "end",
        "<pre>".repeat(many) + "end",
        "<svg>".repeat(many) + "</svg>end",
        "<b>x</b><b>y</b> ".repeat(wide) + "end",
        "<p>x<br>".repeat(wide) + "end",
        "x<br>".repeat(wide) + "end",
        "<a href=x>y</a>".repeat(wide) + "end",
        "<code>`</code>".repeat(wide) + "end",
        attributes("b") + &"<p>x".repeat(wide) + "end",
        attributes("a") + &"<table><tr>x".repeat(wide) + "end",
        format!(
            "<table><tr><th>{}{}</table>end",
            "x".repeat(100_000),
            "<tr><td>y".repeat(wide)
        ),
        format!(
            "<table><b {0}><tr>{1}</table>end",
            "a=b ".repeat(wide),
            "<tr>x".repeat(wide)
        ),
        format!("<a href=\"{}\">end</a>", "x".repeat(4_000_000)),
        format!("<pre>{}</pre>{}end", "\n".repeat(wide), "<p></p>".repeat(wide)),
        format!("{}end", "</div></b>".repeat(many)),
        "<!--".repeat(many),
        "<a b='".repeat(many),
        "<".repeat(wide),
        "&lt".repeat(wide),
    ];
    for page in pages {
        let start: String = page.chars().take(60).collect();
        for reading in [markdown(&page, &base()), plain(&page)] {
            assert!(reading.text.len() < 20_000_000, "{start} {}", reading.text.len());
            let reaches_the_end = reading.cut || !page.contains("end") || reading.text.contains("end");
            assert!(reaches_the_end, "{start}");
        }
    }
}
