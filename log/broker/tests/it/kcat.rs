//! librdkafka, by way of kcat, writes and reads.

use std::io::Write;
use std::process::{Command, Stdio};

use crate::harness::{Harness, Way, pass_over};

pub fn has_kcat() -> bool {
    Command::new("kcat").arg("-V").output().is_ok_and(|output| output.status.success())
}

pub fn kcat(args: &[&str], input: &[u8]) -> Vec<u8> {
    let mut child = Command::new("kcat")
        .args(args)
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .expect("kcat is installed");
    let mut stdin = child.stdin.take().expect("it is piped");
    let input = input.to_vec();
    let writing = std::thread::spawn(move || {
        // kcat may end before it has read everything; its exit code tells.
        let _ = stdin.write_all(&input);
    });
    let output = child.wait_with_output().expect("kcat ends");
    writing.join().expect("the input was written");
    assert!(output.status.success(), "kcat {args:?}: {}", String::from_utf8_lossy(&output.stderr));
    output.stdout
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn kcat_reads_what_kcat_wrote() {
    if !has_kcat() {
        return pass_over("kcat_reads_what_kcat_wrote", "kcat");
    }
    let harness = Harness::start(Way::Tcp).await;
    let address = harness.broker.addresses()[0].to_string();
    let lines: String = (0..20_000).map(|at| format!("{at},a line of some length,{}\n", at * 7919)).collect();
    tokio::task::spawn_blocking(move || {
        for compression in ["none", "gzip", "snappy", "lz4", "zstd"] {
            let codec = format!("compression.codec={compression}");
            let topic = format!("lines-{compression}");
            let produce = ["-q", "-b", &address, "-P", "-t", &topic, "-X", &codec, "-X", "acks=all"];
            kcat(&produce, lines.as_bytes());
            let consume = ["-q", "-b", &address, "-C", "-t", &topic, "-o", "beginning", "-e"];
            let read = kcat(&consume, b"");
            assert!(
                read == lines.as_bytes(),
                "{compression}: {} bytes instead of {}",
                read.len(),
                lines.len()
            );
        }
        let listed = String::from_utf8(kcat(&["-b", &address, "-L"], b"")).expect("text");
        assert!(listed.contains("topic \"lines-zstd\" with 1 partitions"), "{listed}");
    })
    .await
    .expect("no assertion failed");
    harness.finish().await;
}
