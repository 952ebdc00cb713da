//! Broken streams, observed at the socket.

use std::time::Duration;

use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::TcpStream;
use windlass_sim::{Fault, Framing, Protocol, Reply, Script, SimHandle};

use crate::client::{WIRES, ask, path, request, start, start_with};

const TEXT: &str = "one two three four five six seven";

fn reply(fault: Fault) -> Reply {
    Reply::text(TEXT).delta_chars(4).fault(fault)
}

/// Sends a request without `connection: close`, so that the connection stays open after the reply.
async fn keep_alive(sim: &SimHandle, stream: bool) -> TcpStream {
    let body = request(Protocol::Anthropic, "hello", stream).to_string();
    let head = format!(
        "POST {} HTTP/1.1\r\nhost: sim\r\nanthropic-version: 1\r\ncontent-length: {}\r\n\r\n",
        path(Protocol::Anthropic),
        body.len()
    );
    let mut socket = TcpStream::connect(sim.addr()).await.unwrap();
    socket
        .write_all(format!("{head}{body}").as_bytes())
        .await
        .unwrap();
    socket
}

/// Reads until `text` has arrived. Fails if the server closes the connection before that.
async fn read_until(socket: &mut TcpStream, text: &str) {
    let mut seen = Vec::new();
    let mut buffer = [0; 4096];
    while !String::from_utf8_lossy(&seen).contains(text) {
        let count = socket.read(&mut buffer).await.unwrap();
        assert_ne!(count, 0, "closed before `{text}`");
        seen.extend_from_slice(&buffer[..count]);
    }
}

/// PROV-5: a cut connection ends without the end of the body, after exactly the requested amount.
#[tokio::test]
async fn a_cut_connection_is_really_cut() {
    for wire in WIRES {
        let sim = start_with(reply(Fault::new().cut_after_events(3))).await;
        let cut = ask(&sim, wire, true).await;
        assert_eq!((cut.status, cut.complete), (200, false));
        assert_eq!(cut.events().len(), 3, "{wire}");
        assert!(!ask(&sim, wire, false).await.complete);

        let sim = start_with(reply(Fault::new().cut_after_bytes(50))).await;
        for stream in [true, false] {
            let cut = ask(&sim, wire, stream).await;
            assert_eq!((cut.complete, cut.body.len()), (false, 50));
        }
    }
}

/// PROV-5: a stalled stream is silent but open, and ends when the server stops.
#[tokio::test]
async fn a_stalled_stream_stays_open() {
    let sim = start_with(reply(Fault::new().stall_after_events(2))).await;
    let mut socket = keep_alive(&sim, true).await;
    read_until(&mut socket, "content_block_start").await;
    let mut buffer = [0; 4096];
    let silent = tokio::time::timeout(Duration::from_millis(50), socket.read(&mut buffer)).await;
    assert!(silent.is_err(), "the stream must be silent");
    sim.stop().await;
    let mut rest = Vec::new();
    let _ = socket.read_to_end(&mut rest).await;
    assert!(!String::from_utf8_lossy(&rest).contains("message_stop"));
}

/// PROV-5: a stop waits neither for an idle keep-alive connection nor for a stalled stream, and closes both.
#[tokio::test]
async fn a_stop_is_prompt() {
    let script = Script::new()
        .reply(reply(Fault::new()))
        .reply(reply(Fault::new().stall_after_events(2)));
    let sim = start(script).await;
    let mut idle = keep_alive(&sim, false).await;
    read_until(&mut idle, "end_turn").await;
    let mut stalled = keep_alive(&sim, true).await;
    read_until(&mut stalled, "content_block_start").await;

    // Paused time advances only when every task waits: a stop that waits for its grace period would show it.
    tokio::time::pause();
    let before = tokio::time::Instant::now();
    sim.stop().await;
    assert_eq!(before.elapsed(), Duration::ZERO);

    for mut socket in [idle, stalled] {
        let mut rest = Vec::new();
        // Returns only once the server has closed the connection, with an end or a reset.
        let _ = socket.read_to_end(&mut rest).await;
        assert!(!String::from_utf8_lossy(&rest).contains("message_stop"));
    }
}

