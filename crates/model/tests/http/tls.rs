//! Servers whose certificate an authority of one's own signs.
//!
//! The certificates are valid for localhost until 2126. The key of the authority was thrown away.

use std::{
    io::{Read, Write},
    net::TcpListener,
    path::Path,
    sync::Arc,
    thread,
};

use rustls::{
    ServerConfig, ServerConnection, StreamOwned, crypto,
    pki_types::{CertificateDer, PrivateKeyDer, pem::PemObject},
};
use windlass_model::{Provider, WireApi};

use crate::{
    ask::{ask, client, provider},
    talk::{CHAT_OK, OK},
};

const AUTHORITY: &str = include_str!("certificates/authority.pem");
const CERTIFICATE: &str = include_str!("certificates/server.pem");
const KEY: &str = include_str!("certificates/server.key");

/// Starts a server that answers one request over TLS. Its thread ends with its first connection.
fn serve_once() -> Provider {
    let certificates = vec![CertificateDer::from_pem_slice(CERTIFICATE.as_bytes()).unwrap()];
    let key = PrivateKeyDer::from_pem_slice(KEY.as_bytes()).unwrap();
    let config = ServerConfig::builder_with_provider(Arc::new(crypto::ring::default_provider()))
        .with_safe_default_protocol_versions()
        .unwrap()
        .with_no_client_auth()
        .with_single_cert(certificates, key)
        .unwrap();
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let url = format!("https://{}/v1", listener.local_addr().unwrap());
    thread::spawn(move || {
        let (stream, _) = listener.accept().unwrap();
        let mut tls = StreamOwned::new(ServerConnection::new(Arc::new(config)).unwrap(), stream);
        let mut request = Vec::new();
        let mut buffer = [0; 4096];
        // A client that refuses the certificate closes the connection.
        while !request.ends_with(b"}") {
            match tls.read(&mut buffer) {
                Ok(read) if read > 0 => request.extend_from_slice(&buffer[..read]),
                _ => return,
            }
        }
        let events: String = CHAT_OK.iter().map(|data| format!("data: {data}\n\n")).collect();
        let head = "HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\nconnection: close\r\n\r\n";
        tls.write_all(format!("{head}{events}").as_bytes()).unwrap();
        tls.conn.send_close_notify();
        tls.flush().unwrap();
    });
    provider(&url, WireApi::Chat)
}

fn with_authority(provider: Provider, directory: &Path, pem: &str) -> Provider {
    let path = directory.join("own.pem");
    std::fs::write(&path, pem).unwrap();
    Provider { ca_file: Some(path), ..provider }
}

#[tokio::test]
async fn a_server_is_trusted_if_its_authority_is_named() {
    let directory = tempfile::tempdir().unwrap();
    let bundle = format!("# ours\n{AUTHORITY}\n{CERTIFICATE}");
    for pem in [AUTHORITY, &bundle] {
        let provider = with_authority(serve_once(), directory.path(), pem);
        assert_eq!(ask(client(&provider).as_ref()).await, OK);
    }
}

#[tokio::test]
async fn an_unknown_authority_is_refused_with_the_remedy() {
    let lines = ask(client(&serve_once()).as_ref()).await;
    let remedy = "if an authority of your own signs it, name its certificate in `ca_file` of the provider";
    assert!(lines[0].contains("invalid peer certificate: UnknownIssuer"), "{lines:?}");
    assert!(lines[0].ends_with(remedy), "{lines:?}");
}
