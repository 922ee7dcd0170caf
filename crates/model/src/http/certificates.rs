//! Certificates of authorities that are trusted in addition to those of the system.

use std::{
    fs::File,
    io::{self, Read},
    path::Path,
};

use reqwest::Certificate;

use crate::Provider;

/// Maximum size of a file of certificates. The bundles of systems have about 250 kB.
const MAX_FILE_BYTES: u64 = 4 * 1024 * 1024;

/// Reads the certificates of a provider's `ca_file`. Returns the problem if there are none.
pub(super) fn load(provider: &Provider) -> Result<Vec<Certificate>, String> {
    let Some(path) = &provider.ca_file else { return Ok(Vec::new()) };
    let shown = path.display();
    let pem = read(path).map_err(|error| format!("`ca_file = \"{shown}\"` cannot be read: {error}"))?;
    match Certificate::from_pem_bundle(&pem) {
        Ok(certificates) if !certificates.is_empty() => Ok(certificates),
        _ => Err(format!(
            "`ca_file = \"{shown}\"` holds no certificate in PEM form (`-----BEGIN CERTIFICATE-----`)"
        )),
    }
}

/// Adds the remedy to an error about certificates.
pub(super) fn explain(problem: String) -> String {
    let remedy = if problem.contains("No CA certificates were loaded") {
        "install the system's certificates, or check `SSL_CERT_FILE` and `SSL_CERT_DIR`"
    } else if problem.contains("UnknownIssuer") {
        "if an authority of your own signs it, name its certificate in `ca_file` of the provider"
    } else {
        return problem;
    };
    format!("{problem}; {remedy}")
}

fn read(path: &Path) -> io::Result<Vec<u8>> {
    // A named pipe would block for ever.
    if !path.metadata()?.is_file() {
        return Err(io::Error::other("it is no regular file"));
    }
    let mut bytes = Vec::new();
    File::open(path)?.take(MAX_FILE_BYTES + 1).read_to_end(&mut bytes)?;
    let is_small = u64::try_from(bytes.len()).is_ok_and(|len| len <= MAX_FILE_BYTES);
    if is_small { Ok(bytes) } else { Err(io::Error::other("it is larger than 4 MiB")) }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn problem(path: &str) -> String {
        let provider = Provider { ca_file: Some(path.into()), ..Provider::default() };
        load(&provider).unwrap_err()
    }

    #[test]
    fn a_file_that_cannot_be_used_says_why() {
        let missing = "`ca_file = \"/nowhere\"` cannot be read: No such file or directory (os error 2)";
        assert_eq!(problem("/nowhere"), missing);
        assert_eq!(problem("/dev/zero"), "`ca_file = \"/dev/zero\"` cannot be read: it is no regular file");
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("own.pem");
        for text in ["", "hello", "-----BEGIN CERTIFICATE-----\n!\n-----END CERTIFICATE-----\n"] {
            std::fs::write(&path, text).unwrap();
            assert!(problem(path.to_str().unwrap()).contains("holds no certificate in PEM form"), "{text}");
        }
    }

    #[test]
    fn an_error_about_certificates_ends_with_its_remedy() {
        let unknown = explain("invalid peer certificate: UnknownIssuer".to_owned());
        assert!(unknown.contains("`ca_file` of the provider"), "{unknown}");
        assert!(
            explain("No CA certificates were loaded from the system".to_owned()).contains("SSL_CERT_FILE")
        );
        assert_eq!(explain("other".to_owned()), "other");
    }
}