/// PROV-12: any chunking and any legal framing carry the same data.
#[tokio::test]
async fn chunks_and_framings_keep_the_data() {
    let sim = start_with(reply(Fault::new().chunk(1))).await;
    let small = ask(&sim, Protocol::Chat, true).await;
    assert!(small.complete && small.chunks.iter().all(|size| *size == 1));
    assert!(small.events().contains(&"[DONE]".to_owned()));
    for (framing, mark) in [
        (Framing::Crlf, "\r\n\r\n"),
        (Framing::Cr, "\r\r"),
        (Framing::Bom, "\u{feff}event"),
        (Framing::Comments, ": keep-alive"),
        (Framing::NoSpace, "data:{"),
        (Framing::Multiline, "data: {\n"),
    ] {
        let sim = start_with(reply(Fault::new().framing(framing))).await;
        let answer = ask(&sim, Protocol::Anthropic, true).await;
        assert!(answer.complete && answer.text().contains(mark), "{framing:?}");
        assert!(answer.text().contains("message_stop"));
    }
}

/// PROV-12: bad bytes, huge events, wrong content types.
#[tokio::test]
async fn odd_bytes_are_sent_on_demand() {
    let sim = start_with(reply(Fault::new().invalid_utf8())).await;
    for stream in [true, false] {
        let bad = ask(&sim, Protocol::Anthropic, stream).await;
        assert!(std::str::from_utf8(&bad.body).is_err());
    }
    let sim = start_with(reply(Fault::new().oversized(3_000_000).content_type("text/html"))).await;
    for stream in [true, false] {
        let huge = ask(&sim, Protocol::Responses, stream).await;
        assert!(huge.complete && huge.body.len() > 3_000_000);
        assert_eq!(huge.header("content-type").as_deref(), Some("text/html"));
    }
}

/// PROV-2, PROV-3: an error event in the middle, and an end without a terminal event.
#[tokio::test]
async fn streams_end_badly_on_demand() {
    let sim = start_with(reply(Fault::new().mid_stream_error("overloaded"))).await;
    for (wire, mark, terminal) in [
        (
            Protocol::Anthropic,
            "event: error\ndata: {\"type\":\"error\",\"error\":{\"type\":\"overloaded_error\"",
            "message_stop",
        ),
        (Protocol::Chat, "data: {\"error\":", "[DONE]"),
        (Protocol::Responses, "event: error", "response.completed"),
    ] {
        let text = ask(&sim, wire, true).await.text();
        assert!(text.contains(mark) && !text.contains(terminal), "{text}");
        assert!(ask(&sim, wire, false).await.status >= 500);
    }
    let sim = start_with(reply(Fault::new().mid_stream_error("failed"))).await;
    assert!(
        ask(&sim, Protocol::Responses, true)
            .await
            .text()
            .contains("event: response.failed")
    );
    let sim = start_with(reply(Fault::new().no_finish().pings(3))).await;
    for (wire, terminal) in [
        (Protocol::Anthropic, "message_delta"),
        (Protocol::Chat, "\"finish_reason\":\"stop\""),
        (Protocol::Responses, "response.completed"),
    ] {
        let answer = ask(&sim, wire, true).await;
        assert!(answer.complete && !answer.text().contains(terminal));
        let pings = answer.text().matches("event: ping").count();
        assert_eq!(pings, if wire == Protocol::Anthropic { 4 } else { 0 });
    }
}

/// PROV-5: a delay comes before the first byte.
#[tokio::test]
async fn a_delay_holds_the_answer_back() {
    let sim = start_with(reply(Fault::new().delay_ms(30))).await;
    let before = tokio::time::Instant::now();
    assert_eq!(ask(&sim, Protocol::Chat, false).await.status, 200);
    assert!(before.elapsed() >= Duration::from_millis(30));
}
