//! Tests of what needs no server; `tests/` has those that do.

use super::*;
use crate::Secret;

fn provider(base_url: &str) -> Provider {
    Provider { base_url: Some(base_url.to_owned()), ..Provider::default() }
}

fn nothing(_: &str) -> Option<String> {
    None
}

#[test]
fn the_path_is_added_to_the_base_and_the_query_kept() {
    let mut with_query = provider("https://x.example/openai/?a=1");
    with_query.query_params = [("api-version".to_owned(), Secret::from("2 b"))].into();
    let url = endpoint("p", &with_query, "chat/completions").unwrap();
    assert_eq!(url.as_str(), "https://x.example/openai/chat/completions?a=1&api-version=2+b");
    assert_eq!(endpoint("p", &provider("http://h:1"), "responses").unwrap().as_str(), "http://h:1/responses");
}

#[test]
fn an_address_that_cannot_work_says_why() {
    let problem = |provider: &Provider| {
        let error = HttpEndpoint::new("mine", provider, "responses", &nothing).err().unwrap();
        error.to_string().strip_prefix("provider `mine` cannot be used: ").unwrap().to_owned()
    };
    assert_eq!(problem(&Provider::default()), "it has no `base_url`; set `model_providers.mine.base_url`");
    assert_eq!(problem(&provider("nonsense")), "`base_url` is not an address: relative URL without a base");
    assert_eq!(problem(&provider("ftp://x")), "`base_url` begins with `ftp:`; use http or https");
    let secret = problem(&provider("http://me:hunter2@x"));
    assert_eq!(secret, "`base_url` holds a password; use `env_key` or `env_http_headers`");
}

#[test]
fn a_missing_or_blank_key_is_reported_with_its_variable_and_what_to_do() {
    let mut provider = provider("http://x");
    provider.env_key = Some("MY_KEY".to_owned());
    provider.env_key_instructions = Some("get one at example.com".to_owned());
    let blank = |_: &str| Some(" ".to_owned());
    for env in [&nothing as &dyn Fn(&str) -> Option<String>, &blank] {
        let error = HttpEndpoint::new("mine", &provider, "responses", env).err().unwrap();
        let expected = "no API key: set the environment variable `MY_KEY`; get one at example.com";
        assert_eq!(error.to_string(), expected);
    }
    provider.experimental_bearer_token = Some("t".into());
    assert_eq!(key(&provider, &nothing).unwrap().as_deref(), Some("t"));
    provider.env_key = None;
    provider.experimental_bearer_token = None;
    provider.requires_openai_auth = true;
    let error = HttpEndpoint::new("mine", &provider, "responses", &nothing).err().unwrap();
    assert!(error.to_string().contains("OPENAI_API_KEY"), "{error}");
}

#[test]
fn configured_headers_win_and_unset_variables_are_left_out() {
    let mut provider = provider("http://x");
    provider.env_key = Some("KEY".to_owned());
    provider.http_headers = [("Accept".to_owned(), Secret::from("x/y"))].into();
    provider.env_http_headers =
        [("X-Org".to_owned(), "ORG".to_owned()), ("X-Not".to_owned(), "UNSET".to_owned())].into();
    let env = |name: &str| match name {
        "KEY" => Some(" k1\n".to_owned()),
        "ORG" => Some("acme".to_owned()),
        _ => None,
    };
    let headers = headers("mine", &provider, &env).unwrap();
    let get = |name: &str| headers.get(name).map(|value| value.to_str().unwrap());
    assert_eq!(get("authorization"), Some("Bearer k1"));
    assert_eq!(get("accept"), Some("x/y"));
    assert_eq!(get("x-org"), Some("acme"));
    assert_eq!(get("x-not"), None);
    assert!(!format!("{headers:?}").contains("k1"));
}

#[test]
fn a_header_that_cannot_be_sent_is_named_without_its_value() {
    let mut provider = provider("http://x");
    provider.http_headers = [("X-Bad".to_owned(), Secret::from("hid\nden"))].into();
    let error = headers("mine", &provider, &nothing).unwrap_err().to_string();
    assert_eq!(error, "provider `mine` cannot be used: header `X-Bad` has characters a header cannot carry");
}

#[test]
fn only_addresses_of_this_machine_count_as_loopback() {
    for url in ["http://localhost:1/v1", "http://127.0.0.1", "http://127.8.9.1", "http://[::1]:8080"] {
        assert!(is_loopback(&Url::parse(url).unwrap()), "{url}");
    }
    for url in ["http://localhost.example.com", "http://10.0.0.1", "http://0.0.0.0", "https://api.openai.com"]
    {
        assert!(!is_loopback(&Url::parse(url).unwrap()), "{url}");
    }
}
