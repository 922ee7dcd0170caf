//! Texts made of what rules look for, in any order, cut anywhere.

#[path = "cases/properties.rs"]
mod properties;

use proptest::prelude::*;

use self::properties::{KNOWN, hold};

/// Pieces of text that meet at every rule.
fn piece() -> impl Strategy<Value = String> {
    let fixed = [
        "password",
        "token",
        "=",
        ": ",
        "\"",
        "'",
        "\n",
        " ",
        "\\n",
        "-----BEGIN RSA PRIVATE KEY-----",
        "-----END",
        "-----END RSA PRIVATE KEY-----",
        "\n-----END PRIVATE KEY-----\n",
        "q8Zk2mPv0Lr7Tb4Xc9Wd1Ye6Uf3Ig5Oh8Jn2Ks7Aq8Zk2mPv0Lr7Tb4Xc9Wd1Ye6\n",
        "MHcCAQEEIFq8Zk2mPv0Lr7Tb4Xc9Wd1Ye6Uf3Ig5Oh8Jn2Ks7A",
        "\n-----BEGIN PRIVATE KEY-----\n",
        "k.pem:7:",
        "\nL12: ",
        "\n+",
        "\n27\n",
        "\x1b[m\n",
        "lQOYBGr69KYBCADq8Zk2mPv0Lr7Tb4Xc9Wd1Ye6Uf3Ig5Oh8Jn2Ks7Aq8Zk2mPv0\n",
        "://",
        "@",
        "ghp_",
        "q8Zk2mPv0Lr7Tb4Xc9Wd1Ye6Uf3Ig5Oh8Jn2Ks7A",
        "eyJhbGciOiJIUzI1NiJ9.",
        "hunter2x",
        "name: DB_PASSWORD",
        "value: ",
        "é—",
        "AKIA",
        "Bearer ",
        "cookie: a=",
        "mysql -p",
        ":AA",
        "8Q~",
        "discord ",
        "basic ",
        "curl -u a:",
        "|",
        "identified by '",
        ":5432:",
        "sig=",
        KNOWN,
        "password:\n",
        "密码：",
        "%22%3A%22",
        "\x1b[32m",
        "---- BEGIN SSH2 PRIVATE KEY ----",
        "---- END ",
        "LS0tLS1CRUdJTiBQUklWQVRFIEtFWS0tLS0t",
        "<key>token</key>\n",
        "<string>",
        "</",
        "variable \"token\" {\n",
        "type = x\n",
        "default = \"",
        "jwt.sign(x, '",
        "credentials: a/",
        "mnemonic: ",
        "key [None]: ",
        "\r\n",
        "AgMBAAECggEA",
        "密码是",
        "\nINFO GET / 200\n",
        "\nAQKCAg",
        "CAwEA\n",
        "\\n\",\"stream\":",
    ];
    prop_oneof![prop::sample::select(fixed.to_vec()).prop_map(str::to_owned), "[a-zA-Z0-9é ]{0,12}"]
}

proptest! {
    #[test]
    fn any_cutting_gives_the_same_and_valid_text_without_what_is_known(
        pieces in prop::collection::vec(piece(), 0..60), cuts in prop::collection::vec(1usize..40, 1..9),
    ) {
        hold(pieces.concat().as_bytes(), &cuts);
    }

    #[test]
    fn wide_text_and_text_beside_it_may_be_cut_anywhere(
        pieces in prop::collection::vec((piece(), any::<bool>()), 0..60), cuts in prop::collection::vec(1usize..40, 1..9),
    ) {
        let wide = |text: &str| text.encode_utf16().flat_map(u16::to_le_bytes).collect::<Vec<_>>();
        let bytes = |(text, is_narrow): &(String, bool)| if *is_narrow { text.clone().into_bytes() } else { wide(text) };
        hold(&pieces.iter().flat_map(bytes).collect::<Vec<_>>(), &cuts);
        hold(&wide(&pieces.into_iter().map(|(text, _)| text).collect::<String>()), &cuts);
    }

    #[test]
    fn bytes_of_any_kind_never_break_it(bytes in prop::collection::vec(any::<u8>(), 0..400), cut in 1usize..50) {
        hold(&bytes, &[cut]);
    }
}
