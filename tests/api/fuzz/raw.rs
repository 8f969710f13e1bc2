//! A request as bytes, which no client library would send.

use crate::support::Got;
use std::io::{Read, Write};
use std::net::{Shutdown, TcpStream};
use std::time::Duration;

/// Longer than any answer takes: a server that hangs fails the test.
const PATIENCE: Duration = Duration::from_secs(20);

/// The answer; None where the server hung up without one.
pub fn exchange(url: &str, request: &[u8]) -> Option<Got> {
    let mut stream = TcpStream::connect(url.trim_start_matches("http://")).unwrap();
    stream.set_read_timeout(Some(PATIENCE)).unwrap();
    // A server that has heard enough may have hung up by now.
    let _ = stream.write_all(request).and_then(|()| stream.shutdown(Shutdown::Write));
    let mut bytes = Vec::new();
    match stream.read_to_end(&mut bytes) {
        Err(error) if error.kind() == std::io::ErrorKind::WouldBlock => panic!("no answer in {PATIENCE:?}"),
        _ => read(&bytes),
    }
}

/// The first answer: what is read as the end of a head makes a second request of the rest.
fn read(bytes: &[u8]) -> Option<Got> {
    let end = bytes.windows(4).position(|window| window == b"\r\n\r\n")?;
    let head = std::str::from_utf8(&bytes[..end]).unwrap();
    let (first, lines) = head.split_once("\r\n").unwrap_or((head, ""));
    let status = first.split(' ').nth(1).unwrap().parse().unwrap();
    let header = |line: &str| {
        let (name, value) = line.split_once(": ").unwrap();
        (name.parse().unwrap(), value.parse().unwrap())
    };
    let mut got = Got { status, headers: lines.lines().map(header).collect(), body: bytes[end + 4..].to_vec() };
    let length = got.header("Content-Length").map(|length| length.parse().unwrap());
    got.body.truncate(length.unwrap_or(usize::MAX));
    Some(got)
}
