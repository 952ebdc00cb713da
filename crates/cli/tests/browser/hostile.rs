//! A transcript that attacks the page.

use serde_json::json;
use windlass_sim::Reply;

use super::site::{Site, assert_no_errors, say};

const HOSTILE: &str = "<img src=x onerror=\"window.owned=1\"> <script>window.owned=2</script>\n\n\
    [click](javascript:window.owned=3) ![track](https://tracker.invalid/pixel.png) [site](https://example.invalid/a)\n\n\
    <svg onload=\"window.owned=4\"><a xlink:href=\"javascript:window.owned=5\">x</a></svg>\n\n\
    <iframe srcdoc=\"<script>parent.owned=6</script>\"></iframe>\n\n\
    safe \u{202e}gnp.exe\u{202c} text\n\n```html\n<script>window.owned=7</script>\n```\n";

/// WEB-3, SAFE-7: HTML, scripts, images and addresses of a hostile model stay text; nothing is loaded from elsewhere,
/// control characters and marks of direction become visible, and a line of four megabytes does not stop the page.
#[test]
fn a_hostile_transcript_stays_text() {
    let output = "printf '\\033[31mred\\033[0m \\033]0;title\\007 \\a bell \\r\\n'; printf '<b>bold</b>\\n'; head -c 4000000 /dev/zero | tr '\\0' x";
    let site = Site::start([
        Reply::call("bash", json!({ "command": output })),
        Reply::text(HOSTILE).delta_chars(5),
    ]);
    let browser = site.converse();
    say(&browser, "/mode auto");
    browser.wait_until(
        "the mode is shown",
        "document.querySelector('.mode')?.textContent === 'auto'",
    );
    say(&browser, "attack");
    browser.wait_until("the turn is over", "document.querySelector('.item.end.final')");
    assert_eq!(browser.run("return window.owned ?? null"), json!(null));
    assert_eq!(browser.run("return document.querySelectorAll('.items img, .items script, .items iframe, .items .prose svg:not(.icon)').length"), 0);
    assert!(
        browser.text().contains("<img src=x onerror="),
        "HTML is shown as text"
    );
    assert!(
        browser.text().contains("U+202E"),
        "marks of direction are visible"
    );
    let links = browser.run("return [...document.querySelectorAll('.prose a')].map((one) => [one.protocol, one.rel, one.textContent])");
    for link in links.as_array().unwrap() {
        assert_eq!(
            (&link[0], &link[1]),
            (&json!("https:"), &json!("noopener noreferrer nofollow")),
            "{link}"
        );
        assert!(
            link[2].as_str().unwrap().contains(".invalid"),
            "the host is shown: {link}"
        );
    }
    let foreign = "return performance.getEntriesByType('resource').map((one) => one.name).filter((one) => !one.startsWith(location.origin) && !one.startsWith('data:'))";
    assert_eq!(browser.run(foreign), json!([]));
    browser.click(".call-head");
    browser.wait_until(
        "the output is shown",
        "document.querySelector('.output')?.textContent.includes('red')",
    );
    let shown = browser.run("return document.querySelector('.output').textContent.slice(0, 200)");
    let shown = shown.as_str().unwrap();
    assert!(!shown.contains('\u{1b}') && !shown.contains("[31m"), "{shown:?}");
    assert!(shown.contains("<b>bold</b>"), "{shown:?}");
    // The page still draws.
    browser.run_async("requestAnimationFrame(() => setTimeout(arguments[0]))");
    let length = browser.run("return document.querySelector('.output').textContent.length");
    assert!(
        length.as_u64().unwrap() <= 40_000,
        "{length} of four million characters"
    );
    assert_no_errors(&browser);
}

/// WEB-3: titles and names are never parsed, and the policy forbids scripts that the page did not bring.
#[test]
fn titles_are_text_and_the_policy_is_strict() {
    let site = Site::start([Reply::text("hello").forever()]);
    let browser = site.converse();
    say(&browser, "/rename <b>x</b><img src=x onerror=window.owned=1>");
    browser.wait_for("<b>x</b>");
    assert_eq!(
        browser.run("return document.querySelectorAll('.session img, .head img').length"),
        0
    );
    let refused =
        "try { document.body.innerHTML = '<b>x</b>'; return 'allowed' } catch (error) { return error.name }";
    assert_eq!(
        browser.run(refused),
        "TypeError",
        "Trusted Types forbid HTML strings"
    );
    let inline = "const script = document.createElement('script'); try { script.textContent = 'window.owned = 2'; document.body.append(script) } catch {} return window.owned ?? null";
    assert_eq!(browser.run(inline), json!(null));
}
